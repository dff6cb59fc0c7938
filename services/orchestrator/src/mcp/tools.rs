//! The tools as clients list them and models read them.

use domain::ask::{
    CONTEXT_MAX_BYTES, DESCRIPTION_MAX_CHARS, ID_MAX_CHARS, LABEL_MAX_CHARS, OPTIONS_MAX, PROMPT_MAX_CHARS,
    QUESTIONS_MAX, TITLE_MAX_CHARS,
};
use serde_json::{Value, json};

/// The tool that asks. Not `ask_user`: a widespread client has a tool of its own by that name, and drops ours.
pub(super) const ASK_PERSON: &str = "ask_person";
/// The tool that fetches answers.
pub(super) const COLLECT_ANSWERS: &str = "collect_answers";
/// Most bundles acknowledged in one call.
pub(super) const ACK_MAX: usize = 100;

/// What a model is told about the server as a whole.
pub(super) const INSTRUCTIONS: &str = "Askback puts your questions to the people who follow this task and brings you \
    their answers. Ask with `ask_person`. At the start of your work, and after a call that was cut off, look for answers \
    that came meanwhile with `collect_answers`.";

const ASK_DESCRIPTION: &str = "Ask the people who follow this task, and wait for the answer. Use it whenever you need a \
    decision, an approval, a preference or a fact that only a person can give. Use it instead of your own client's \
    question tool (such as AskUserQuestion, ask_user, ask_user_question or request_user_input): those reach only a \
    person in front of this very terminal, and often nobody. Put everything you want to know into one call. The call \
    returns when a person has answered, which can take hours: do not ask again meanwhile. After a time-out or an error \
    call `collect_answers`, or make exactly the same call again: it is not shown twice. Only the outcome `answered` is \
    an answer; a skip or silence is never consent.";

const COLLECT_DESCRIPTION: &str = "Fetch answers of people that have not reached you: after a call of `ask_person` that \
    timed out or was cut off, after the outcome `no_response`, and when you begin to work. Never waits. Answers come \
    again until you acknowledge them: call it once more with their `pending_id`s in `ack`.";

/// What `tools/list` answers.
pub(super) fn list() -> Value {
    // Clients run calls of a tool that only reads at the same time, and ask nobody before they make one. Both is right
    // here: asking a person changes nothing but what the person sees.
    let annotations = |title: &str| {
        json!({
            "title": title,
            "readOnlyHint": true,
            "destructiveHint": false,
            "idempotentHint": true,
            "openWorldHint": true,
        })
    };
    let at_hand = json!({ "anthropic/alwaysLoad": true });
    json!({ "tools": [
        {
            "name": ASK_PERSON,
            "title": "Ask a person",
            "description": ASK_DESCRIPTION,
            "inputSchema": ask_input(),
            "outputSchema": outcome(),
            "annotations": annotations("Ask a person"),
            "_meta": at_hand,
        },
        {
            "name": COLLECT_ANSWERS,
            "title": "Collect answers",
            "description": COLLECT_DESCRIPTION,
            "inputSchema": collect_input(),
            "outputSchema": collected(),
            "annotations": annotations("Collect answers"),
            "_meta": at_hand,
        },
    ] })
}

fn ask_input() -> Value {
    let id = |what: &str| json!({ "type": "string", "pattern": "^[a-z0-9_]+$", "maxLength": ID_MAX_CHARS, "description": what });
    let option = json!({
        "type": "object",
        "properties": {
            "label": { "type": "string", "maxLength": LABEL_MAX_CHARS, "description": "What the person chooses by." },
            "description": {
                "type": "string", "maxLength": DESCRIPTION_MAX_CHARS, "description": "What choosing it means."
            },
            "option_id": id("A name for the option in the answer."),
        },
        "required": ["label"],
    });
    let question = json!({
        "type": "object",
        "properties": {
            "prompt": {
                "type": "string",
                "maxLength": PROMPT_MAX_CHARS,
                "description": "The question, complete in itself: the person does not see your conversation.",
            },
            "title": { "type": "string", "maxLength": TITLE_MAX_CHARS, "description": "A short heading." },
            "question_id": id("A name for the question in the answer; q1, q2, … if absent."),
            "options": {
                "type": "array",
                "items": option,
                "maxItems": OPTIONS_MAX,
                "description": "None, or at least two. The person can always answer in own words as well.",
            },
            "multi_select": { "type": "boolean", "description": "Whether several options may be chosen." },
        },
        "required": ["prompt"],
    });
    json!({
        "type": "object",
        "properties": {
            "questions": { "type": "array", "items": question, "minItems": 1, "maxItems": QUESTIONS_MAX },
            "context": {
                "type": "string",
                "maxLength": CONTEXT_MAX_BYTES,
                "description": "What a person needs to know to answer: what you do, what you found, what depends on it.",
            },
            "context_paragraphs": {
                "type": "array", "items": { "type": "string" }, "description": "The same, in paragraphs."
            },
        },
        "required": ["questions"],
    })
}

fn outcome() -> Value {
    let given = json!({
        "type": "object",
        "properties": {
            "selected_options": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": { "option_id": { "type": "string" }, "label": { "type": "string" } },
                    "required": ["option_id", "label"],
                },
            },
            "custom_text": { "type": "string" },
        },
        "required": ["selected_options", "custom_text"],
    });
    let not_given = json!({
        "type": "object",
        "properties": { "answered": { "type": "boolean", "const": false } },
        "required": ["answered"],
    });
    json!({
        "type": "object",
        "properties": {
            "outcome": {
                "type": "string",
                "enum": ["answered", "skipped", "cancelled", "expired", "superseded", "no_response"],
            },
            "pending_id": { "type": "string", "description": "The bundle of these questions." },
            "answers": {
                "type": "object",
                "additionalProperties": { "anyOf": [given, not_given] },
                "description": "By question_id; empty unless answered.",
            },
            "reason": { "type": ["string", "null"], "description": "The words of a person who skipped." },
            "message": { "type": ["string", "null"], "description": "What the outcome means." },
            "can_wait_again": {
                "type": "boolean", "description": "Whether the same call again goes on with this wait."
            },
        },
        "required": ["outcome", "pending_id", "answers", "reason", "message", "can_wait_again"],
    })
}

fn collect_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "pending_id": { "type": "string", "format": "uuid", "description": "Only the answer to this one." },
            "ack": {
                "type": "array",
                "items": { "type": "string", "format": "uuid" },
                "maxItems": ACK_MAX,
                "description": "Answers that you have: they do not come again.",
            },
        },
    })
}

fn collected() -> Value {
    json!({
        "type": "object",
        "properties": {
            "answers": { "type": "array", "items": outcome(), "description": "Oldest first." },
            "remaining": { "type": "integer", "minimum": 0, "description": "How many more there are." },
        },
        "required": ["answers", "remaining"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_listed_with_what_clients_go_by() {
        let list = list();
        let tools = list["tools"].as_array().expect("it is a list");
        let names: Vec<_> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names, ["ask_person", "collect_answers"]);
        for tool in tools {
            assert_eq!(tool["_meta"]["anthropic/alwaysLoad"], true);
            assert_eq!(tool["annotations"]["readOnlyHint"], true);
            assert_eq!(tool["inputSchema"]["type"], "object");
            assert_eq!(tool["outputSchema"]["type"], "object");
        }
    }
}
