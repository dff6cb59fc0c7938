//! Messages that people and back ends send: accepted into the queue, edited, moved, taken back and released (4.4).
//!
//! A message leaves the queue only in the decision that makes its turn, or that takes it back. Replacements go first and
//! what is being dispatched stays where it is; behind them people go before back ends, each in the order they came,
//! unless somebody moves them.

use super::living;
use crate::ids::{Ids, QueuedId};
use crate::object::{self, QueuedStatus};
use crate::session::command::{Command, Decision};
use crate::session::draft::Draft;
use crate::session::notice::{Notice, QueueChange};
use crate::session::rejection::Rejection;
use crate::session::rows::{Queued, QueuedAuthor, Rows};
use crate::session::view::{Needs, View};
use std::time::Duration;

/// How many messages of one session may wait, beside those that carry an answer again.
pub const QUEUE_CAPACITY: usize = 50;
/// The distance between two messages that come one after the other: room for those that are moved between them.
const SPACING: i64 = 1 << 20;

/// Somebody sends a message to the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Send {
    /// The message's id if it is accepted.
    pub queued_id: QueuedId,
    /// Its text.
    pub content: String,
    /// Whether it goes behind those of people, or before those of back ends. Nobody sends replacements.
    pub author_kind: object::AuthorKind,
    /// Who sends it.
    pub author: object::Actor,
    /// The grace.
    pub grace: Duration,
    /// W3C trace context.
    pub traceparent: Option<String>,
}

impl Command for Send {
    type Reply = QueuedId;

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<QueuedId>, Rejection> {
        living(view)?;
        let mut draft = Draft::new(view, ids);
        if sent(&draft.rows) >= QUEUE_CAPACITY {
            return Err(Rejection::QueueFull);
        }
        let author_kind = match self.author_kind {
            object::AuthorKind::Person => QueuedAuthor::Person,
            object::AuthorKind::System => QueuedAuthor::System,
        };
        append(
            &mut draft,
            self.queued_id,
            Sent {
                author_kind,
                author: self.author.clone(),
                content: self.content.clone(),
                traceparent: self.traceparent.clone(),
            },
        );
        Ok(draft.finish(self.grace, self.queued_id))
    }
}

/// What somebody sends.
pub(super) struct Sent {
    pub(super) author_kind: QueuedAuthor,
    pub(super) author: object::Actor,
    pub(super) content: String,
    pub(super) traceparent: Option<String>,
}

/// Puts a message into the queue, behind those of its kind.
pub(super) fn append(draft: &mut Draft<'_>, id: QueuedId, sent: Sent) {
    let Sent { author_kind, author, content, traceparent } = sent;
    let place = place_for(&draft.rows, author_kind);
    let rank = rank_at(draft, place, None);
    let queued = Queued {
        id,
        session_id: draft.rows.session.id,
        rank,
        author_kind,
        author_id: author.id,
        author_name: author.name,
        content,
        status: QueuedStatus::Queued,
        reason: None,
        pending_id: None,
        turn_id: None,
        attempts: 0,
        not_before: None,
        resends: None,
        created_at: draft.stamp,
        updated_at: draft.stamp,
        traceparent,
    };
    draft.rows.queue.insert(id, queued);
    draft.tell(Notice::Queue { change: QueueChange::Queued, queued_id: id });
}

/// How many messages wait that somebody sent.
fn sent(rows: &Rows) -> usize {
    rows.waiting().iter().filter(|queued| queued.author_kind != QueuedAuthor::Replacement).count()
}

/// How many messages at the front cannot be moved, nor anything before them.
fn fixed(rows: &Rows) -> usize {
    rows.waiting().iter().rposition(|queued| !may_move(queued)).map_or(0, |last| last + 1)
}

fn may_move(queued: &Queued) -> bool {
    queued.author_kind != QueuedAuthor::Replacement && queued.status != QueuedStatus::Dispatching
}

/// Where a new message goes among those that wait: behind the last of its kind, and a person's before those of back ends.
fn place_for(rows: &Rows, author: QueuedAuthor) -> usize {
    let waiting = rows.waiting();
    if author == QueuedAuthor::System {
        return waiting.len();
    }
    let last = waiting.iter().rposition(|queued| queued.author_kind == QueuedAuthor::Person);
    last.map_or(0, |last| last + 1).max(fixed(rows))
}

