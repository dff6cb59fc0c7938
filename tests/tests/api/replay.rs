//! Every example of `docs/openapi.json`, sent to running services in the order of the story: status and answer are what
//! the document says, and every value fits its schema.

use crate::bindings::Bindings;
use crate::document::{Document, Example, Operation, items};
use crate::doubt::doubted;
use crate::events::check_events;
use crate::schema::check;
use crate::story::{Caller, STORY, Step};
use anyhow::{Context as _, Result, bail, ensure};
use harness::raw::{Reply, Request};
use harness::{Cluster, ClusterOptions, PATIENCE, until};
use jsonschema::Draft::Draft202012;
use serde_json::Value;
use std::collections::BTreeSet;

/// What stands for tokens in the examples.
const VIEWER_TOKEN: &str = "abk_0000000000000000000000000000000000000000000";
const AGENT_TOKEN: &str = "aba_0000000000000000000000000000000000000000000";

/// What stands for the workspace and the task of the examples, and for the dispatch in doubt.
const WORKSPACE: &str = "0199d2a0-7c00-7000-8000-000000000001";
const TASK: &str = "0199d2a0-7c00-7000-8000-000000000003";
const PUSH_SESSION: &str = "0199d2a0-7c00-7000-8000-000000000012";
const DOUBTED_TURN: &str = "0199d2a0-7c00-7000-8000-000000000013";

/// Services, and what is known of the story so far.
struct Replay {
    document: Document,
    cluster: Cluster,
    admin: String,
    known: Bindings,
}

