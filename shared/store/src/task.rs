//! Tasks: everything about them that no session decides.

use crate::error::{StoreError, WriteError};
use crate::idempotency::{IdempotencyKey, hold};
use crate::load::load_sessions;
use crate::page::{Keyset, Page, PageArgs, Scope};
use crate::pool::Store;
use crate::tx::Tx;
use domain::ids::{EventId, Ids, SessionId, TaskId, WorkspaceId};
use domain::object::{PendingAction, TaskState};
use domain::session::event::EventType;
use domain::session::rows::Task;
use domain::time::Timestamp;
use serde_json::json;
use sqlx::types::Json;
use time::OffsetDateTime;

/// A task to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewTask<'a> {
    /// Tenancy boundary.
    pub workspace: WorkspaceId,
    /// What people call it.
    pub title: &'a str,
    /// More about it.
    pub description: &'a str,
}

/// What is to be different about a task; absent parts stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskPatch {
    /// What people call it.
    pub title: Option<String>,
    /// More about it.
    pub description: Option<String>,
    /// Where it stands.
    pub state: Option<TaskState>,
    /// The session shown first; has to be one of its own that is not deleted.
    pub primary_session: Option<SessionId>,
}

/// What goes along with every write to a task.
#[derive(Clone, Debug)]
pub struct TaskWrite<'a> {
    /// Fresh ids.
    pub ids: Ids,
    /// W3C trace context of the request.
    pub traceparent: Option<&'a str>,
    /// The caller's own name for the command; remembers `{"task_id"}`.
    pub key: Option<&'a IdempotencyKey>,
}

impl Store {
    /// The tasks of a scope, oldest first.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn tasks(&self, scope: &Scope, page: PageArgs) -> Result<Page<Task>, StoreError> {
        let (at, id) = page.place();
        let rows = match scope.ids() {
            None => {
                sqlx::query_scalar!(
                    r#"select to_jsonb(t) as "row!: Json<Task>" from tasks t
                       where deleted_at is null and (created_at, id) > ($1, $2) order by created_at, id limit $3"#,
                    at,
                    id,
                    page.probe()
                )
                .fetch_all(&self.pool)
                .await?
            }
            Some(workspaces) => {
                sqlx::query_scalar!(
                    r#"
                    select to_jsonb(t) as "row!: Json<Task>"
                    from unnest($1::uuid[]) w cross join lateral (
                        select * from tasks
                        where workspace_id = w and deleted_at is null and (created_at, id) > ($2, $3)
                        order by created_at, id limit $4
                    ) t
                    order by t.created_at, t.id limit $4
                    "#,
                    &workspaces,
                    at,
                    id,
                    page.probe()
                )
                .fetch_all(&self.pool)
                .await?
            }
        };
        let rows = rows.into_iter().map(|row| row.0).collect();
        Ok(Page::cut(rows, page.limit, |task: &Task| Keyset { at: task.created_at, id: task.id.0 }))
    }

    /// One task.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn task(&self, scope: &Scope, id: TaskId) -> Result<Option<Task>, StoreError> {
        let row = sqlx::query_scalar!(
            r#"select to_jsonb(t) as "row!: Json<Task>" from tasks t
               where id = $1 and deleted_at is null and ($2::uuid[] is null or workspace_id = any($2))"#,
            id.0,
            scope.ids() as _
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|row| row.0))
    }

    /// Makes a task and writes `task.created`. The first id drawn is the task's.
    ///
    /// # Errors
    /// `NotFound` without such a workspace, `KeyHeld`, or the database does not answer.
    pub async fn create_task(&self, task: NewTask<'_>, mut write: TaskWrite<'_>) -> Result<Task, WriteError> {
        let mut tx = Tx::begin(self).await?;
        let id: TaskId = write.ids.draw();
        let row = sqlx::query_scalar!(
            r#"
            insert into tasks as t (id, workspace_id, title, description, state, created_at, updated_at)
            select $1, $2, $3, $4, 'todo', now, now from clock_timestamp() now
            returning to_jsonb(t) as "row!: Json<Task>"
            "#,
            id.0,
            task.workspace.0,
            task.title,
            task.description
        )
        .fetch_one(tx.connection())
        .await?
        .0;
        tell(&mut tx, &row, EventType::TaskCreated, None, &mut write).await?;
        hold(&mut tx, write.key, json!({ "task_id": id })).await?;
        tx.commit(self).await?;
        Ok(row)
    }

    /// Changes a task and writes `task.updated`, unless nothing is different.
    ///
    /// # Errors
    /// `NotFound` (`Conflict` for a primary session that is not its own), `KeyHeld`, or the database does not answer.
    pub async fn patch_task(
        &self,
        scope: &Scope,
        id: TaskId,
        patch: &TaskPatch,
        mut write: TaskWrite<'_>,
    ) -> Result<Task, WriteError> {
        let mut tx = Tx::begin(self).await?;
        let Some((mut task, now)) = lock(&mut tx, scope, id).await? else {
            tx.rollback(self).await;
            return Err(WriteError::NotFound);
        };
        hold(&mut tx, write.key, json!({ "task_id": id })).await?;
        if let Some(session) = patch.primary_session
            && !living_sessions(&mut tx, id).await?.contains(&session)
        {
            tx.rollback(self).await;
            return Err(WriteError::Conflict("the primary session has to be one of the task's own"));
        }
        let before = task.clone();
        patch.apply_to(&mut task);
        if task != before {
            task.updated_at = now.after(task.updated_at);
            save(&mut tx, &task).await?;
            let sessions = living_sessions(&mut tx, id).await?;
            let action = pending_action(&mut tx, &sessions).await?;
            tell(&mut tx, &task, EventType::TaskUpdated, action, &mut write).await?;
        }
        tx.commit(self).await?;
        Ok(task)
    }

    /// Deletes a task whose sessions are all deleted and writes `task.deleted`. Whoever deletes a task first deletes
    /// its sessions one by one with the session's own command.
    ///
    /// # Errors
    /// `NotFound`, `Conflict` while a session is left, `KeyHeld`, or the database does not answer.
    pub async fn delete_task(&self, scope: &Scope, id: TaskId, mut write: TaskWrite<'_>) -> Result<(), WriteError> {
        let mut tx = Tx::begin(self).await?;
        let Some((mut task, now)) = lock(&mut tx, scope, id).await? else {
            tx.rollback(self).await;
            return Err(WriteError::NotFound);
        };
        if !living_sessions(&mut tx, id).await?.is_empty() {
            tx.rollback(self).await;
            return Err(WriteError::Conflict("the task still has sessions"));
        }
        hold(&mut tx, write.key, json!({ "task_id": id })).await?;
        task.updated_at = now.after(task.updated_at);
        sqlx::query!(
            "update tasks set deleted_at = $2, updated_at = $2, primary_session_id = null where id = $1",
            id.0,
            OffsetDateTime::from(task.updated_at)
        )
        .execute(tx.connection())
        .await?;
        tell(&mut tx, &task, EventType::TaskDeleted, None, &mut write).await?;
        tx.commit(self).await?;
        Ok(())
    }
}

