//! What a runner's answers make of a prompt.

use crate::support::{PATIENCE, Reply, Runner, SECRET, SHORT, dispatch, dispatch_by, not_accepted, pace, prompt, push};
use crate::support::{Seen, unknown};
use anyhow::Result;
use orchestrator::push::{Pace, Verdict};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_prompt_arrives_signed_and_whole() -> Result<()> {
    let runner = Runner::new([Reply::Status(202)]).await?;
    let (push, prompt) = (push(&runner.url(), "", pace())?, prompt());
    let verdict = push.dispatch("p", &prompt, Instant::now() + PATIENCE, &CancellationToken::new()).await;
    assert_eq!(verdict, Verdict::Accepted);
    let journal = runner.journal();
    let [Seen { method, path, id, content_type, body, signed }] = &journal[..] else {
        panic!("one request: {journal:?}");
    };
    assert_eq!((method.as_str(), path.as_str(), *signed), ("POST", "/hook", true));
    assert_eq!((id, content_type.as_deref()), (&prompt.turn_id.to_string(), Some("application/json")));
    let expected = json!({
        "turn_id": prompt.turn_id, "session_id": prompt.session_id, "generation": 3, "content": "Say \"grüß dich\"",
        "origin": "message", "pending_id": null,
    });
    assert_eq!(serde_json::from_slice::<serde_json::Value>(body)?, expected);
    Ok(())
}

/// The runner of these tests can tell a good signature from a bad one.
#[tokio::test]
async fn another_secret_is_noticed() -> Result<()> {
    let runner = Runner::new([Reply::Status(200)]).await?;
    let other = kit::config::AgentProfiles::parse(&format!(
        "[agents.p]\nruntime = \"push\"\nurl = \"{}\"\nsecret = \"{}\"",
        runner.url(),
        SECRET.replace('9', "8"),
    ));
    let push = orchestrator::push::Push::new(&other.map_err(anyhow::Error::msg)?, pace())?;
    assert_eq!(dispatch_by(&push, PATIENCE).await?, Verdict::Accepted);
    assert!(!runner.journal()[0].signed);
    Ok(())
}

#[tokio::test]
async fn success_and_conflict_accept() -> Result<()> {
    for status in [200, 201, 202, 204, 409] {
        let runner = Runner::new([Reply::Status(status)]).await?;
        assert_eq!(dispatch(&runner.url(), PATIENCE).await?, Verdict::Accepted, "{status}");
        assert_eq!(runner.journal().len(), 1, "{status}");
    }
    Ok(())
}

#[tokio::test]
async fn a_first_refusal_refuses_and_is_not_argued_with() -> Result<()> {
    for status in [400, 401, 404, 410, 422, 429] {
        let runner = Runner::new([Reply::Status(status)]).await?;
        let why = not_accepted(dispatch(&runner.url(), PATIENCE).await?)?;
        assert_eq!(why, format!("the runner answered {status}"));
        assert_eq!(runner.journal().len(), 1, "{status}");
    }
    Ok(())
}

