//! The page that a body is written on: text that only grows, and what is still open at its end.

use super::{Wire, anthropic, openai_chat, openai_responses};
use serde_json::Value;

/// What stands open at the end of the page, and can take more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    /// Nothing: the last message is whole.
    Nothing,
    /// A message of the user side.
    User,
    /// A message of the assistant.
    Assistant,
}

/// A body under the pen.
#[derive(Clone, Debug)]
pub(super) struct Sheet {
    wire: Wire,
    pub(super) text: String,
    pub(super) open: Open,
}

/// A reply as it is told: deleted, blank and unusable parts are gone, every call has its outcome.
#[derive(Debug)]
pub(super) struct Told<'a> {
    pub(super) parts: Vec<Part<'a>>,
}

/// A part of a reply as it is told.
#[derive(Debug)]
pub(super) enum Part<'a> {
    Thinking(&'a Value),
    Text(&'a str),
    Call(Called<'a>),
}

/// A call and its outcome as they are told.
#[derive(Debug)]
pub(super) struct Called<'a> {
    /// Its name in the request, unique there.
    pub(super) id: String,
    pub(super) name: &'a str,
    pub(super) input: &'a Value,
    pub(super) outcome: super::told::Outcome,
}

impl Told<'_> {
    pub(super) fn calls(&self) -> impl Iterator<Item = &Called<'_>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            Part::Thinking(_) | Part::Text(_) => None,
        })
    }
}

impl Sheet {
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire, text: "[".to_owned(), open: Open::Nothing }
    }

    /// Writes a text of the user side.
    pub(super) fn user(&mut self, text: &str) {
        match self.wire {
            Wire::Anthropic => anthropic::user(self, text),
            Wire::OpenAiChat => openai_chat::user(self, text),
            Wire::OpenAiResponses => openai_responses::user(self, text),
        }
    }

    /// Writes a reply, and the results of its calls together, in the order of the calls.
    pub(super) fn reply(&mut self, told: &Told<'_>) {
        match self.wire {
            Wire::Anthropic => anthropic::reply(self, told),
            Wire::OpenAiChat => openai_chat::reply(self, told),
            Wire::OpenAiResponses => openai_responses::reply(self, told),
        }
    }

    /// The body as it stands.
    pub(super) fn body(&self) -> String {
        let closers = self.closers();
        let mut body = String::with_capacity(self.text.len() + closers.len() + 1);
        body.push_str(&self.text);
        body.push_str(closers);
        body.push(']');
        body
    }

    /// Ends the open message and makes room for the next.
    pub(super) fn next_message(&mut self) {
        let closers = self.closers();
        self.text.push_str(closers);
        self.open = Open::Nothing;
        if self.text.len() > 1 {
            self.text.push(',');
        }
    }

    /// Appends a whole part to the open message of `role`, or begins one with `head`.
    pub(super) fn part(&mut self, role: Open, head: &str, part: &str) {
        if self.open == role {
            self.text.push(',');
        } else {
            self.next_message();
            self.text.push_str(head);
            self.open = role;
        }
        self.text.push_str(part);
    }

    fn closers(&self) -> &'static str {
        match (self.open, self.wire) {
            (Open::Nothing, _) => "",
            (_, Wire::OpenAiChat) => "\"}",
            (_, Wire::Anthropic | Wire::OpenAiResponses) => "]}",
        }
    }
}

/// A string as JSON, with its quotes.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A string as JSON without its quotes, to be put into an open string.
pub(super) fn escaped(text: &str) -> String {
    let quoted = quoted(text);
    quoted[1..quoted.len() - 1].to_owned()
}
