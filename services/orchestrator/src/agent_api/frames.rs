//! `POST /agent/v1/frames`: what the agent tells about its work.

use super::caller::Caller;
use super::{App, invalid, patience};
use crate::transact::{With, problem};
use axum::extract::State;
use domain::ask::check_key;
use domain::field_error::FieldError;
use domain::object::MessageType;
use domain::session::decide::{Frame, Frames, StopReason};
use kit::serve::{Json, NoQuery};
use wire::Problem;
use wire::agent;
use wire::problem::Code;

/// The longest text of a frame, in bytes.
const TEXT_MAX_BYTES: usize = 64 * 1024;
/// The longest account of an error, in characters.
const ERROR_MAX_CHARS: usize = 2_000;
/// The most frames in one request.
const FRAMES_MAX: usize = 1_000;

/// Stores frames in order, each once.
pub(super) async fn frames(
    State(app): State<App>,
    _: NoQuery,
    caller: Caller,
    Json(body): Json<agent::Frames>,
) -> Result<axum::Json<agent::FramesAccepted>, Problem> {
    let agent::Frames { execution_id, generation, first_seq, frames } = body;
    let command = Frames {
        epoch: caller.term.epoch,
        execution_id,
        generation,
        first_seq,
        frames: checked(first_seq, frames)?,
        released: caller.released.clone(),
        grace: app.times.grace,
    };
    let with = With::traceparent(caller.traceparent);
    let accepted = app.perform(caller.session, command, with, patience(&app)).await.map_err(problem)?;
    app.executions.touch(caller.session);
    Ok(axum::Json(agent::FramesAccepted { accepted: accepted.reply.accepted, cancel_requested: false }))
}

/// The frames as the domain takes them, or every rule that they break.
fn checked(first_seq: i64, frames: Vec<agent::Frame>) -> Result<Vec<Frame>, Problem> {
    if first_seq < 1 {
        return Err(invalid("/first_seq", "frames are numbered from 1"));
    }
    if !(1..=FRAMES_MAX).contains(&frames.len()) {
        return Err(invalid("/frames", format!("must hold 1 to {FRAMES_MAX} frames")));
    }
    let last = frames.len() - 1;
    let mut errors = Vec::new();
    let mut taken = Vec::with_capacity(frames.len());
    for (index, frame) in frames.into_iter().enumerate() {
        if index < last && matches!(frame, agent::Frame::Complete { .. }) {
            errors.push(FieldError::new(format!("/frames/{index}"), "nothing can follow the end of the turn"));
        }
        match frame_of(index, frame) {
            Ok(frame) => taken.push(frame),
            Err(mut wrong) => errors.append(&mut wrong),
        }
    }
    if errors.is_empty() {
        Ok(taken)
    } else {
        Err(Problem::new(Code::InvalidRequest, "the request is not well-formed").with_errors(errors))
    }
}

fn frame_of(index: usize, frame: agent::Frame) -> Result<Frame, Vec<FieldError>> {
    let at = |member: &str| format!("/frames/{index}{member}");
    match frame {
        agent::Frame::Message { text, key, delta } => text_of(MessageType::Message, text, key, delta, at),
        agent::Frame::Thinking { text, key, delta } => text_of(MessageType::Thinking, text, key, delta, at),
        agent::Frame::ToolCall { .. } | agent::Frame::ToolUpdate { .. } => {
            Err(vec![FieldError::new(at("/type"), "this version does not serve tool calls yet")])
        }
        agent::Frame::SessionInfo { data } => Ok(Frame::Info { kind: "session_info", data }),
        agent::Frame::SessionStatus { data } => Ok(Frame::Info { kind: "session_status", data }),
        agent::Frame::Complete { stop_reason, error } => {
            if error.as_ref().is_some_and(|error| error.chars().count() > ERROR_MAX_CHARS) {
                let detail = format!("must be at most {ERROR_MAX_CHARS} characters");
                return Err(vec![FieldError::new(at("/error"), detail)]);
            }
            let stop_reason = match stop_reason {
                agent::StopReason::EndTurn => StopReason::EndTurn,
                agent::StopReason::Cancelled => StopReason::Cancelled,
                agent::StopReason::Error => StopReason::Error,
            };
            Ok(Frame::Complete { stop_reason, error })
        }
    }
}

