//! The event stream and the event log.

use crate::world::{STREAM_TIMES, World, each};
use domain::cloud_event::CloudEvent;
use domain::ids::{SessionId, TaskId, WorkspaceId};
use domain::object::Role;
use http::StatusCode;
use kit::idgen::IdGen;
use std::time::Duration;
use store::{NewTask, TaskWrite};
use tokio::time::{sleep, timeout};
use wire::client::{EventStream, Streamed};
use wire::queries::{EventLogQuery, EventsQuery};
use wire::{Client, Code};

const PATIENCE: Duration = Duration::from_secs(30);

/// The next event, with the place to resume after it.
async fn next(stream: &mut EventStream) -> (String, CloudEvent) {
    match timeout(PATIENCE, stream.next()).await.expect("an event comes").expect("the stream is sound") {
        Some(Streamed::Event { place, event }) => (place, *event),
        other => panic!("{other:?} instead of an event"),
    }
}

/// The next events, up to one at a position.
async fn upto(stream: &mut EventStream, position: i64) -> Vec<CloudEvent> {
    let mut all: Vec<CloudEvent> = Vec::new();
    while all.last().is_none_or(|last| last.position < position) {
        all.push(next(stream).await.1);
    }
    all
}

/// How the stream ends, once it does.
async fn end(stream: &mut EventStream) -> Option<Streamed> {
    let ended = async {
        loop {
            match stream.next().await.expect("the stream is sound") {
                Some(Streamed::Event { .. }) => {}
                other => return other,
            }
        }
    };
    timeout(PATIENCE, ended).await.expect("the stream ends")
}

async fn whole_log(client: &Client) -> Vec<CloudEvent> {
    let mut query = EventLogQuery { limit: Some(7), ..EventLogQuery::default() };
    let mut all = Vec::new();
    loop {
        let part = client.event_log(&query).await.expect("the log is there");
        if part.events.is_empty() {
            assert_eq!(Some(part.next_after), query.after, "an empty part leads nowhere");
            return all;
        }
        query.after = Some(part.next_after);
        all.extend(part.events);
    }
}

fn positions(events: &[CloudEvent]) -> Vec<i64> {
    events.iter().map(|event| event.position).collect()
}

