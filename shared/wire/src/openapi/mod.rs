//! What an endpoint says about itself. `docs/openapi.json` is written from this, and the tests send every example of it
//! to running services.
//!
//! Each endpoint's file has a function `doc` that returns an [`Endpoint`]; each service lists its own. Refusals are
//! named by their [`Code`]: status, title and retryability follow from that.

mod document;
pub mod samples;

use crate::{Code, Problem};
use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// How a shape is described. What is written and what is read differ in which fields are required, so each has a
/// generator of its own.
pub type Shape = fn(&mut SchemaGenerator) -> Schema;

/// The shape of a type.
#[must_use]
pub fn shape<T: JsonSchema>() -> Shape {
    |generator| generator.subschema_for::<T>()
}

/// Which process serves an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Commands of people.
    RespondApi,
    /// Agents, and calls between services.
    Orchestrator,
    /// Queries of people.
    Projection,
    /// Each of them.
    Every,
}

impl Service {
    /// The service's name, as in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RespondApi => "respond-api",
            Self::Orchestrator => "orchestrator",
            Self::Projection => "projection",
            Self::Every => "every",
        }
    }
}

/// Whose token a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Principal {
    /// A person's API token.
    Person,
    /// A token bound to one session.
    Agent,
    /// The token that services share.
    Service,
    /// None is looked at.
    Anybody,
}

/// What a successful request is answered with.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// What it means.
    pub meaning: &'static str,
    /// The body: its media type, and its shape if it is JSON.
    pub content: Option<(&'static str, Option<Shape>)>,
}

/// A request as it is sent, and what comes back.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Unique within its endpoint.
    pub name: &'static str,
    /// Parameters of path and query by name.
    pub parameters: Vec<(&'static str, Value)>,
    /// The body, if it has one.
    pub body: Option<Value>,
    /// The status of the answer.
    pub status: u16,
    /// The answer's body, if it has one.
    pub answer: Option<Value>,
}

/// One method of one path.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its name, unique among all.
    pub name: &'static str,
    /// The method.
    pub method: Method,
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// Who serves it.
    pub service: Service,
    /// Who calls it.
    pub principal: Principal,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// More about it; empty if there is no more to say.
    pub details: &'static str,
    /// Whether an `Idempotency-Key` makes a repeat the same command.
    pub keyed: bool,
    /// Whether a request resumes after the event that `Last-Event-ID` names.
    pub resumable: bool,
    /// The shape of its query parameters.
    pub query: Option<Shape>,
    /// The shape of its body, and whether it must be there.
    pub body: Option<(Shape, bool)>,
    /// What success looks like.
    pub answers: Vec<Answer>,
    /// What it refuses with.
    pub codes: BTreeSet<Code>,
    /// Requests to learn from.
    pub examples: Vec<Example>,
}

impl Example {
    /// A request without anything but its path.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, parameters: Vec::new(), body: None, status: 204, answer: None }
    }

    /// With a parameter of the path or the query.
    #[must_use]
    pub fn with(mut self, parameter: &'static str, value: impl Serialize) -> Self {
        self.parameters.push((parameter, json(&value)));
        self
    }

    /// With a body.
    #[must_use]
    pub fn body(mut self, body: impl Serialize) -> Self {
        self.body = Some(json(&body));
        self
    }

    /// Answered with a body.
    #[must_use]
    pub fn gives(mut self, status: u16, answer: impl Serialize) -> Self {
        (self.status, self.answer) = (status, Some(json(&answer)));
        self
    }

    /// Answered without a body.
    #[must_use]
    pub const fn accepted(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Refused.
    #[must_use]
    pub fn refused(self, problem: &Problem) -> Self {
        self.gives(problem.code().status().as_u16(), problem.to_json())
    }
}

/// Samples are plain data: strings, numbers, lists and maps with text keys.
fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

impl Endpoint {
    /// A command of people, at the respond API.
    #[must_use]
    pub fn command(name: &'static str, method: Method, path: &'static str, summary: &'static str) -> Self {
        Self::new((name, method, path, summary), Service::RespondApi, Principal::Person).refuses([Code::RecoveryFailed])
    }

    /// A query of people, at the projection.
    #[must_use]
    pub fn query(name: &'static str, path: &'static str, summary: &'static str) -> Self {
        Self::new((name, Method::GET, path, summary), Service::Projection, Principal::Person)
    }

    /// A call of agents, at the orchestrators.
    #[must_use]
    pub fn agent(name: &'static str, method: Method, path: &'static str, summary: &'static str) -> Self {
        Self::new((name, method, path, summary), Service::Orchestrator, Principal::Agent)
    }

    /// A call between services, at the orchestrators.
    #[must_use]
    pub fn internal(name: &'static str, path: &'static str, summary: &'static str) -> Self {
        let mut endpoint = Self::new((name, Method::POST, path, summary), Service::Orchestrator, Principal::Service);
        endpoint.codes.remove(&Code::Forbidden);
        endpoint
    }

