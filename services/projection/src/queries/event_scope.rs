//! Which events a query of events asks for, and whether the person may see them.

use access::{Person, not_found, unavailable};
use axum::http::HeaderMap;
use domain::cloud_event::EventPlace;
use domain::event_catalogue::event_doc;
use store::{EventFilter, EventSubject, Horizon, PlaceError, Scope, Store};
use wire::queries::EventsQuery;
use wire::{Code, Problem};

/// The filter of a request, with its token checked anew.
pub(crate) async fn filter_of(store: &Store, headers: &HeaderMap, query: &EventsQuery) -> Result<EventFilter, Problem> {
    let person = access::person(store, headers).await?;
    filter(store, &person, query).await
}

/// The filter of a query.
pub(super) async fn filter(store: &Store, person: &Person, query: &EventsQuery) -> Result<EventFilter, Problem> {
    let types = query.types.as_deref().map(types).transpose()?;
    let scope = person.scope();
    if let Some(workspace) = query.workspace_id {
        store.workspace(&scope, workspace).await.map_err(unavailable)?.ok_or_else(not_found)?;
    }
    let scope = scope.narrow(query.workspace_id);
    let subject = match (query.session_id, query.task_id) {
        (Some(session), task) => {
            let found = store.place_of_session(&scope, session).await.map_err(unavailable)?;
            let (_, its_task) = found.ok_or_else(not_found)?;
            if task.is_some_and(|task| task != its_task) {
                return Err(not_found());
            }
            EventSubject::Session { task: its_task, session }
        }
        (None, Some(task)) => {
            store.task(&scope, task).await.map_err(unavailable)?.ok_or_else(not_found)?;
            EventSubject::Task(task)
        }
        (None, None) => match scope {
            Scope::All => EventSubject::All,
            Scope::Workspaces(workspaces) => EventSubject::Workspaces(workspaces),
        },
    };
    Ok(EventFilter { subject, types })
}

/// Types with commas between. One that does not exist would never come: it is refused.
fn types(text: &str) -> Result<Vec<String>, Problem> {
    text.split(',')
        .map(|name| event_doc(name).map(|doc| doc.name.to_owned()).ok_or_else(|| unknown_type(name)))
        .collect()
}

fn unknown_type(name: &str) -> Problem {
    let detail =
        if name.len() <= 64 { format!("there is no event of type {name:?}") } else { "no event's type".into() };
    Problem::new(Code::InvalidRequest, "the request is not well-formed").at("types", detail)
}

/// The place a text names, if reading can go on after it.
pub(super) fn place(text: &str, horizon: &Horizon) -> Result<EventPlace, Problem> {
    let place: EventPlace = text.parse().map_err(|why: domain::cloud_event::NotAPlace| {
        Problem::new(Code::InvalidRequest, "the request is not well-formed").at("after", why.to_string())
    })?;
    match horizon.check(place) {
        Ok(()) => Ok(place),
        Err(PlaceError::Gone) => Err(Problem::new(
            Code::PositionGone,
            format!(
                "events after {place} are no longer kept; the oldest place to go on after is {}",
                horizon.beginning()
            ),
        )),
        Err(PlaceError::Unknown) => Err(Problem::new(
            Code::PositionUnknown,
            format!("{place} is no place in this history of the database; its newest is {}", horizon.head_place()),
        )),
    }
}
