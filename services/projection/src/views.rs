//! Rows of sessions, as queries need them.

use crate::app::App;
use access::{Person, not_found, unavailable};
use domain::ids::{PendingId, SessionId, TaskId};
use domain::object::{self, PendingAction};
use domain::session::rows::Task;
use domain::session::{Needs, View};
use std::collections::BTreeMap;
use wire::Problem;

/// One session the person may see.
pub(crate) async fn session(app: &App, person: &Person, id: SessionId, needs: &Needs) -> Result<View, Problem> {
    app.store.view(&person.scope(), id, needs).await.map_err(unavailable)?.ok_or_else(not_found)
}

/// Fails where the person may not see the session.
pub(crate) async fn must_see(app: &App, person: &Person, id: SessionId) -> Result<(), Problem> {
    let found = app.store.place_of_session(&person.scope(), id).await.map_err(unavailable)?;
    found.map(drop).ok_or_else(not_found)
}

/// A session with some of its bundles, whatever their state. `None` where the person may not see it (any more).
pub(crate) async fn with_bundles(
    app: &App,
    person: &Person,
    id: SessionId,
    bundles: &[PendingId],
) -> Result<Option<View>, Problem> {
    let views = app.store.views(&person.scope(), &[id], bundles).await.map_err(unavailable)?;
    Ok(views.into_iter().next())
}

/// Public objects of tasks, in the same order, with what their sessions wait for.
pub(crate) async fn tasks(app: &App, person: &Person, tasks: &[Task]) -> Result<Vec<object::Task>, Problem> {
    let ids: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
    let owned = app.store.sessions_of_tasks(&ids).await.map_err(unavailable)?;
    let sessions: Vec<SessionId> = owned.into_iter().map(|(_, session)| session).collect();
    let views = app.store.views(&person.scope(), &sessions, &[]).await.map_err(unavailable)?;
    let mut actions: BTreeMap<TaskId, Option<PendingAction>> = BTreeMap::new();
    for view in &views {
        let action = actions.entry(view.session.task_id).or_default();
        *action = more_urgent(*action, view.pending_action(view.now));
    }
    Ok(tasks.iter().map(|task| task.object(actions.get(&task.id).copied().flatten())).collect())
}

/// A permission is more urgent than a question, and anything more than nothing: so the domain orders them.
fn more_urgent(one: Option<PendingAction>, other: Option<PendingAction>) -> Option<PendingAction> {
    one.max(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_wins_over_a_question() {
        let [question, permission] = [PendingAction::Clarification, PendingAction::Permission].map(Some);
        assert_eq!(more_urgent(permission, question), permission);
        assert_eq!(more_urgent(None, question), question);
        assert_eq!(more_urgent(None, None), None);
    }
}
