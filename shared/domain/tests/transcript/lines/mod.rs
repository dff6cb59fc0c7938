//! What the specification says, line by line: each test names the sentence that it holds the code to.

mod events;
mod rows;
mod told;

use crate::world::World;
use domain::transcript::{Wire, build};
use serde_json::{Value, json};

pub(super) fn body(wire: Wire, world: &World) -> Vec<Value> {
    let body = build(wire, &world.ledger).expect("the rows are sound");
    serde_json::from_str(&body).expect("a body is a list")
}

pub(super) fn messages(world: &World) -> Value {
    Value::Array(body(Wire::Anthropic, world))
}

/// A session whose model is being asked for `prompt`.
pub(super) fn asked(wire: Wire, prompt: &str) -> World {
    let mut world = World::new(wire);
    ask(&mut world, prompt);
    world
}

pub(super) fn ask(world: &mut World, prompt: &str) {
    world.send(prompt, true);
    world.dispatch();
    world.request();
}

pub(super) fn user(text: &str) -> Value {
    json!({ "role": "user", "content": [{ "type": "text", "text": text }] })
}

pub(super) fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] })
}

/// What the model is told of a call: the words, and whether they are an error.
pub(super) fn result(world: &World, id: &str) -> (String, bool) {
    let messages = messages(world);
    let blocks = messages.as_array().into_iter().flatten().flat_map(|message| message["content"].as_array());
    let found = blocks.flatten().find(|block| block["tool_use_id"] == id).expect("the call has a result");
    (found["content"].as_str().unwrap_or_default().to_owned(), found["is_error"] == true)
}