    /// What every process serves to anybody.
    #[must_use]
    pub fn operation(name: &'static str, path: &'static str, summary: &'static str) -> Self {
        let mut endpoint = Self::new((name, Method::GET, path, summary), Service::Every, Principal::Anybody);
        endpoint.codes = BTreeSet::from([Code::Internal]);
        endpoint
    }

    /// A path of the contract that this release does not serve: it answers so to everybody.
    #[must_use]
    pub fn later(name: &'static str, method: Method, path: &'static str, service: Service) -> Self {
        let mut endpoint = Self::new((name, method, path, "Not served by this release."), service, Principal::Anybody);
        endpoint.details = "The path is reserved: this release refuses it with `not_found`, and a later one serves it.";
        endpoint.codes = BTreeSet::from([Code::Internal, Code::NotFound]);
        endpoint
    }

    fn new(
        (name, method, path, summary): (&'static str, Method, &'static str, &'static str),
        service: Service,
        principal: Principal,
    ) -> Self {
        let mut codes = BTreeSet::from([
            Code::InvalidRequest,
            Code::Unauthenticated,
            Code::Forbidden,
            Code::Internal,
            Code::TemporarilyUnavailable,
        ]);
        if path.contains('{') {
            codes.insert(Code::NotFound);
        }
        Self {
            name,
            method,
            path,
            service,
            principal,
            summary,
            details: "",
            keyed: false,
            resumable: false,
            query: None,
            body: None,
            answers: Vec::new(),
            codes,
            examples: Vec::new(),
        }
    }

    /// With more to say.
    #[must_use]
    pub const fn details(mut self, details: &'static str) -> Self {
        self.details = details;
        self
    }

    /// A repeat under the same `Idempotency-Key` is the same command.
    #[must_use]
    pub fn keyed(mut self) -> Self {
        self.keyed = true;
        self.refuses([Code::IdempotencyKeyReused, Code::RequestInProgress])
    }

    /// A request goes on after the event that `Last-Event-ID` names.
    #[must_use]
    pub const fn resumable(mut self) -> Self {
        self.resumable = true;
        self
    }

    /// With parameters of the query.
    #[must_use]
    pub fn parameters<T: JsonSchema>(mut self) -> Self {
        self.query = Some(shape::<T>());
        self
    }

    /// With a body.
    #[must_use]
    pub fn takes<T: JsonSchema>(mut self) -> Self {
        self.body = Some((shape::<T>(), true));
        self.refuses([Code::TooLarge, Code::UnsupportedMediaType])
    }

    /// With a body that may be absent.
    #[must_use]
    pub fn may_take<T: JsonSchema>(mut self) -> Self {
        self.body = Some((shape::<T>(), false));
        self.refuses([Code::TooLarge, Code::UnsupportedMediaType])
    }

    /// Answers with JSON.
    #[must_use]
    pub fn gives<T: JsonSchema>(mut self, status: u16, meaning: &'static str) -> Self {
        self.answers.push(Answer { status, meaning, content: Some(("application/json", Some(shape::<T>()))) });
        self
    }

    /// Answers with 204.
    #[must_use]
    pub fn gives_nothing(self, meaning: &'static str) -> Self {
        self.gives_no_body(204, meaning)
    }

    /// Answers without a body.
    #[must_use]
    pub fn gives_no_body(mut self, status: u16, meaning: &'static str) -> Self {
        self.answers.push(Answer { status, meaning, content: None });
        self
    }

    /// Answers with text of a media type.
    #[must_use]
    pub fn gives_text(mut self, media_type: &'static str, meaning: &'static str) -> Self {
        self.answers.push(Answer { status: 200, meaning, content: Some((media_type, None)) });
        self
    }

    /// Also refuses with these.
    #[must_use]
    pub fn refuses(mut self, codes: impl IntoIterator<Item = Code>) -> Self {
        self.codes.extend(codes);
        self
    }

    /// With an example.
    #[must_use]
    pub fn example(mut self, example: Example) -> Self {
        self.examples.push(example);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::CreateAgentToken;

    #[test]
    fn refusals_follow_from_what_an_endpoint_takes() {
        let endpoint = Endpoint::command("make", Method::POST, "/things/{id}", "Makes.").may_take::<CreateAgentToken>();
        assert!(endpoint.codes.contains(&Code::NotFound) && endpoint.codes.contains(&Code::UnsupportedMediaType));
        assert!(!endpoint.codes.contains(&Code::IdempotencyKeyReused));
        assert!(endpoint.keyed().codes.contains(&Code::IdempotencyKeyReused));
        assert!(!Endpoint::query("read", "/things", "Reads.").codes.contains(&Code::NotFound));
    }

    #[test]
    fn an_example_of_a_refusal_has_its_status_and_document() {
        let example = Example::new("x").with("id", 7).refused(&Problem::new(Code::Expired, "the words"));
        assert_eq!((example.status, &example.parameters), (409, &vec![("id", Value::from(7))]));
        assert_eq!(example.answer.expect("a document")["code"], "expired");
    }
}