impl TaskPatch {
    fn apply_to(&self, task: &mut Task) {
        if let Some(title) = &self.title {
            task.title.clone_from(title);
        }
        if let Some(description) = &self.description {
            task.description.clone_from(description);
        }
        if let Some(state) = self.state {
            task.state = state;
        }
        if let Some(session) = self.primary_session {
            task.primary_session_id = Some(session);
        }
    }
}

/// Locks a task (design, law 1: a task is locked after any session, never before one) and reads the clock.
pub(crate) async fn lock(tx: &mut Tx, scope: &Scope, id: TaskId) -> Result<Option<(Task, Timestamp)>, sqlx::Error> {
    let row = sqlx::query!(
        r#"select to_jsonb(t) as "task!: Json<Task>", clock_timestamp() as "now!" from tasks t
           where id = $1 and deleted_at is null and ($2::uuid[] is null or workspace_id = any($2))
           for no key update"#,
        id.0,
        scope.ids() as _
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| (row.task.0, row.now.into())))
}

async fn living_sessions(tx: &mut Tx, task: TaskId) -> Result<Vec<SessionId>, sqlx::Error> {
    let ids = sqlx::query_scalar!("select id from task_sessions where task_id = $1 and deleted_at is null", task.0)
        .fetch_all(tx.connection())
        .await?;
    Ok(ids.into_iter().map(SessionId::from).collect())
}

/// What the sessions of a task wait for; permission wins over clarification.
async fn pending_action(tx: &mut Tx, sessions: &[SessionId]) -> Result<Option<PendingAction>, sqlx::Error> {
    let loaded = load_sessions(tx.connection(), sessions, &Scope::All, &[]).await?;
    Ok(loaded.iter().filter_map(|loaded| loaded.view.pending_action(loaded.view.now)).max())
}

async fn save(tx: &mut Tx, task: &Task) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "update tasks set title = $2, description = $3, state = $4, primary_session_id = $5, updated_at = $6
         where id = $1",
        task.id.0,
        task.title,
        task.description,
        task.state.as_str(),
        task.primary_session_id.map(|id| id.0),
        OffsetDateTime::from(task.updated_at)
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Writes an event of the task itself.
async fn tell(
    tx: &mut Tx,
    task: &Task,
    kind: EventType,
    pending_action: Option<PendingAction>,
    write: &mut TaskWrite<'_>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "insert into events (id, workspace_id, task_id, type, stamp, data, traceparent)
         values ($1, $2, $3, $4, $5, $6, $7)",
        write.ids.draw::<EventId>().0,
        task.workspace_id.0,
        task.id.0,
        kind.to_string(),
        OffsetDateTime::from(task.updated_at),
        json!({ "task": task.object(pending_action) }),
        write.traceparent
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
