//! The rules of OpenAI Responses.

use super::{End, Refusal, Rule, is_filled, is_json, refused};
use serde_json::Value;
use std::collections::HashSet;

/// What has been read so far.
#[derive(Default)]
struct Reader<'a> {
    ids: HashSet<&'a str>,
    open: Vec<&'a str>,
    answered: HashSet<&'a str>,
    /// The kind of the item before.
    before: &'a str,
    /// Reasoning that waits for the item it produced.
    reasoning: Option<&'a Value>,
    /// Whether reasoning stands in the model's present stretch of output.
    reasoned: bool,
}

pub(super) fn judge(items: &[Value], end: End) -> Result<(), Refusal> {
    let mut reader = Reader::default();
    for (place, item) in items.iter().enumerate() {
        reader.read(place, item)?;
    }
    reader.reasoning_is_followed()?;
    reader.all_answered()?;
    if end == End::Request && !matches!(reader.before, "user" | "function_call_output") {
        return Err(refused(Rule::O6, "The input must end with a user message or a function call output."));
    }
    Ok(())
}

impl<'a> Reader<'a> {
    fn read(&mut self, place: usize, item: &'a Value) -> Result<(), Refusal> {
        let kind = match (item["type"].as_str(), item["role"].as_str()) {
            (Some("message") | None, Some(role)) => role,
            (Some(kind), _) => kind,
            (None, None) => "",
        };
        if matches!(kind, "system" | "developer") && self.before.is_empty() {
            return Ok(());
        }
        if self.before.is_empty() && kind != "user" && kind != "function_call_output" {
            return Err(refused(Rule::O6, "The input must start with a user message."));
        }
        match kind {
            "user" => {
                self.reasoning_is_followed()?;
                self.all_answered()?;
                self.message(place, kind, item)?;
                self.reasoned = false;
            }
            "assistant" => {
                self.message(place, kind, item)?;
                self.stands_with_reasoning("message", item)?;
            }
            "reasoning" => self.reasoning(place, item)?,
            "function_call" => {
                self.call(place, item)?;
                self.stands_with_reasoning(kind, item)?;
            }
            "function_call_output" => {
                self.reasoning_is_followed()?;
                self.output(place, item)?;
            }
            _ => return Err(refused(Rule::Shape, format!("Invalid value: '{kind}'. 'input[{place}].type'"))),
        }
        self.before = kind;
        Ok(())
    }

    fn message(&self, place: usize, role: &str, item: &Value) -> Result<(), Refusal> {
        if self.before == role {
            let words = format!("Invalid 'input[{place}]': two neighbouring messages of role '{role}'");
            return Err(refused(Rule::O7, words));
        }
        let content = &item["content"];
        let parts = content.as_array().filter(|parts| !parts.is_empty());
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        if parts.is_some_and(|parts| parts.iter().any(|part| part["type"] != kind)) {
            let words = format!("Invalid value in 'input[{place}].content'. Supported values are: '{kind}'");
            return Err(refused(Rule::Shape, words));
        }
        if is_filled(content) || parts.is_some_and(|parts| parts.iter().all(|part| is_filled(&part["text"]))) {
            return Ok(());
        }
        Err(refused(Rule::O5, format!("Invalid 'input[{place}].content': expected a non-empty text")))
    }

    fn reasoning(&mut self, place: usize, item: &'a Value) -> Result<(), Refusal> {
        if !is_filled(&item["id"]) && !is_filled(&item["encrypted_content"]) {
            let words = format!("Missing required parameter: 'input[{place}].encrypted_content'");
            return Err(refused(Rule::O9, words));
        }
        self.reasoning = Some(item);
        self.reasoned = true;
        Ok(())
    }

    /// Reasoning stands directly before the item that it produced.
    fn reasoning_is_followed(&mut self) -> Result<(), Refusal> {
        let Some(item) = self.reasoning.take() else { return Ok(()) };
        let id = item["id"].as_str().unwrap_or("without id");
        let words = format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
        Err(refused(Rule::O9, words))
    }

    /// An item that keeps its id is tied to its response, and so to the reasoning there.
    fn stands_with_reasoning(&mut self, kind: &str, item: &Value) -> Result<(), Refusal> {
        let reasoned = self.reasoning.take().is_some() || self.reasoned;
        match item["id"].as_str() {
            Some(id) if !reasoned => {
                let words = format!("Item '{id}' of type '{kind}' was provided without its required 'reasoning' item.");
                Err(refused(Rule::O9, words))
            }
            _ => Ok(()),
        }
    }

    fn call(&mut self, place: usize, item: &'a Value) -> Result<(), Refusal> {
        if !is_filled(&item["name"]) || !is_json(&item["arguments"]) {
            return Err(refused(Rule::Shape, format!("Invalid 'input[{place}].arguments'")));
        }
        match item["call_id"].as_str() {
            None | Some("") => {
                Err(refused(Rule::Shape, format!("Missing required parameter: 'input[{place}].call_id'")))
            }
            Some(id) if !self.ids.insert(id) => {
                Err(refused(Rule::O4, format!("Duplicate function call with call_id {id}.")))
            }
            Some(id) => {
                self.open.push(id);
                Ok(())
            }
        }
    }

    fn output(&mut self, place: usize, item: &'a Value) -> Result<(), Refusal> {
        let id = item["call_id"].as_str().unwrap_or_default();
        if self.answered.contains(id) {
            return Err(refused(Rule::O1, format!("Duplicate function call output with call_id {id}.")));
        }
        let Some(call) = self.open.iter().position(|call| *call == id) else {
            let words = format!("No tool call found for function call output with call_id {id}.");
            return Err(refused(Rule::O2, words));
        };
        self.open.remove(call);
        self.answered.insert(id);
        self.reasoned = false;
        if is_filled(&item["output"]) {
            return Ok(());
        }
        Err(refused(Rule::O5, format!("Invalid 'input[{place}].output': expected a non-empty string")))
    }

    fn all_answered(&self) -> Result<(), Refusal> {
        match self.open.first() {
            None => Ok(()),
            Some(id) => Err(refused(Rule::O1, format!("No tool output found for function call {id}."))),
        }
    }
}
