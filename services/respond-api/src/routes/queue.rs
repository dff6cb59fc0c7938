//! What the endpoints of the queue share.

use super::sessions;
use crate::app::{App, Caller};
use crate::input::{Checks, PROMPT_MAX_BYTES};
use crate::keyed;
use access::{not_found, unavailable};
use domain::ids::{QueuedId, SessionId};
use domain::object::{QueuedMessage, Role};
use domain::session::{Needs, View};
use serde_json::{Value, json};
use store::{IdempotencyKey, Idempotent};
use wire::Problem;

/// A message of a session's queue, as it is by now.
pub(super) struct Look {
    pub(super) view: View,
    pub(super) id: QueuedId,
}

/// Checks the text of a message.
pub(super) fn check_content(checks: &mut Checks, content: &str) {
    checks.text("/content", content, PROMPT_MAX_BYTES);
    if content.trim().is_empty() {
        checks.add("/content", "must not be blank");
    }
}

/// A key that remembers which message its command made.
pub(super) fn remembering(key: &IdempotencyKey) -> Idempotent<QueuedId> {
    Idempotent { key: key.clone(), subject: |id: &QueuedId| json!({ "queued_id": id }) }
}

/// The message a key remembers.
pub(super) async fn remembered(
    app: &App,
    caller: &Caller,
    session: SessionId,
    subject: &Value,
) -> Result<Look, Problem> {
    let id = keyed::remembered(subject, "queued_id")?;
    look(app, caller, session, id).await
}

/// A message of the queue, whatever became of it.
pub(super) async fn look(app: &App, caller: &Caller, session: SessionId, id: QueuedId) -> Result<Look, Problem> {
    sessions::require(app, caller, session, Role::Viewer).await?;
    let needs = Needs { queued_id: Some(id), ..Needs::default() };
    let view = app.store.view(&caller.person.scope(), session, &needs).await.map_err(unavailable)?;
    Ok(Look { view: view.ok_or_else(not_found)?, id })
}

/// The message as people read it.
pub(super) fn object(view: &View, id: QueuedId) -> Result<QueuedMessage, Problem> {
    view.queue.get(&id).map(|queued| view.queued_object(queued)).ok_or_else(not_found)
}
