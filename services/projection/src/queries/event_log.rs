//! `GET /api/v1/events/log`: events that were, by position.

use super::event_scope::{filter, place};
use crate::app::{App, Reader};
use access::unavailable;
use axum::Json;
use axum::extract::State;
use domain::cloud_event::CloudEvent;
use kit::serve::{Page, Query};
use wire::Problem;
use wire::queries::{EventLog, EventLogQuery, EventsQuery};

pub(super) async fn list(
    State(app): State<App>,
    reader: Reader,
    Query(query): Query<EventLogQuery>,
) -> Result<Json<EventLog>, Problem> {
    let Reader(person) = reader;
    let EventLogQuery { workspace_id, task_id, session_id, types, after, limit } = query;
    let limit = Page::<i64>::parse(limit, None)?.limit;
    let wanted = EventsQuery { workspace_id, task_id, session_id, types, after: None };
    let filter = filter(&app.store, &person, &wanted).await?;
    let horizon = app.store.event_horizon().await.map_err(unavailable)?;
    let after = match after {
        Some(text) => place(&text, &horizon)?,
        None => horizon.beginning(),
    };
    let mut position = after.position;
    // A filter may let little through: it is read on until something is found or the end is reached, because the cursor
    // of an empty part leads nowhere.
    let events = loop {
        let page = app.store.events_after(&filter, position, limit).await.map_err(unavailable)?;
        if !page.events.is_empty() || page.upto >= page.head {
            break page.events;
        }
        position = page.upto;
    };
    let next_after = events.last().map_or(after, |event| event.place).to_string();
    Ok(Json(EventLog { events: events.into_iter().map(CloudEvent::from).collect(), next_after }))
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use domain::cloud_event::{EventPlace, PlacedEvent};
    use serde_json::json;
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let created = PlacedEvent {
        id: samples::NOBODY.into(),
        workspace_id: samples::WORKSPACE,
        task_id: samples::TASK,
        session_id: None,
        session_seq: None,
        kind: "task.created".to_owned(),
        stamp: samples::at(3),
        data: json!({ "task": samples::task() }),
        place: EventPlace { epoch: 1, position: 1 },
        written_by: "askback-respond-api".to_owned(),
        traceparent: None,
    };
    let log = EventLog { events: vec![created.into()], next_after: "1-1".to_owned() };
    let lost =
        Problem::new(Code::PositionUnknown, "99-1 is no place in this history of the database; its newest is 1-1");
    Endpoint::query("list_events", "/api/v1/events/log", "Events that were, by position.")
        .details("Without `after` it begins at the oldest kept event. `next_after` is never null.")
        .parameters::<EventLogQuery>()
        .gives::<EventLog>(200, "Events.")
        .refuses([Code::NotFound, Code::PositionGone, Code::PositionUnknown])
        .example(
            Example::new("of_a_task")
                .with("task_id", samples::TASK)
                .with("types", "task.created")
                .with("limit", 1)
                .gives(200, log),
        )
        .example(Example::new("of_another_history").with("after", "99-1").refused(&lost))
}
