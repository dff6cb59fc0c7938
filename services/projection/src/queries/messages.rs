//! `GET /api/v1/task-sessions/{id}/messages`: a session's history by position, ascending.
//!
//! `after` and `before` are exclusive. `before` alone is the page just before it, and its `next_cursor` leads further
//! back; all else leads forward.

use crate::app::{App, Reader};
use crate::{cursor, views};
use access::{not_found, unavailable};
use axum::Json;
use axum::extract::State;
use domain::ids::{PendingId, SessionId};
use domain::session::rows::Message;
use kit::serve::{Page, Path, Query, next_cursor};
use std::collections::BTreeSet;
use store::MessagePlace;
use wire::Problem;
use wire::queries::{Messages, MessagesQuery};

/// The place of the next page: `after`, `before`.
type Cursor = (Option<i64>, Option<i64>);

pub(super) async fn list(
    State(app): State<App>,
    reader: Reader,
    Path(id): Path<SessionId>,
    Query(query): Query<MessagesQuery>,
) -> Result<Json<Messages>, Problem> {
    let Reader(person) = reader;
    let page = Page::<Cursor>::parse(query.limit, query.cursor.as_deref())?;
    let place = place_of(&query, page.after)?;
    views::must_see(&app, &person, id).await?;
    let (rows, more) = app.store.messages(id, place, page.limit).await.map_err(unavailable)?;
    let bundles: BTreeSet<PendingId> = rows.iter().filter_map(|row| Some(row.question.as_ref()?.pending_id)).collect();
    let bundles: Vec<PendingId> = bundles.into_iter().collect();
    let view = views::with_bundles(&app, &person, id, &bundles).await?.ok_or_else(not_found)?;
    let next_cursor = more.then(|| next_place(place, &rows)).flatten().map(|next| next_cursor(&next));
    // A question reads as its bundle does, and that was loaded a moment later.
    let messages = rows.iter().map(|row| view.message_object(view.messages.get(&row.id).unwrap_or(row))).collect();
    Ok(Json(Messages { messages, next_cursor }))
}

/// The place asked for: that of the cursor, if there is one.
fn place_of(query: &MessagesQuery, cursor: Option<Cursor>) -> Result<MessagePlace, Problem> {
    match cursor {
        None => Ok(MessagePlace { after: query.after, before: query.before }),
        // What no page leads to was made up by somebody.
        Some((None, None)) => Err(cursor::foreign()),
        Some((after, before)) => Ok(MessagePlace { after, before }),
    }
}

/// The place of the page behind `rows`, in the direction of reading.
fn next_place(place: MessagePlace, rows: &[Message]) -> Option<Cursor> {
    match place {
        MessagePlace { after: None, before: Some(_) } => Some((None, Some(rows.first()?.position))),
        MessagePlace { before, .. } => Some((Some(rows.last()?.position), before)),
    }
}

/// What the API's description says of it.
#[cfg(feature = "openapi")]
pub(super) fn doc() -> wire::openapi::Endpoint {
    use wire::openapi::{Endpoint, Example, samples};
    let messages =
        vec![samples::prompt_message(), samples::message(), samples::question_message(0), samples::question_message(1)];
    let messages = Messages { messages, next_cursor: None };
    Endpoint::query(
        "list_messages",
        "/api/v1/task-sessions/{id}/messages",
        "A session's history by position, ascending.",
    )
    .details(
        "`after` and `before` are exclusive. `before` alone is the page just before it, and its `next_cursor` leads \
             further back; all else leads forward.",
    )
    .parameters::<MessagesQuery>()
    .gives::<Messages>(200, "A page.")
    .example(Example::new("listed").with("id", samples::SESSION).gives(200, messages))
}
