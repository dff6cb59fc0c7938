//! What the endpoints of sessions share.

use crate::app::{App, Caller};
use crate::keyed;
use crate::wake::wake;
use access::{not_found, unavailable};
use domain::ids::SessionId;
use domain::object::Role;
use domain::session::decide::DeleteSession;
use domain::session::{Needs, View};
use serde_json::{Value, json};
use store::{IdempotencyKey, Idempotent, Options, TransactError};
use wire::Problem;

/// A session the person may change with `role`.
pub(super) async fn require(app: &App, caller: &Caller, id: SessionId, role: Role) -> Result<View, Problem> {
    let view = app.store.view(&caller.person.scope(), id, &Needs::default()).await.map_err(unavailable)?;
    let view = view.ok_or_else(not_found)?;
    caller.person.require(view.session.workspace_id, role)?;
    Ok(view)
}

/// The session as it is by now, for a repeat.
pub(super) async fn remembered(app: &App, caller: &Caller, subject: &Value) -> Result<View, Problem> {
    let id = keyed::remembered(subject, "session_id")?;
    let view = app.store.view(&caller.person.scope(), id, &Needs::default()).await.map_err(unavailable)?;
    view.ok_or_else(not_found)
}

/// How a command to a session is carried out: its key, if it has one, remembers nothing but that.
pub(super) fn options(app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Options<()> {
    Options {
        idempotent: key.map(|key| Idempotent { key: key.clone(), subject: |()| json!({}) }),
        traceparent: caller.traceparent.clone(),
        ..Options::new(app.idgen.ids())
    }
}

/// Deletes a session and lets its owner tell those who wait.
pub(super) async fn delete(
    app: &App,
    caller: &Caller,
    id: SessionId,
    key: Option<&IdempotencyKey>,
) -> Result<(), TransactError> {
    let command = DeleteSession { grace: app.times.grace };
    let accepted = app.store.transact(id, &command, options(app, caller, key)).await?;
    wake(app, &accepted.after);
    Ok(())
}
