//! Tasks: everything about them that no session decides.

use crate::error::{StoreError, WriteError};
use crate::idempotency::IdempotencyKey;
use crate::page::{Page, PageArgs, Scope};
use crate::pool::Store;
use domain::ids::{Ids, SessionId, TaskId, WorkspaceId};
use domain::object::TaskState;
use domain::session::rows::Task;

/// A task to be made.
#[derive(Clone, Debug)]
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

impl Store {
    /// The tasks of a scope, oldest first.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn tasks(&self, scope: &Scope, page: PageArgs) -> Result<Page<Task>, StoreError> {
        todo!()
    }

    /// One task.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn task(&self, scope: &Scope, id: TaskId) -> Result<Option<Task>, StoreError> {
        todo!()
    }

    /// Makes a task and writes `task.created`. The first id drawn is the task's. The key remembers `{"task_id"}`.
    ///
    /// # Errors
    /// `NotFound` without such a workspace, `KeyHeld`, or the database does not answer.
    pub async fn create_task(
        &self,
        task: NewTask<'_>,
        ids: Ids,
        traceparent: Option<&str>,
        key: Option<&IdempotencyKey>,
    ) -> Result<Task, WriteError> {
        todo!()
    }

    /// Changes a task and writes `task.updated`, unless nothing is different. The key remembers `{"task_id"}`.
    ///
    /// # Errors
    /// `NotFound` (`Conflict` for a primary session that is not its own), `KeyHeld`, or the database does not answer.
    pub async fn patch_task(
        &self,
        scope: &Scope,
        id: TaskId,
        patch: &TaskPatch,
        ids: Ids,
        traceparent: Option<&str>,
        key: Option<&IdempotencyKey>,
    ) -> Result<Task, WriteError> {
        todo!()
    }

    /// Deletes a task whose sessions are all deleted and writes `task.deleted`. Whoever deletes a task first deletes
    /// its sessions one by one with the session's own command. The key remembers `{"task_id"}`.
    ///
    /// # Errors
    /// `NotFound`, `Conflict` while a session is left, `KeyHeld`, or the database does not answer.
    pub async fn delete_task(
        &self,
        scope: &Scope,
        id: TaskId,
        ids: Ids,
        traceparent: Option<&str>,
        key: Option<&IdempotencyKey>,
    ) -> Result<(), WriteError> {
        todo!()
    }
}
