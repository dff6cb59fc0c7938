//! `GET /api/v1/dispatches/unresolved`: prompts of which nobody knows whether their agents have them, oldest first.

use crate::app::{App, Reader};
use crate::cursor;
use access::unavailable;
use axum::Json;
use axum::extract::State;
use kit::serve::Query;
use store::AmbiguousDispatch;
use wire::Problem;
use wire::queries::{Dispatch, UnresolvedDispatches, WorkspacePage};

pub(super) async fn list(
    State(app): State<App>,
    reader: Reader,
    Query(query): Query<WorkspacePage>,
) -> Result<Json<UnresolvedDispatches>, Problem> {
    let Reader(person) = reader;
    let args = cursor::read(query.limit, query.cursor.as_deref())?;
    let scope = super::scope(&app, &person, query.workspace_id).await?;
    let page = app.store.ambiguous_dispatches(&scope, args).await.map_err(unavailable)?;
    let items = page.items.into_iter().map(|row| {
        let AmbiguousDispatch { turn_id, session_id, task_id, pending_id, attempted_at } = row;
        Dispatch { turn_id, session_id, task_id, pending_id, attempted_at }
    });
    Ok(Json(UnresolvedDispatches { items: items.collect(), next_cursor: cursor::write(page.next) }))
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use wire::Code;
    use wire::openapi::{Endpoint, Example, samples};
    let one = UnresolvedDispatches { items: vec![samples::dispatch()], next_cursor: None };
    Endpoint::query(
        "list_unresolved_dispatches",
        "/api/v1/dispatches/unresolved",
        "Dispatches of which it is unknown whether they arrived, oldest first.",
    )
    .details(
        "Each holds the queue of its session until its agent shows that it has the prompt, an operator settles the \
         turn, or the session ends.",
    )
    .parameters::<WorkspacePage>()
    .gives::<UnresolvedDispatches>(200, "A page.")
    .refuses([Code::NotFound])
    .example(Example::new("one").with("workspace_id", samples::WORKSPACE).gives(200, one))
}