#[tokio::test]
async fn every_example_does_what_it_says() -> Result<()> {
    let document = Document::read()?;
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    let admin = cluster.admin()?.token.expose().to_owned();
    let mut replay = Replay { document, cluster, admin, known: Bindings::default() };
    // All that differs is told at once: the rest of the story goes on with what it has.
    let mut wrong = Vec::new();
    for step in STORY {
        if let Err(why) = replay.step(*step).await {
            wrong.push(format!("{:?}: {why:#}", step.examples()));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    let told = replay.all_events().await?;
    check_events(&told)?;
    replay.cluster.assert_healthy().await
}

#[test]
fn the_story_has_every_example() -> Result<()> {
    let document = Document::read()?;
    let names = |(operation, example): (&str, &str)| format!("{operation}/{example}");
    let told: BTreeSet<String> = STORY.iter().flat_map(|step| step.examples()).map(names).collect();
    let mut written = BTreeSet::new();
    for operation in &document.operations {
        let examples = operation.examples();
        // What is not served, is plain text, or does not end by itself has no example of success.
        let excused = operation.is_later() || operation.name == "metrics";
        ensure!(excused || !examples.is_empty(), "{} has no example", operation.name);
        written.extend(examples.iter().map(|example| names((&operation.name, example))));
    }
    assert_eq!(told, written);
    Ok(())
}

impl Replay {
    async fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Send(operation, example, caller) => {
                let reply = self.request(operation, example, caller)?.send(&self.base(operation)?).await?;
                self.judge(operation, example, &reply)
            }
            Step::SendUntil(operation, example) => {
                let wanted = self.document.operation(operation)?.example(example)?.answer.unwrap_or_default();
                let reply = until("the answer says so", PATIENCE, async || {
                    let reply = self.request(operation, example, Caller::Usual)?.send(&self.base(operation)?).await?;
                    let wrong = self.known.clone().learn("", &wanted, &reply.json());
                    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
                    Ok(Some(reply))
                })
                .await?;
                self.judge(operation, example, &reply)
            }
            Step::Hold(held, ends) => self.hold(held, ends).await,
            Step::Doubt => self.doubt().await,
        }
    }

    /// Sends a request that is held, and one that ends it.
    async fn hold(&mut self, held: (&str, &str), ends: (&str, &str)) -> Result<()> {
        let (request, base) = (self.request(held.0, held.1, Caller::Usual)?, self.base(held.0)?);
        let waiting = tokio::spawn(async move { request.send(&base).await });
        self.find_bundle(held).await?;
        let reply = self.request(ends.0, ends.1, Caller::Usual)?.send(&self.base(ends.0)?).await?;
        self.judge(ends.0, ends.1, &reply).context("what ends it")?;
        let reply = waiting.await??;
        self.judge(held.0, held.1, &reply).context("what was held")
    }

    /// Waits until the bundle of a held request is in the inbox with an agent that waits, and learns its id, which its
    /// agent is told only at the end.
    async fn find_bundle(&mut self, held: (&str, &str)) -> Result<()> {
        let answer = self.document.operation(held.0)?.example(held.1)?.answer.unwrap_or_default();
        let sample = answer["pending_id"].as_str().context("a held request is about a bundle")?.to_owned();
        let base = self.base("list_clarifications")?;
        let real = until("the bundle that an agent waits for", PATIENCE, async || {
            let inbox = Request::new("GET", "/api/v1/clarifications").bearer(&self.admin).send(&base).await?.json();
            let waited_for = items(&inbox["bundles"]).find(|bundle| bundle["agent_disconnected"] == false);
            Ok(waited_for.and_then(|bundle| bundle["pending_id"].as_str().map(str::to_owned)))
        })
        .await?;
        match self.known.real(&sample) {
            None => self.known.bind(&sample, &real),
            Some(known) => ensure!(known == real, "an agent waits for another bundle"),
        }
        Ok(())
    }

    /// Leaves a dispatch in doubt, in the story's task.
    async fn doubt(&mut self) -> Result<()> {
        let known = |sample: &str| self.known.real(sample).context("it is made");
        let (workspace, task) = (known(WORKSPACE)?.parse()?, known(TASK)?.parse()?);
        let (session, turn) = doubted(&self.cluster.store, workspace, task).await?;
        self.known.bind(PUSH_SESSION, &session.to_string());
        self.known.bind(DOUBTED_TURN, &turn.to_string());
        Ok(())
    }

    fn base(&self, operation: &str) -> Result<String> {
        let service = match self.document.operation(operation)?.service.as_str() {
            "respond-api" | "every" => &self.cluster.respond_apis,
            "orchestrator" => &self.cluster.orchestrators,
            "projection" => &self.cluster.projections,
            other => bail!("{other} is no service"),
        };
        Ok(service.first().context("the service runs")?.url())
    }

    fn request(&self, operation: &str, example: &str, caller: Caller) -> Result<Request> {
        let operation = self.document.operation(operation)?;
        let Example { parameters, body, status, .. } = operation.example(example)?;
        let (mut path, mut query, mut headers) = (operation.path.clone(), Vec::new(), Vec::new());
        for (place, name, value) in parameters {
            let value = match self.known.put_in(&value) {
                Value::String(text) => text,
                other => other.to_string(),
            };
            match place.as_str() {
                "path" => path = path.replace(&format!("{{{name}}}"), &value),
                "query" => query.push(format!("{name}={value}")),
                _ => headers.push((name, value)),
            }
        }
        ensure!(!path.contains('{'), "a parameter of {path} is missing");
        let target = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
        let mut request = Request::new(&operation.method, target);
        if let Some(token) = self.token(operation, caller)? {
            request = request.bearer(token);
        }
        for (name, value) in headers {
            request = request.header(&name, &value);
        }
        if let Some(body) = body {
            let body = self.known.put_in(&body);
            let schema = operation.body_schema().context("a body has a schema")?;
            // A request that is refused as malformed may well not fit.
            if status < 400 {
                check(&self.document.json, schema, &body, Draft202012).context("the request's body")?;
            }
            request = request.json(&body);
        }
        Ok(request)
    }

    fn token(&self, operation: &Operation, caller: Caller) -> Result<Option<&str>> {
        let known = |sample: &str| self.known.real(sample).context("the token is not made yet").map(Some);
        match (caller, operation.principal.as_deref()) {
            (Caller::Stranger, _) => Ok(Some("abk_none")),
            (Caller::Viewer, _) => known(VIEWER_TOKEN),
            (Caller::Usual, None) => Ok(None),
            (Caller::Usual, Some("person")) => Ok(Some(&self.admin)),
            (Caller::Usual, Some("agent")) => known(AGENT_TOKEN),
            (Caller::Usual, Some("service")) => Ok(Some("internal-token-of-the-tests")),
            (Caller::Usual, Some(other)) => bail!("{other} is no principal"),
        }
    }

    /// Compares an answer with its example and with its schema.
    fn judge(&mut self, operation: &str, example: &str, reply: &Reply) -> Result<()> {
        let operation = self.document.operation(operation)?;
        let wanted = operation.example(example)?;
        let text = String::from_utf8_lossy(&reply.body);
        ensure!(reply.status == wanted.status, "status {}, not {}: {text}", reply.status, wanted.status);
        let response = operation.response(&self.document, reply.status).context("the response is described")?;
        let Some(answer) = wanted.answer else {
            ensure!(reply.body.is_empty(), "there is a body: {text}");
            return Ok(());
        };
        let media_type = reply.header("content-type").unwrap_or_default().split(';').next().unwrap_or_default();
        let content = response["content"].get(media_type).with_context(|| format!("{media_type} is not described"))?;
        let real = reply.json();
        check(&self.document.json, &content["schema"], &real, Draft202012).context("the answer")?;
        check(&self.document.json, &content["schema"], &answer, Draft202012).context("the example")?;
        let wrong = self.known.learn("", &answer, &real);
        ensure!(wrong.is_empty(), "{}", wrong.join("; "));
        Ok(())
    }

    /// Everything that was told, as soon as the end of the story is among it.
    async fn all_events(&self) -> Result<Vec<Value>> {
        let base = self.base("list_events")?;
        until("the end of the story is told", PATIENCE, async || {
            let log = Request::new("GET", "/api/v1/events/log?limit=200").bearer(&self.admin).send(&base).await?.json();
            let events = log["events"].as_array().cloned().unwrap_or_default();
            Ok(events.iter().any(|event| event["type"] == "task.deleted").then_some(events))
        })
        .await
    }
}