fn text_of(
    kind: MessageType,
    text: String,
    key: Option<String>,
    delta: bool,
    at: impl Fn(&str) -> String,
) -> Result<Frame, Vec<FieldError>> {
    let mut errors: Vec<FieldError> = Vec::new();
    if text.len() > TEXT_MAX_BYTES {
        errors.push(FieldError::new(at("/text"), format!("must be at most {TEXT_MAX_BYTES} bytes")));
    }
    errors.extend(key.as_deref().and_then(|key| check_key(&at("/key"), key).err()));
    if errors.is_empty() { Ok(Frame::Text { kind, text, key, delta }) } else { Err(errors) }
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use http::Method;
    use wire::openapi::{Endpoint, Example, samples};
    let frames = |generation, first_seq, frames| agent::Frames {
        execution_id: samples::EXECUTION,
        generation,
        first_seq,
        frames,
    };
    let text = samples::message().content;
    let message = || agent::Frame::Message { text: text.clone(), key: None, delta: false };
    let complete = agent::Frame::Complete { stop_reason: agent::StopReason::EndTurn, error: None };
    let accepted = |accepted| agent::FramesAccepted { accepted, cancel_requested: false };
    let gap = domain::session::Rejection::FrameGap { expected: 2 };
    Endpoint::agent("send_frames", Method::POST, "/agent/v1/frames", "What the agent tells about its work.")
        .details("Stored in order, each once: a repeat is answered the same. Takes up to 1 MiB.")
        .takes::<agent::Frames>()
        .gives::<agent::FramesAccepted>(200, "The highest number that is stored.")
        .refuses([Code::NotFound, Code::SessionEnded, Code::StaleGeneration, Code::FrameGap])
        .example(Example::new("a_message").body(frames(1, 1, vec![message()])).gives(200, accepted(1)))
        .example(Example::new("one_is_missing").body(frames(1, 3, vec![message()])).refused(&gap.into()))
        .example(Example::new("the_end").body(frames(1, 2, vec![complete])).gives(200, accepted(2)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json};

    fn check(frames: Value) -> Result<Vec<Frame>, Vec<String>> {
        let frames = from_value(frames).expect("the frames have the shape of frames");
        checked(1, frames).map_err(|problem| problem.errors().iter().map(|error| error.pointer.clone()).collect())
    }

    #[test]
    fn frames_become_the_domains() {
        let frames = check(json!([
            { "type": "message", "text": "hi", "key": "m", "delta": true },
            { "type": "session_status", "data": { "busy": true } },
            { "type": "complete", "stop_reason": "end_turn" },
        ]));
        let text = Frame::Text { kind: MessageType::Message, text: "hi".into(), key: Some("m".into()), delta: true };
        let status = Frame::Info { kind: "session_status", data: json!({ "busy": true }) };
        let end = Frame::Complete { stop_reason: StopReason::EndTurn, error: None };
        assert_eq!(frames, Ok(vec![text, status, end]));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let message = json!({ "type": "message", "text": "x" });
        let complete = json!({ "type": "complete", "stop_reason": "end_turn" });
        let long = json!({ "type": "thinking", "text": "x".repeat(TEXT_MAX_BYTES + 1), "key": "" });
        let call = json!({ "type": "tool_call", "call_id": "c", "name": "n", "input": {}, "permission": "auto" });
        for (frames, pointers) in [
            (json!([]), vec!["/frames"]),
            (json!([complete, message]), vec!["/frames/0"]),
            (json!([message, long]), vec!["/frames/1/text", "/frames/1/key"]),
            (json!([call]), vec!["/frames/0/type"]),
        ] {
            assert_eq!(check(frames), Err(pointers.into_iter().map(str::to_owned).collect()));
        }
        assert!(checked(0, Vec::new()).is_err());
    }
}
