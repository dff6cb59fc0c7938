//! The names and shapes of the contract, checked against the JSON it prints.

use super::*;
use serde_json::{Value, json};
use std::str::FromStr;
use strum::IntoEnumIterator;

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the value has the contract's shape")
}

#[test]
fn words_read_the_same_in_json_and_in_text() {
    for state in BundleState::iter() {
        assert_eq!(serde_json::to_value(state).expect("a word is a string"), json!(state.as_str()));
        assert_eq!(BundleState::from_str(state.as_str()), Ok(state));
    }
    assert_eq!(SessionState::WaitingForInput.to_string(), "waiting_for_input");
    assert_eq!(AskOutcome::NoResponse.as_str(), "no_response");
    assert!(Role::Viewer < Role::Member && Role::Member < Role::Operator && Role::Operator < Role::Admin);
}

#[test]
fn the_contracts_respond_body_passes_through_unchanged() {
    let id = "0190f3c2-0000-7000-8000-000000000001";
    let body = json!({
        "pending_id": id, "session_id": id, "task_id": id, "turn_id": id,
        "outcome": "answered", "delivery": "live", "successor_turn_id": null,
        "response": {
            "answers": [{ "question_id": "q1", "selected_options": ["q1_opt2"], "custom_text": "" }],
            "rejected": false, "reject_reason": "", "responded_at": "2026-11-30T08:00:00.500000Z",
            "actor": { "id": id, "name": "Ada" }
        },
        "pending_action": null, "pending_action_revision": { "epoch": "1", "sequence": 7 }
    });
    let outcome: RespondOutcome = parse(body.clone());
    assert_eq!(outcome.pending_action_revision, PendingActionRevision { epoch: 1, sequence: 7 });
    assert_eq!(serde_json::to_value(&outcome).expect("the outcome is plain data"), body);
}

#[test]
fn a_revision_compares_epoch_as_a_number_before_sequence() {
    let old: PendingActionRevision = parse(json!({ "epoch": "9", "sequence": 100 }));
    let new: PendingActionRevision = parse(json!({ "epoch": "10", "sequence": 1 }));
    assert!(old < new);
}

#[test]
fn an_agent_reads_an_answer_and_the_lack_of_one() {
    let view = json!({
        "pending_id": "0190f3c2-0000-7000-8000-000000000001", "state": "terminal", "outcome": "answered",
        "answers": {
            "q1": { "selected_options": [{ "option_id": "q1_opt1", "label": "yes" }], "custom_text": "" },
            "q2": { "answered": false }
        },
        "reason": null, "message": null
    });
    let parsed: AgentView = parse(view.clone());
    assert_eq!(parsed.answers["q2"], AgentAnswer::not_given());
    assert_eq!(serde_json::to_value(&parsed).expect("the view is plain data"), view);
}

#[test]
fn metadata_finds_its_own_shape_again() {
    let metadata = json!({
        "pending_id": "0190f3c2-0000-7000-8000-000000000001", "question_id": "q1", "question_index": 0,
        "question_total": 1,
        "question": { "question_id": "q1", "title": "", "prompt": "Deploy?", "options": [], "multi_select": false },
        "context": "", "status": "pending", "response": null, "agent_disconnected": false
    });
    assert!(matches!(parse(metadata), MessageMetadata::Clarification(_)));
    assert_eq!(parse::<MessageMetadata>(json!({})), MessageMetadata::empty());
    assert!(matches!(parse(json!({ "interrupted": true })), MessageMetadata::Other(_)));
}

#[test]
fn a_lifecycle_turn_is_marked_and_others_are_not() {
    assert_eq!(serde_json::to_value(TurnMetadata::default()).expect("plain data"), json!({}));
    let lifecycle = TurnMetadata { lifecycle_only: true };
    assert_eq!(serde_json::to_value(lifecycle).expect("plain data"), json!({ "lifecycle_only": true }));
}

#[test]
fn a_question_row_shows_its_own_entry_alone() {
    let entry = |id: &str| AnswerEntry { question_id: id.into(), selected_options: vec![], custom_text: "x".into() };
    let response = Response {
        answers: vec![entry("q1"), entry("q2")],
        rejected: false,
        reject_reason: String::new(),
        responded_at: crate::time::Timestamp::from_micros(1),
        actor: Actor { id: "a".into(), name: "Ada".into() },
    };
    assert_eq!(response.for_question("q2").answers, vec![entry("q2")]);
    assert_eq!(response.outcome(), ResponseOutcome::Answered);
}