/// The rank of a message that is put at a place among those that wait, `moved` not counted. Where there is no room
/// between its neighbours all that can be moved are spaced anew.
fn rank_at(draft: &mut Draft<'_>, place: usize, moved: Option<QueuedId>) -> i64 {
    let others: Vec<(QueuedId, i64)> = draft
        .rows
        .waiting()
        .into_iter()
        .filter(|queued| queued.author_kind != QueuedAuthor::Replacement && Some(queued.id) != moved)
        .map(|queued| (queued.id, queued.rank))
        .collect();
    let replacements = draft.rows.waiting().len() - others.len() - usize::from(moved.is_some());
    let at = place.saturating_sub(replacements).min(others.len());
    let before = at.checked_sub(1).map(|at| others[at].1);
    let after = others.get(at).map(|(_, rank)| *rank);
    match (before, after) {
        (None, None) => SPACING,
        (Some(before), None) => before.saturating_add(SPACING),
        (None, Some(after)) => after.saturating_sub(SPACING),
        (Some(before), Some(after)) if after - before > 1 => before + (after - before) / 2,
        (Some(_), Some(_)) => {
            for (index, (id, _)) in others.iter().enumerate() {
                let slot = i64::try_from(index + usize::from(index >= at) + 1).unwrap_or(i64::MAX);
                draft.change_queued(*id, |row| row.rank = slot.saturating_mul(SPACING));
            }
            i64::try_from(at + 1).unwrap_or(i64::MAX).saturating_mul(SPACING)
        }
    }
}

/// A message of the queue that can still be changed.
fn changeable(view: &View, id: QueuedId) -> Result<&Queued, Rejection> {
    let queued = view.queue.get(&id).ok_or(Rejection::NotFound)?;
    match queued.status {
        QueuedStatus::Queued | QueuedStatus::Held => Ok(queued),
        QueuedStatus::Dispatching | QueuedStatus::Taken | QueuedStatus::Withdrawn => Err(Rejection::AlreadyTaken),
    }
}

/// Somebody edits a waiting message, or moves it.
#[derive(Clone, Debug, PartialEq)]
pub struct EditQueued {
    /// The message.
    pub queued_id: QueuedId,
    /// Its new text.
    pub content: Option<String>,
    /// Its new place among those that wait, from 0; beyond the end is the last one.
    pub position: Option<usize>,
    /// The grace.
    pub grace: Duration,
}

impl Command for EditQueued {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs { queued_id: Some(self.queued_id), ..Needs::default() }
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        let queued = changeable(view, self.queued_id)?;
        living(view)?;
        // What carries an answer again says what a person said: it is neither reworded nor put behind anything.
        if queued.author_kind == QueuedAuthor::Replacement {
            return Err(Rejection::AlreadyTaken);
        }
        let mut draft = Draft::new(view, ids);
        if let Some(content) = self.content.as_ref().filter(|content| **content != queued.content) {
            draft.change_queued(self.queued_id, |row| row.content.clone_from(content));
            draft.tell(Notice::Queue { change: QueueChange::Edited, queued_id: self.queued_id });
        }
        if let Some(position) = self.position {
            self.move_to(&mut draft, position);
        }
        Ok(draft.finish(self.grace, ()))
    }
}

impl EditQueued {
    fn move_to(&self, draft: &mut Draft<'_>, position: usize) {
        let place = position.max(fixed(&draft.rows));
        let at = |rows: &Rows| rows.waiting().iter().position(|queued| queued.id == self.queued_id);
        let last = draft.rows.waiting().len().saturating_sub(1);
        if at(&draft.rows) == Some(place.min(last)) {
            return;
        }
        let rank = rank_at(draft, place, Some(self.queued_id));
        draft.change_queued(self.queued_id, |row| row.rank = rank);
        draft.tell(Notice::Queue { change: QueueChange::Moved, queued_id: self.queued_id });
    }
}

/// Somebody takes a waiting message back: no agent ever sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Withdraw {
    /// The message.
    pub queued_id: QueuedId,
    /// The grace.
    pub grace: Duration,
}

impl Command for Withdraw {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs { queued_id: Some(self.queued_id), ..Needs::default() }
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        changeable(view, self.queued_id)?;
        living(view)?;
        let mut draft = Draft::new(view, ids);
        withdraw(&mut draft, self.queued_id, "withdrawn");
        Ok(draft.finish(self.grace, ()))
    }
}

/// Takes a message back. It stays readable.
pub(super) fn withdraw(draft: &mut Draft<'_>, queued_id: QueuedId, reason: &str) {
    draft.change_queued(queued_id, |row| {
        row.status = QueuedStatus::Withdrawn;
        row.reason = Some(reason.to_owned());
        row.turn_id = None;
        row.not_before = None;
    });
    draft.tell(Notice::Queue { change: QueueChange::Withdrawn, queued_id });
}

/// Somebody lets held messages go.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// The grace.
    pub grace: Duration,
}

impl Command for Release {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        living(view)?;
        let mut draft = Draft::new(view, ids);
        let held: Vec<QueuedId> = view
            .waiting()
            .iter()
            .filter(|queued| queued.status == QueuedStatus::Held)
            .map(|queued| queued.id)
            .collect();
        for queued_id in held {
            draft.change_queued(queued_id, |row| {
                row.status = QueuedStatus::Queued;
                row.reason = None;
                row.attempts = 0;
                row.not_before = None;
            });
            draft.tell(Notice::Queue { change: QueueChange::Released, queued_id });
        }
        Ok(draft.finish(self.grace, ()))
    }
}
