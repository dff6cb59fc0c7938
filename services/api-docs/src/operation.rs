//! One endpoint as an operation of OpenAPI.

use crate::common::object;
use crate::schemas::Schemas;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use wire::Code;
use wire::openapi::{Endpoint, Example, Principal, Service, shape};

/// The operation of an endpoint. Refusals that look the same in several of them are put into `shared`.
pub(crate) fn operation(endpoint: &Endpoint, schemas: &mut Schemas, shared: &mut Map<String, Value>) -> Value {
    let (tag, security) = match (endpoint.principal, endpoint.service) {
        (Principal::Person, Service::Projection) => ("queries", Some("person")),
        (Principal::Person, _) => ("commands", Some("person")),
        (Principal::Agent, _) => ("agents", Some("agent")),
        (Principal::Service, _) => ("internal", Some("service")),
        (Principal::Anybody, Service::Every) => ("operation", None),
        (Principal::Anybody, _) => ("later", None),
    };
    let security = security.map_or_else(Vec::new, |scheme| vec![object([(scheme, json!([]))])]);
    let mut operation = json!({
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [tag],
        "x-service": endpoint.service.as_str(),
        "security": security,
        "responses": responses(endpoint, schemas, shared),
    });
    if !endpoint.details.is_empty() {
        operation["description"] = endpoint.details.into();
    }
    let parameters = parameters(endpoint, schemas);
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some((shape, required)) = endpoint.body {
        let examples = endpoint.examples.iter().filter_map(|example| Some((example, example.body.as_ref()?)));
        let content = with_examples(json!({ "schema": schemas.read(shape) }), examples);
        operation["requestBody"] = json!({ "required": required, "content": { "application/json": content } });
    }
    operation
}

fn with_examples<'a>(mut place: Value, examples: impl Iterator<Item = (&'a Example, &'a Value)>) -> Value {
    let examples: Map<String, Value> =
        examples.map(|(example, value)| (example.name.to_owned(), json!({ "value": value }))).collect();
    if !examples.is_empty() {
        place["examples"] = examples.into();
    }
    place
}

fn parameters(endpoint: &Endpoint, schemas: &mut Schemas) -> Vec<Value> {
    let mut parameters = Vec::new();
    let mut add = |place: &str, name: &str, required: bool, mut schema: Value| {
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let examples = endpoint
            .examples
            .iter()
            .filter_map(|example| Some((example, &example.parameters.iter().find(|(of, _)| *of == name)?.1)));
        let mut parameter = json!({ "in": place, "name": name, "required": required, "schema": schema });
        if let Some(description) = description {
            parameter["description"] = description;
        }
        parameters.push(with_examples(parameter, examples));
    };
    let steps: Vec<&str> = endpoint.path.split('/').collect();
    for pair in steps.windows(2) {
        if let Some(name) = pair[1].strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            add("path", name, true, path_parameter(pair[0], name));
        }
    }
    if let Some(query) = endpoint.query {
        for (name, schema, required) in schemas.members(query) {
            add("query", &name, required, schema);
        }
    }
    if endpoint.keyed {
        let about = "The caller's own name for the command: a repeat under the same name is the same command.";
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 255, "description": about });
        add("header", "Idempotency-Key", false, schema);
    }
    if endpoint.resumable {
        let about = "The id of the last event that was seen. It goes before `after`.";
        add("header", "Last-Event-ID", false, json!({ "type": "string", "description": about }));
    }
    parameters
}

/// A parameter of the path, by the step before it.
fn path_parameter(before: &str, name: &str) -> Value {
    let what = match before {
        "members" => {
            return json!({ "type": "string", "description": "The identity provider's name for the person." });
        }
        "workspaces" => "workspace",
        "tokens" => "token",
        "tasks" => "task",
        "task-sessions" => "session",
        "messages" => "message",
        "queue" => "queued message",
        "clarification" | "clarifications" => "bundle",
        "prompts" | "turns" => "turn",
        "permissions" => "tool call",
        "workflows" => "workflow",
        "x" => "execution",
        _ => name,
    };
    json!({ "type": "string", "format": "uuid", "description": format!("The {what}.") })
}

fn responses(endpoint: &Endpoint, schemas: &mut Schemas, shared: &mut Map<String, Value>) -> Value {
    let mut responses = Map::new();
    let of = |status: u16| endpoint.examples.iter().filter(move |example| example.status == status);
    let bodies = |status| of(status).filter_map(|example| Some((example, example.answer.as_ref()?)));
    for answer in &endpoint.answers {
        let mut response = json!({ "description": answer.meaning });
        if let Some((media_type, shape)) = answer.content {
            let content = shape.map_or_else(|| json!({}), |shape| json!({ "schema": schemas.written(shape) }));
            response["content"] = object([(media_type, with_examples(content, bodies(answer.status)))]);
        } else if of(answer.status).next().is_some() {
            // There is no body that could be an example.
            response["x-examples"] = of(answer.status).map(|example| example.name).collect();
        }
        if endpoint.keyed {
            let about = "`true` where the command was carried out before, under the same key.";
            let header = json!({ "description": about, "schema": { "type": "boolean" } });
            response["headers"] = object([("Idempotency-Replayed", header)]);
        }
        responses.insert(answer.status.to_string(), response);
    }
    let mut refusals: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in &endpoint.codes {
        refusals.entry(code.status().as_u16()).or_default().push(*code);
    }
    for (status, codes) in refusals {
        let response = refusal(&codes, schemas, bodies(status));
        let response = if bodies(status).next().is_some() { response } else { share(&codes, response, shared) };
        responses.insert(status.to_string(), response);
    }
    responses.into()
}

/// A reference to what was put among the shared responses.
fn share(codes: &[Code], response: Value, shared: &mut Map<String, Value>) -> Value {
    let name = codes.iter().map(|code| code.as_str()).collect::<Vec<_>>().join("-");
    let reference = json!({ "$ref": format!("#/components/responses/{name}") });
    shared.insert(name, response);
    reference
}

fn refusal<'a>(
    codes: &[Code],
    schemas: &mut Schemas,
    examples: impl Iterator<Item = (&'a Example, &'a Value)>,
) -> Value {
    let words = codes.iter().map(|code| format!("`{code}`: {}.", code.title()));
    let mut schema = schemas.written(shape::<wire::Problem>());
    let codes_of_it: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
    schema["properties"] = json!({ "code": { "enum": codes_of_it } });
    let content = with_examples(json!({ "schema": schema }), examples);
    let mut response = json!({
        "description": words.collect::<Vec<_>>().join(" "),
        "content": { "application/problem+json": content },
    });
    let header = |about: &str, kind: &str| json!({ "description": about, "schema": { "type": kind } });
    let mut headers = Map::new();
    if codes.iter().any(|code| code.has_retry_after()) {
        headers.insert("Retry-After".to_owned(), header("When to try again, in seconds.", "integer"));
    }
    if codes.contains(&Code::MethodNotAllowed) {
        headers.insert("Allow".to_owned(), header("The methods that are allowed.", "string"));
    }
    if !headers.is_empty() {
        response["headers"] = headers.into();
    }
    response
}
