//! Publishing, against a real nats-server that comes, goes and forgets. Runs with whichever nats-server stands first on
//! the `PATH`: CI runs it with the oldest and with the newest that is supported.

use anyhow::{Context as _, Result};
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::{self, consumer};
use devstack::TestNats;
use domain::cloud_event::{CloudEvent, EventPlace, PlacedEvent};
use domain::ids::{EventId, SessionId, TaskId, WorkspaceId};
use domain::time::Timestamp;
use events::{Broker, EventStream, PublishError, TopologyError, topology};
use futures::StreamExt as _;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(20);

fn event(position: i64) -> CloudEvent {
    CloudEvent::from(PlacedEvent {
        id: EventId(Uuid::from_u128(u128::from(position.unsigned_abs()))),
        workspace_id: WorkspaceId(Uuid::from_u128(1)),
        task_id: TaskId(Uuid::from_u128(2)),
        session_id: Some(SessionId(Uuid::from_u128(3))),
        session_seq: Some(position),
        kind: "session.message.added".to_owned(),
        stamp: Timestamp::from_micros(position),
        data: json!({ "text": "x".repeat(500) }),
        place: EventPlace { epoch: 1, position },
        written_by: "askback-test".to_owned(),
        traceparent: (position == 1).then(|| "00-aa-bb-01".to_owned()),
    })
}

fn events(positions: std::ops::RangeInclusive<i64>) -> Vec<CloudEvent> {
    positions.map(event).collect()
}

/// Opens the stream as soon as the server is there.
async fn open(broker: &Broker) -> Result<EventStream> {
    let opened = async {
        loop {
            match broker.open().await {
                Ok(stream) => return Ok(stream),
                Err(TopologyError::Unavailable(_)) => sleep(Duration::from_millis(20)).await,
                Err(other) => return Err(other),
            }
        }
    };
    Ok(timeout(PATIENCE, opened).await.context("the stream never came")??)
}

/// Positions in the stream from its beginning on, with the message's headers checked.
async fn stored(nats: &TestNats, count: usize) -> Result<Vec<i64>> {
    let context = jetstream::new(async_nats::connect(nats.url()).await?);
    let stream = context.get_stream(topology::STREAM).await?;
    let consumer = stream.create_consumer(consumer::pull::OrderedConfig::default()).await?;
    let mut messages = consumer.messages().await?.take(count);
    let mut positions = Vec::new();
    while let Some(message) = timeout(PATIENCE, messages.next()).await.context("messages are missing")? {
        let message = message?;
        let event: CloudEvent = serde_json::from_slice(&message.payload)?;
        let headers = message.headers.clone().context("every event has headers")?;
        assert_eq!(headers.get("Nats-Msg-Id").map(|id| id.to_string()), Some(event.id.to_string()));
        assert_eq!(headers.get("traceparent").map(|trace| trace.to_string()), event.traceparent);
        assert_eq!(message.subject.as_str(), events::subject::of_event(&event));
        positions.push(event.position);
    }
    Ok(positions)
}

#[tokio::test]
async fn the_stream_is_made_once_and_a_foreign_one_is_left_as_it_is() -> Result<()> {
    let nats = TestNats::start().await?;
    let broker = Broker::connect(nats.url()).await?;
    open(&broker).await?;
    open(&broker).await?;
    let context = jetstream::new(async_nats::connect(nats.url()).await?);
    let mut made = context.get_stream(topology::STREAM).await?;
    let config = made.info().await?.config.clone();
    assert_eq!((config.subjects, config.max_age), (vec!["askback.v1.>".to_owned()], topology::MAX_AGE));

    // What an operator changed stays, and does not keep anybody from publishing.
    let chosen = Config { max_age: Duration::from_secs(3_600), ..topology::wanted() };
    context.update_stream(chosen).await?;
    open(&broker).await?.publish(&events(1..=1), None).await?;
    assert_eq!(made.info().await?.config.max_age, Duration::from_secs(3_600));

    // What makes publishing impossible is said, and changed by nobody but the operator.
    let wrong = Config { subjects: vec!["elsewhere.>".to_owned()], ..topology::wanted() };
    context.update_stream(wrong).await?;
    let refused = broker.open().await.err().context("nothing can be published to that")?;
    assert!(matches!(refused, TopologyError::Different(_)), "{refused}");
    assert!(refused.to_string().contains("subjects is"), "{refused}");
    assert_eq!(made.info().await?.config.subjects, ["elsewhere.>"]);
    Ok(())
}