#[tokio::test]
async fn a_doubtful_answer_is_asked_again_under_the_same_id() -> Result<()> {
    for status in [500, 502, 503, 408, 425, 301, 304] {
        let runner = Runner::new([Reply::Status(status), Reply::Status(status), Reply::Status(200)]).await?;
        assert_eq!(dispatch(&runner.url(), PATIENCE).await?, Verdict::Accepted, "{status}");
        let journal = runner.journal();
        assert_eq!(journal.len(), 3, "{status}");
        assert!(journal.iter().all(|seen| seen == &journal[0] && seen.signed), "{status}: {journal:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_doubt_that_time_does_not_end_is_told() -> Result<()> {
    for status in [500, 408, 425, 301] {
        let runner = Runner::new([Reply::Status(status)]).await?;
        let begun = Instant::now();
        let why = unknown(dispatch(&runner.url(), SHORT).await?)?;
        assert!(begun.elapsed() < SHORT + Duration::from_secs(5), "it ends with its time");
        assert!(why.contains(&status.to_string()), "{why}");
        assert!(runner.journal().len() > 1, "{status} is asked again");
    }
    Ok(())
}

#[tokio::test]
async fn a_refusal_after_a_doubt_refuses_nothing() -> Result<()> {
    let runner = Runner::new([Reply::Status(500), Reply::Status(422)]).await?;
    let why = unknown(dispatch(&runner.url(), SHORT).await?)?;
    assert!(why.contains("500") && why.contains("422"), "{why}");
    let runner = Runner::new([Reply::Status(500), Reply::Status(404), Reply::Status(409)]).await?;
    assert_eq!(dispatch(&runner.url(), PATIENCE).await?, Verdict::Accepted);
    Ok(())
}

#[tokio::test]
async fn a_profile_can_forbid_to_send_again() -> Result<()> {
    for reply in [Reply::Status(500), Reply::Status(408), Reply::Status(302)] {
        let runner = Runner::new([reply, Reply::Status(200)]).await?;
        unknown(dispatch_by(&push(&runner.url(), "resend = false", pace())?, PATIENCE).await?)?;
        assert_eq!(runner.journal().len(), 1);
    }
    let runner = Runner::new([Reply::Status(422)]).await?;
    not_accepted(dispatch_by(&push(&runner.url(), "resend = false", pace())?, PATIENCE).await?)?;
    Ok(())
}

#[tokio::test]
async fn redirects_are_not_followed() -> Result<()> {
    let elsewhere = Runner::new([Reply::Status(200)]).await?;
    let runner = Runner::new([Reply::Redirect(elsewhere.url())]).await?;
    unknown(dispatch(&runner.url(), SHORT).await?)?;
    assert!(elsewhere.journal().is_empty());
    Ok(())
}

#[tokio::test]
async fn the_body_of_an_answer_is_not_waited_for() -> Result<()> {
    let runner = Runner::new([Reply::Endless]).await?;
    assert_eq!(dispatch(&runner.url(), PATIENCE).await?, Verdict::Accepted);
    Ok(())
}

#[tokio::test]
async fn an_attempt_that_hangs_is_given_up_and_repeated() -> Result<()> {
    let runner = Runner::new([Reply::Nothing, Reply::Status(409)]).await?;
    let push = push(&runner.url(), "", Pace { attempt: SHORT, ..pace() })?;
    assert_eq!(dispatch_by(&push, PATIENCE).await?, Verdict::Accepted);
    assert_eq!(runner.journal().len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_runner_that_hangs_leaves_a_doubt() -> Result<()> {
    let runner = Runner::new([Reply::Nothing]).await?;
    let why = unknown(dispatch(&runner.url(), SHORT).await?)?;
    assert!(why.contains("no answer in time"), "{why}");
    assert_eq!(runner.journal().len(), 1);
    Ok(())
}

#[tokio::test]
async fn giving_up_while_the_runner_thinks_leaves_a_doubt() -> Result<()> {
    let runner = Runner::new([Reply::Nothing]).await?;
    let (push, cancel) = (push(&runner.url(), "", pace())?, CancellationToken::new());
    let (sent, prompt) = (cancel.clone(), prompt());
    let dispatch = push.dispatch("p", &prompt, Instant::now() + PATIENCE, &cancel);
    let give_up = async {
        runner.has_seen(1).await?;
        sent.cancel();
        anyhow::Ok(())
    };
    let (verdict, given_up) = tokio::join!(dispatch, give_up);
    given_up?;
    assert!(unknown(verdict)?.contains("given up"));
    Ok(())
}

#[tokio::test]
async fn what_is_not_begun_is_not_accepted() -> Result<()> {
    let runner = Runner::new([Reply::Status(200)]).await?;
    let push = push(&runner.url(), "", pace())?;
    not_accepted(dispatch_by(&push, Duration::ZERO).await?)?;
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    not_accepted(push.dispatch("p", &prompt(), Instant::now() + PATIENCE, &cancelled).await)?;
    let (to, always) = (Instant::now() + PATIENCE, CancellationToken::new());
    let why = not_accepted(push.dispatch("q", &prompt(), to, &always).await)?;
    assert!(why.contains('q'), "{why}");
    assert!(runner.journal().is_empty());
    Ok(())
}