#[tokio::test]
async fn a_stream_begins_with_the_next_event_and_the_log_with_the_oldest() {
    let world = World::new().await;
    let workspace = world.workspace("Ops").await;
    let task = world.task(workspace, "Before").await;
    world.place_events().await;
    let client = world.client(&world.admin).await;
    let mut stream = client.events(&EventsQuery::default()).await.expect("it opens");
    let (session, _) = world.session(workspace, task, Some("Go")).await;
    world.place_events().await;
    let log = whole_log(&client).await;
    assert_eq!(positions(&log), (1..).take(log.len()).collect::<Vec<_>>());
    assert_eq!(log[0].kind, "task.created");
    let streamed = upto(&mut stream, log[log.len() - 1].position).await;
    assert_eq!(streamed, log[1..]);
    let first = streamed.iter().find(|event| event.sessionseq.is_some()).expect("a session tells of itself");
    assert_eq!((first.kind.as_str(), first.sessionseq, first.sessionid), ("session.created", Some(1), Some(session)));
    assert_eq!(first.subject, format!("task-sessions/{session}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_stream_that_breaks_again_and_again_resumes_without_gap_or_duplicate() {
    let world = World::new().await;
    let workspace = world.workspace("Ops").await;
    let client = world.client(&world.admin).await;
    let start = client.event_log(&EventLogQuery::default()).await.expect("the log is there").next_after;
    let writing = async {
        for round in 0..40 {
            let task = world.task(workspace, "T").await;
            world.session(workspace, task, Some("Go")).await;
            if round % 3 == 0 {
                world.place_events().await;
            }
        }
        world.place_events().await;
        world.store.event_horizon().await.expect("the database answers").head
    };
    let reading = async {
        let (mut after, mut seen) = (start, Vec::new());
        // Ends by the outer select: nobody knows yet how many there will be.
        for length in (1..).map(|round| round % 13 + 1) {
            let query = EventsQuery { after: Some(after.clone()), ..EventsQuery::default() };
            let mut stream = client.events(&query).await.expect("it resumes");
            for _ in 0..length {
                let (place, event) = next(&mut stream).await;
                (after, seen) = (place, [seen, vec![event]].concat());
                if seen.len() >= 100 {
                    return seen;
                }
            }
        }
        seen
    };
    let (head, seen) = tokio::join!(writing, reading);
    assert!(head >= 100, "only {head} events were written");
    assert_eq!(positions(&seen), (1..=100).collect::<Vec<_>>());
    assert_eq!(seen, whole_log(&client).await[..100]);
}

/// A filter, and whether it lets an event through.
type Case<'a> = (EventsQuery, &'a dyn Fn(&CloudEvent) -> bool);

#[tokio::test]
async fn filters_let_the_same_through_in_the_stream_and_in_the_log() {
    let world = World::new().await;
    let workspace = world.workspace("Ops").await;
    let (one, two) = (world.task(workspace, "One").await, world.task(workspace, "Two").await);
    let (session, _) = world.session(workspace, one, Some("Go")).await;
    world.session(workspace, one, None).await;
    world.session(workspace, two, None).await;
    world.ask(session, 1).await;
    world.place_events().await;
    let client = world.client(&world.admin).await;
    let start = Some("1-0".to_owned());
    let all = whole_log(&client).await;
    let cases: [Case<'_>; 4] = [
        (EventsQuery { task_id: Some(one), ..EventsQuery::default() }, &|event| event.taskid == one),
        (EventsQuery { session_id: Some(session), task_id: Some(one), ..EventsQuery::default() }, &|event| {
            event.sessionid == Some(session)
        }),
        (
            EventsQuery { types: Some("session.created,clarification.requested".to_owned()), ..EventsQuery::default() },
            &|event| ["session.created", "clarification.requested"].contains(&event.kind.as_str()),
        ),
        (
            EventsQuery {
                workspace_id: Some(workspace),
                types: Some("task.created".to_owned()),
                ..EventsQuery::default()
            },
            &|event| event.kind == "task.created",
        ),
    ];
    for (query, wanted) in cases {
        let expected: Vec<CloudEvent> = all.iter().filter(|event| wanted(event)).cloned().collect();
        assert!(expected.len() > 1 && expected.len() < all.len(), "{query:?} shows nothing");
        let EventsQuery { workspace_id, task_id, session_id, types, .. } = query.clone();
        let log = EventLogQuery { workspace_id, task_id, session_id, types, after: None, limit: Some(200) };
        assert_eq!(client.event_log(&log).await.expect("the log is there").events, expected, "{query:?}");
        let mut stream = client.events(&EventsQuery { after: start.clone(), ..query }).await.expect("it opens");
        assert_eq!(upto(&mut stream, expected[expected.len() - 1].position).await, expected);
    }
}

#[tokio::test]
async fn nobody_sees_events_of_workspaces_they_do_not_belong_to() {
    let world = World::new().await;
    let (mine, foreign) = (world.workspace("Mine").await, world.workspace("Foreign").await);
    let token = world.token("m", Role::Viewer, Some(mine)).await;
    let client = world.client(&token).await;
    let mut stream = client.events(&EventsQuery::default()).await.expect("it opens");
    for workspace in [foreign, mine, foreign, mine] {
        let task = world.task(workspace, "T").await;
        world.session(workspace, task, None).await;
    }
    world.place_events().await;
    let log = whole_log(&client).await;
    assert!(log.len() >= 4 && log.iter().all(|event| event.workspaceid == mine), "{log:#?}");
    assert_eq!(upto(&mut stream, log[log.len() - 1].position).await, log);
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_before_the_first_byte() {
    let world = World::new().await;
    let (mine, foreign) = (world.workspace("Mine").await, world.workspace("Foreign").await);
    let (task, other) = (world.task(mine, "T").await, world.task(foreign, "T").await);
    let (session, agent) = world.session(mine, task, None).await;
    let (hidden, _) = world.session(foreign, other, None).await;
    world.place_events().await;
    let token = world.token("m", Role::Viewer, Some(mine)).await;
    let unknown: SessionId = IdGen.id();
    let no_task: TaskId = IdGen.id();
    let no_workspace: WorkspaceId = IdGen.id();
    for (query, status, code) in [
        (format!("session_id={hidden}"), 404, Code::NotFound),
        (format!("session_id={unknown}"), 404, Code::NotFound),
        (format!("task_id={other}"), 404, Code::NotFound),
        (format!("task_id={no_task}"), 404, Code::NotFound),
        (format!("workspace_id={foreign}"), 404, Code::NotFound),
        (format!("workspace_id={no_workspace}"), 404, Code::NotFound),
        (format!("session_id={session}&task_id={other}"), 404, Code::NotFound),
        ("session_id=x".to_owned(), 400, Code::InvalidRequest),
        ("types=session.creatd".to_owned(), 400, Code::InvalidRequest),
        ("types=".to_owned(), 400, Code::InvalidRequest),
        ("since=1-1".to_owned(), 400, Code::InvalidRequest),
        ("after=7".to_owned(), 400, Code::InvalidRequest),
        ("after=1-100000".to_owned(), 409, Code::PositionUnknown),
        ("after=9-1".to_owned(), 409, Code::PositionUnknown),
    ] {
        for path in ["events", "events/log"] {
            let (found, problem) = world.get(&token, &format!("/api/v1/{path}?{query}")).await;
            assert_eq!(
                (found.as_u16(), &problem["code"]),
                (status, &code.to_string().into()),
                "{path}?{query}: {problem}"
            );
        }
    }
    for path in ["/api/v1/events", "/api/v1/events/log"] {
        assert_eq!(world.send(None, path).await.0, StatusCode::UNAUTHORIZED);
        assert_eq!(world.get(&agent, path).await.0, StatusCode::FORBIDDEN);
    }
    let log = world.read(&token, "/api/v1/events/log?limit=2").await;
    assert_eq!(each(&log["events"], "/position").len(), 2);
}

#[tokio::test]
async fn a_stream_ends_when_its_token_is_revoked_and_when_the_process_ends() {
    let world = World::new().await;
    let workspace = world.workspace("Ops").await;
    let (token, id) = world.token_with_id("m", Role::Viewer, Some(workspace)).await;
    let mut revoked = world.client(&token).await.events(&EventsQuery::default()).await.expect("it opens");
    let mut other = world.client(&world.admin).await.events(&EventsQuery::default()).await.expect("it opens");
    world.task(workspace, "T").await;
    world.place_events().await;
    let (_, seen) = next(&mut revoked).await;
    assert_eq!(next(&mut other).await.1, seen);
    world.store.revoke_token(&store::Scope::All, id, None).await.expect("it is revoked");
    assert_eq!(end(&mut revoked).await, None);
    world.shutdown.request();
    assert!(world.shutdown.complete(std::future::ready(())).await, "something did not end");
    assert_eq!(end(&mut other).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_slow_reader_is_cut_off_with_a_reason_and_resumes_where_it_was() {
    let world = World::new().await;
    let workspace = world.workspace("Ops").await;
    let client = world.client(&world.admin).await;
    let mut stream = client.events(&EventsQuery::default()).await.expect("it opens");
    // More than all buffers on the way hold, and far more than the chunk that is put together.
    let text = "x".repeat(256 << 10);
    for _ in 0..100 {
        let write = TaskWrite { ids: IdGen.ids(), traceparent: None, key: None };
        let task = NewTask { workspace, title: "Large", description: &text };
        world.store.create_task(task, write).await.expect("a task");
    }
    world.place_events().await;
    // It has begun to flow. What is tested: from now on time passes and nothing is read.
    let (place, first) = next(&mut stream).await;
    sleep(STREAM_TIMES.stall * 3).await;
    let (mut seen, mut after) = (vec![first.position], Some(place));
    let why = loop {
        match timeout(PATIENCE, stream.next()).await.expect("the stream goes on").expect("it is sound") {
            Some(Streamed::Event { place, event }) => {
                after = Some(place);
                seen.push(event.position);
            }
            other => break other,
        }
    };
    assert_eq!(why, Some(Streamed::Lagged));
    assert!(seen.len() < 100, "{} events came", seen.len());
    let mut resumed = client.events(&EventsQuery { after, ..EventsQuery::default() }).await.expect("it resumes");
    seen.extend(positions(&upto(&mut resumed, 100).await));
    assert_eq!(seen, (1..=100).collect::<Vec<_>>());
}