#[tokio::test]
async fn events_stand_in_the_stream_once_and_in_order_whatever_is_sent_again() -> Result<()> {
    let nats = TestNats::start().await?;
    let stream = open(&Broker::connect(nats.url()).await?).await?;
    assert_eq!(stream.tail().await?.sequence, 0);
    assert_eq!(stream.publish(&events(1..=300), Some(0)).await?, 300);
    let tail = stream.tail().await?;
    assert_eq!((tail.sequence, tail.last), (300, Some(event(300))));

    // A second publisher that knows less, or one that did not hear the acknowledgement, changes nothing.
    let behind = stream.publish(&events(290..=300), Some(289)).await;
    assert!(matches!(behind, Ok(300) | Err(PublishError::Moved)), "{behind:?}");
    // A gap: the stream does not have what should come before.
    let gap = stream.publish(&events(400..=401), Some(399)).await;
    assert!(matches!(gap, Err(PublishError::Moved)), "{gap:?}");
    // Sent again without a condition, what is known is dropped.
    stream.publish(&events(1..=300), None).await?;
    let after = stream.tail().await?;
    let known = after.last.context("the stream is not empty")?.position;
    assert_eq!(stream.publish(&events(known + 1..=320), Some(after.sequence)).await?, 320);
    assert_eq!(stored(&nats, 320).await?, (1..=320).collect::<Vec<_>>());
    Ok(())
}

#[tokio::test]
async fn a_killed_server_keeps_its_place_and_a_wiped_one_begins_anew() -> Result<()> {
    let mut nats = TestNats::start().await?;
    let broker = Broker::connect(nats.url()).await?;
    open(&broker).await?.publish(&events(1..=10), Some(0)).await?;
    nats.kill().await?;
    let away = async {
        while broker.open().await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, away).await?;
    nats.start_again().await?;
    let tail = open(&broker).await?.tail().await?;
    assert_eq!((tail.sequence, tail.last.map(|last| last.position)), (10, Some(10)));

    nats.kill().await?;
    nats.wipe().await?;
    nats.start_again().await?;
    let tail = open(&broker).await?.tail().await?;
    assert_eq!((tail.sequence, tail.last), (0, None));
    Ok(())
}

#[tokio::test]
async fn an_event_that_is_too_large_is_named_and_those_before_it_are_stored() -> Result<()> {
    let nats = TestNats::start().await?;
    let stream = open(&Broker::connect(nats.url()).await?).await?;
    let mut batch = events(1..=3);
    batch[1].data = json!({ "text": "x".repeat(2 << 20) });
    let refused = stream.publish(&batch, Some(0)).await;
    assert!(matches!(refused, Err(PublishError::TooLarge { position: 2 })), "{refused:?}");
    assert_eq!(stored(&nats, 1).await?, [1]);
    Ok(())
}

#[tokio::test]
async fn ten_thousand_events_take_no_second() -> Result<()> {
    let nats = TestNats::start().await?;
    let stream = open(&Broker::connect(nats.url()).await?).await?;
    let (mut after, began) = (0, Instant::now());
    for batch in events(1..=20_000).chunks(500) {
        after = stream.publish(batch, Some(after)).await?;
    }
    let took = began.elapsed();
    eprintln!("20,000 events in {took:?}");
    // Five times the bound: a debug build on a busy machine is not what the bound speaks of.
    assert!(took < Duration::from_secs(10), "20,000 events took {took:?}");
    Ok(())
}

#[tokio::test]
async fn who_follows_goes_on_soon_after_a_restart_and_sees_nothing_twice() -> Result<()> {
    let mut nats = TestNats::start().await?;
    let broker = Broker::connect(nats.url()).await?;
    let stream = open(&broker).await?;
    stream.publish(&events(1..=3), Some(0)).await?;
    let mut following = stream.follow().await?;
    let mut seen = Vec::new();
    for round in 1..=3 {
        while seen.len() < 3 * round {
            let next = timeout(PATIENCE, following.next()).await.with_context(|| format!("only {seen:?} came"))?;
            seen.push(next.context("the stream has ended")?.position);
        }
        if round < 3 {
            let mut connections = broker.connections();
            connections.mark_unchanged();
            nats.kill().await?;
            nats.start_again().await?;
            timeout(PATIENCE, connections.changed()).await??;
            let after = stream.tail().await?.sequence;
            let next = i64::try_from(after)? + 1;
            stream.publish(&events(next..=next + 2), Some(after)).await?;
        }
    }
    assert_eq!(seen, (1..=9).collect::<Vec<_>>());
    Ok(())
}

#[tokio::test]
async fn a_stream_that_is_made_anew_is_followed_from_its_beginning() -> Result<()> {
    let mut nats = TestNats::start().await?;
    let broker = Broker::connect(nats.url()).await?;
    open(&broker).await?.publish(&events(1..=3), Some(0)).await?;
    let mut following = open(&broker).await?.follow().await?;
    let mut next =
        async || Ok::<_, anyhow::Error>(timeout(PATIENCE, following.next()).await?.map(|event| event.position));
    assert_eq!([next().await?, next().await?, next().await?], [Some(1), Some(2), Some(3)]);
    let mut connections = broker.connections();
    connections.mark_unchanged();
    nats.kill().await?;
    nats.wipe().await?;
    nats.start_again().await?;
    timeout(PATIENCE, connections.changed()).await??;
    // Longer than the one before at once: its numbers alone do not show that it is another one.
    open(&broker).await?.publish(&events(1..=5), Some(0)).await?;
    for position in 1..=5 {
        assert_eq!(next().await?, Some(position));
    }
    Ok(())
}
