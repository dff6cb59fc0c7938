//! `docs/openapi.json` as the tests read it.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The document.
pub(crate) struct Document {
    pub(crate) json: Value,
    pub(crate) operations: Vec<Operation>,
}

/// One method of one path.
pub(crate) struct Operation {
    pub(crate) name: String,
    pub(crate) method: String,
    pub(crate) path: String,
    /// The service that serves it; `every` if each does.
    pub(crate) service: String,
    /// Whose token it takes: `person`, `agent`, `service`, or nobody's.
    pub(crate) principal: Option<String>,
    json: Value,
}

/// A request and what comes back, as the document has it.
#[derive(Debug)]
pub(crate) struct Example {
    /// Parameters with the place they go to.
    pub(crate) parameters: Vec<(String, String, Value)>,
    pub(crate) body: Option<Value>,
    pub(crate) status: u16,
    pub(crate) answer: Option<Value>,
}

/// The text of a file under `docs`.
pub(crate) fn read(name: &str) -> Result<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("this package lies in a folder of the root")?;
    let path = root.join("docs").join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

impl Document {
    pub(crate) fn read() -> Result<Self> {
        let json: Value = serde_json::from_str(&read("openapi.json")?)?;
        let mut operations = Vec::new();
        for (path, methods) in members(&json["paths"]) {
            for (method, operation) in members(methods) {
                operations.push(Operation::new(path, method, operation)?);
            }
        }
        ensure!(operations.len() > 20, "the document has only {} operations", operations.len());
        Ok(Self { json, operations })
    }

    /// The operation of a name.
    pub(crate) fn operation(&self, name: &str) -> Result<&Operation> {
        let found = self.operations.iter().find(|operation| operation.name == name);
        found.with_context(|| format!("there is no operation {name}"))
    }
}

impl Operation {
    fn new(path: &str, method: &str, json: &Value) -> Result<Self> {
        let text = |name: &str| Ok::<_, anyhow::Error>(json[name].as_str().context(name.to_owned())?.to_owned());
        let principal = members(&json["security"][0]).next().map(|(scheme, _)| scheme.clone());
        Ok(Self {
            name: text("operationId")?,
            method: method.to_uppercase(),
            path: path.to_owned(),
            service: text("x-service")?,
            principal,
            json: json.clone(),
        })
    }

    /// Whether the release does not serve it.
    pub(crate) fn is_later(&self) -> bool {
        self.json["tags"][0] == "later"
    }

    /// The names of its examples.
    pub(crate) fn examples(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let mut add = |place: &Value| names.extend(members(&place["examples"]).map(|(name, _)| name.clone()));
        items(&self.json["parameters"]).for_each(&mut add);
        contents(&self.json["requestBody"]).for_each(&mut add);
        members(&self.json["responses"]).flat_map(|(_, response)| contents(response)).for_each(&mut add);
        for (_, response) in members(&self.json["responses"]) {
            names.extend(items(&response["x-examples"]).filter_map(|name| Some(name.as_str()?.to_owned())));
        }
        names
    }

    /// The example of a name.
    pub(crate) fn example(&self, name: &str) -> Result<Example> {
        let here = |place: &Value| place["examples"].get(name).map(|example| example["value"].clone());
        let parameters = items(&self.json["parameters"])
            .filter_map(|parameter| {
                let text = |member: &str| parameter[member].as_str().map(str::to_owned);
                Some((text("in")?, text("name")?, here(parameter)?))
            })
            .collect();
        let body = contents(&self.json["requestBody"]).find_map(here);
        let bare = Value::from(name);
        let mut answers = members(&self.json["responses"]).filter_map(|(status, response)| {
            let answer = contents(response).find_map(here);
            let is_bare = items(&response["x-examples"]).any(|example| *example == bare);
            (answer.is_some() || is_bare).then_some((status, answer))
        });
        let (status, answer) = answers.next().with_context(|| format!("no answer to {} {name}", self.name))?;
        ensure!(answers.next().is_none(), "two answers to {} {name}", self.name);
        Ok(Example { parameters, body, status: status.parse()?, answer })
    }

    /// The schema of its body.
    pub(crate) fn body_schema(&self) -> Option<&Value> {
        contents(&self.json["requestBody"]).next().map(|content| &content["schema"])
    }

    /// The response with a status.
    pub(crate) fn response<'a>(&'a self, document: &'a Document, status: u16) -> Option<&'a Value> {
        let response = self.json["responses"].get(status.to_string())?;
        match response["$ref"].as_str() {
            Some(place) => document.json.pointer(place.strip_prefix('#')?),
            None => Some(response),
        }
    }

    /// The codes that it can refuse with.
    pub(crate) fn codes(&self, document: &Document) -> BTreeSet<String> {
        let statuses = members(&self.json["responses"]).filter_map(|(status, _)| status.parse().ok());
        statuses
            .filter_map(|status| self.response(document, status))
            .flat_map(|response| {
                items(&response["content"]["application/problem+json"]["schema"]["properties"]["code"]["enum"])
            })
            .filter_map(|code| Some(code.as_str()?.to_owned()))
            .collect()
    }
}

/// The contents of a body or a response, whatever their media type.
fn contents(place: &Value) -> impl Iterator<Item = &Value> {
    members(&place["content"]).map(|(_, content)| content)
}

/// The members of an object; none of anything else.
pub(crate) fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// The items of an array; none of anything else.
pub(crate) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
