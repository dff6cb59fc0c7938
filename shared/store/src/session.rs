//! Lists that belong to a session, and which session something belongs to.

use crate::error::StoreError;
use crate::page::{Keyset, MessagePlace, Page, PageArgs, Scope};
use crate::pool::Store;
use domain::ids::{ClaimId, MessageId, PendingId, QueuedId, SessionId, TaskId, TurnId, WorkspaceId};
use domain::object::Question;
use domain::session::rows::{Message, Queued, Turn};
use sqlx::types::Json;
use uuid::Uuid;

/// The questions of a bundle that somebody may answer.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestions {
    /// The bundle's session.
    pub session: SessionId,
    /// That session's workspace.
    pub workspace: WorkspaceId,
    /// The messages whose questions are pending, in question order; at least one.
    pub questions: Vec<(MessageId, Question)>,
}

impl Store {
    /// The sessions of a task, oldest first, without deleted ones.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn sessions_of_task(&self, scope: &Scope, task: TaskId) -> Result<Vec<SessionId>, StoreError> {
        let ids = sqlx::query_scalar!(
            "select id from task_sessions
             where task_id = $1 and deleted_at is null and ($2::uuid[] is null or workspace_id = any($2))
             order by created_at, id",
            task.0,
            scope.ids() as _
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(ids.into_iter().map(SessionId::from).collect())
    }

    /// The sessions of several tasks, oldest first, without deleted ones.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn sessions_of_tasks(&self, tasks: &[TaskId]) -> Result<Vec<(TaskId, SessionId)>, StoreError> {
        let tasks: Vec<Uuid> = tasks.iter().map(|id| id.0).collect();
        let rows = sqlx::query!(
            "select task_id, id from task_sessions where task_id = any($1) and deleted_at is null
             order by created_at, id",
            &tasks
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(|row| (row.task_id.into(), row.id.into())).collect())
    }

    /// A page of the turns people may see, in the order they began, and how many there are in all.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn turns(&self, session: SessionId, page: PageArgs) -> Result<(Page<Turn>, i64), StoreError> {
        let rows = sqlx::query_scalar!(
            r#"
            select to_jsonb(t) as "row!: Json<Turn>" from turns t
            where session_id = $1 and (evidenced or status not in ('reserved', 'attempted', 'ambiguous'))
              and ($2::uuid is null or (started_at, created_at, id) >
                   (select started_at, created_at, id from turns where session_id = $1 and id = $2))
            order by started_at, created_at, id limit $3
            "#,
            session.0,
            page.after.map(|place| place.id),
            page.probe()
        )
        .fetch_all(&self.pool)
        .await?;
        let total = sqlx::query_scalar!(
            r#"select count(*) as "total!" from turns
               where session_id = $1 and (evidenced or status not in ('reserved', 'attempted', 'ambiguous'))"#,
            session.0
        )
        .fetch_one(&self.pool)
        .await?;
        let rows = rows.into_iter().map(|row| row.0).collect();
        let page = Page::cut(rows, page.limit, |turn: &Turn| Keyset { at: turn.started_at, id: turn.id.0 });
        Ok((page, total))
    }

    /// A page of the messages people may see, ascending by position, and whether more lie beyond it in the direction
    /// of reading.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn messages(
        &self,
        session: SessionId,
        place: MessagePlace,
        limit: u32,
    ) -> Result<(Vec<Message>, bool), StoreError> {
        let probe = i64::from(limit) + 1;
        let backward = place.after.is_none() && place.before.is_some();
        let rows = if backward {
            sqlx::query_scalar!(
                r#"select to_jsonb(m) as "row!: Json<Message>" from messages m
                   where session_id = $1 and position < $2 and deleted_at is null
                   order by position desc limit $3"#,
                session.0,
                place.before,
                probe
            )
            .fetch_all(&self.pool)
            .await?
        } else {
            sqlx::query_scalar!(
                r#"select to_jsonb(m) as "row!: Json<Message>" from messages m
                   where session_id = $1 and position > $2 and position < $3 and deleted_at is null
                   order by position limit $4"#,
                session.0,
                place.after.unwrap_or(0),
                place.before.unwrap_or(i64::MAX),
                probe
            )
            .fetch_all(&self.pool)
            .await?
        };
        let mut messages: Vec<Message> = rows.into_iter().map(|row| row.0).collect();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = messages.len() > limit;
        messages.truncate(limit);
        if backward {
            messages.reverse();
        }
        Ok((messages, more))
    }

    /// One message of the queue, whatever became of it.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn queued(&self, session: SessionId, id: QueuedId) -> Result<Option<Queued>, StoreError> {
        let row = sqlx::query_scalar!(
            r#"select to_jsonb(q) as "row!: Json<Queued>" from queued_messages q where session_id = $1 and id = $2"#,
            session.0,
            id.0
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|row| row.0))
    }

    /// The session a bundle belongs to, if it is not deleted.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn session_of_bundle(&self, scope: &Scope, id: PendingId) -> Result<Option<SessionId>, StoreError> {
        let found = sqlx::query_scalar!(
            "select s.id from bundles b join task_sessions s on s.id = b.session_id
             where b.pending_id = $1 and s.deleted_at is null and ($2::uuid[] is null or s.workspace_id = any($2))",
            id.0,
            scope.ids() as _
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(found.map(SessionId::from))
    }

    /// The pending questions of a bundle that looks active: neither settled nor superseded, in a session that goes on.
    /// A glance, for which nothing else is read: `None` says no more than that the rows have to be looked at whole.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn open_questions(&self, scope: &Scope, id: PendingId) -> Result<Option<OpenQuestions>, StoreError> {
        let mut connection = self.lend().await?;
        let rows = sqlx::query!(
            r#"
            select s.id as session_id, s.workspace_id, m.id as message_id, m.question as "question!: Json<Question>"
            from bundles b
            join task_sessions s on s.id = b.session_id
            join messages m on m.pending_id = b.pending_id
            where b.pending_id = $1 and b.settled_at is null and b.superseded_by is null
              and s.ended_state is null and s.deleted_at is null and ($2::uuid[] is null or s.workspace_id = any($2))
              and m.question_status = 'pending'
            order by m.question_index
            "#,
            id.0,
            scope.ids() as _
        )
        .fetch_all(&mut *connection)
        .await?;
        self.take_back(connection);
        let Some(first) = rows.first() else { return Ok(None) };
        let (session, workspace) = (first.session_id.into(), first.workspace_id.into());
        let questions = rows.into_iter().map(|row| (row.message_id.into(), row.question.0)).collect();
        Ok(Some(OpenQuestions { session, workspace, questions }))
    }

    /// The session a turn belongs to, if it is not deleted.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn session_of_turn(&self, scope: &Scope, id: TurnId) -> Result<Option<SessionId>, StoreError> {
        let found = sqlx::query_scalar!(
            "select s.id from turns t join task_sessions s on s.id = t.session_id
             where t.id = $1 and s.deleted_at is null and ($2::uuid[] is null or s.workspace_id = any($2))",
            id.0,
            scope.ids() as _
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(found.map(SessionId::from))
    }

    /// The session and bundle a claim belongs to, also of a deleted session.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn session_of_claim(&self, id: ClaimId) -> Result<Option<(SessionId, PendingId)>, StoreError> {
        let mut connection = self.lend().await?;
        let found = sqlx::query!("select session_id, pending_id from delivery_intents where claim_id = $1", id.0)
            .fetch_optional(&mut *connection)
            .await?;
        self.take_back(connection);
        Ok(found.map(|row| (row.session_id.into(), row.pending_id.into())))
    }

    /// Workspace and task of a session that is not deleted, if it lies in the scope.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn place_of_session(
        &self,
        scope: &Scope,
        id: SessionId,
    ) -> Result<Option<(WorkspaceId, TaskId)>, StoreError> {
        let found = sqlx::query!(
            "select workspace_id, task_id from task_sessions
             where id = $1 and deleted_at is null and ($2::uuid[] is null or workspace_id = any($2))",
            id.0,
            scope.ids() as _
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(found.map(|row| (row.workspace_id.into(), row.task_id.into())))
    }
}
