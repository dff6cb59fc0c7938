//! What agents say: attaching, fetching and acknowledging prompts, frames, the end of a turn.

use super::turn::{self, new_message};
use super::{acknowledge, living, newest};
use crate::ids::{ClaimId, Epoch, ExecutionId, Ids, MessageId, PendingId, TurnId};
use crate::object::{AuthorType, MessageType, TurnOrigin};
use crate::session::command::{Command, Decision};
use crate::session::draft::Draft;
use crate::session::event::EventType;
use crate::session::notice::Notice;
use crate::session::rejection::Rejection;
use crate::session::rows::{Execution, Turn};
use crate::session::transitions::{Then, TurnInput};
use crate::session::view::{Needs, View};
use crate::time::Timestamp;
use serde_json::Value;
use std::time::Duration;

/// Longest text of a message, in bytes, however many frames it came in.
pub const MESSAGE_MAX_BYTES: usize = 64 * 1024;

/// An agent process attaches to its session.
#[derive(Clone, Debug, PartialEq)]
pub struct Attach {
    /// The owner.
    pub epoch: Epoch,
    /// The execution it had before, if it comes back; it must be the newest.
    pub execution_id: Option<ExecutionId>,
    /// What it calls itself.
    pub name: Option<String>,
    /// The grace.
    pub grace: Duration,
}

/// What an agent that attached learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its execution.
    pub execution_id: ExecutionId,
    /// The newest generation that was published, 0 if there is none: one that is not must not be known from anything but
    /// its prompt, for whoever names it proves to have that.
    pub generation: i64,
    /// The turn it can work on.
    pub open_turn: Option<TurnId>,
}

impl Command for Attach {
    type Reply = Attached;

    fn needs(&self) -> Needs {
        Needs { execution_id: self.execution_id, ..Needs::default() }
    }

    fn owner(&self) -> Option<Epoch> {
        Some(self.epoch)
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<Attached>, Rejection> {
        living(view)?;
        if let Some(execution) = self.execution_id {
            newest(view, execution)?;
        }
        let mut draft = Draft::new(view, ids);
        let execution_id = match self.execution_id {
            Some(execution) => execution,
            None => self.replace_execution(&mut draft),
        };
        let open_turn = draft.rows.open_turn().map(|turn| turn.id);
        let generation = draft.rows.published_generation();
        let reply = Attached { execution_id, generation, open_turn };
        Ok(draft.finish(self.grace, reply))
    }
}

impl Attach {
    /// A new execution ends the earlier one, and with it the turn that one had begun. A turn whose prompt nobody has
    /// acknowledged goes to the new one; so does one that an agent without an execution opened.
    fn replace_execution(&self, draft: &mut Draft<'_>) -> ExecutionId {
        let (id, stamp) = (draft.fresh::<ExecutionId>(), draft.stamp);
        if let Some(old) = draft.rows.session.execution_id {
            let of_old = draft.rows.open_turn().filter(|turn| turn.execution_id == Some(old));
            if let Some((turn, begun)) = of_old.map(|turn| (turn.id, !turn.is_untaken())) {
                if begun {
                    turn::close(draft, turn, TurnInput::ExecutionLost, None);
                } else {
                    draft.change_turn(turn, |turn| turn.execution_id = None);
                }
            }
            if let Some(row) = draft.rows.executions.get_mut(&old) {
                row.ended_at = row.ended_at.or(Some(stamp));
            }
        }
        draft.rows.executions.insert(
            id,
            Execution {
                id,
                session_id: draft.rows.session.id,
                name: self.name.clone(),
                frame_seq: 0,
                info: serde_json::json!({}),
                attached_at: stamp,
                ended_at: None,
            },
        );
        draft.session().execution_id = Some(id);
        id
    }
}

/// A prompt that waits for an execution to take it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// The turn.
    pub turn_id: TurnId,
    /// Its generation: what its frames must carry.
    pub generation: i64,
    /// What the agent is asked to do.
    pub content: String,
    /// What opened the turn.
    pub origin: TurnOrigin,
    /// The bundle whose answer it carries.
    pub pending_id: Option<PendingId>,
    /// When it was published.
    pub created_at: Timestamp,
}

/// An execution fetches its prompt: the same one until it is acknowledged or worked on.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchPrompt {
    /// The owner.
    pub epoch: Epoch,
    /// The execution.
    pub execution_id: ExecutionId,
    /// Claims of this session that were released before this request came.
    pub released: Vec<ClaimId>,
    /// The grace.
    pub grace: Duration,
}

impl Command for FetchPrompt {
    type Reply = Option<Prompt>;

    fn needs(&self) -> Needs {
        Needs { execution_id: Some(self.execution_id), ..Needs::default() }
    }

    fn owner(&self) -> Option<Epoch> {
        Some(self.epoch)
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<Option<Prompt>>, Rejection> {
        living(view)?;
        newest(view, self.execution_id)?;
        let mut draft = Draft::new(view, ids);
        acknowledge(&mut draft, Some(self.execution_id), &self.released, None);
        let prompt = view.open_turn().filter(|turn| turn.acked_at.is_none()).and_then(|turn| {
            let message = view.messages.get(&turn.prompt_message_id?)?;
            Some(Prompt {
                turn_id: turn.id,
                generation: turn.generation.unwrap_or(0),
                content: message.content.clone(),
                origin: turn.origin,
                pending_id: turn.pending_id,
                created_at: turn.started_at,
            })
        });
        Ok(draft.finish(self.grace, prompt))
    }
}

/// An execution says that it has a prompt, before it acts on it.
#[derive(Clone, Debug, PartialEq)]
pub struct AckPrompt {
    /// The owner.
    pub epoch: Epoch,
    /// The execution.
    pub execution_id: ExecutionId,
    /// The turn whose prompt it has.
    pub turn_id: TurnId,
    /// Claims of this session that were released before this request came.
    pub released: Vec<ClaimId>,
    /// The grace.
    pub grace: Duration,
}

impl Command for AckPrompt {
    type Reply = ();

    fn needs(&self) -> Needs {
        Needs { execution_id: Some(self.execution_id), turn_id: Some(self.turn_id), ..Needs::default() }
    }

    fn owner(&self) -> Option<Epoch> {
        Some(self.epoch)
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<()>, Rejection> {
        living(view)?;
        newest(view, self.execution_id)?;
        let turn = view.turns.get(&self.turn_id).ok_or(Rejection::NotFound)?;
        let mut draft = Draft::new(view, ids);
        if let Then::Refuse(_) = draft.turn_move(turn.id, TurnInput::Acknowledge) {
            return Err(Rejection::StaleGeneration);
        }
        acknowledge(&mut draft, Some(self.execution_id), &self.released, None);
        prove(&mut draft, self.turn_id);
        take_turn(&mut draft, self.turn_id, Some(self.execution_id));
        Ok(draft.finish(self.grace, ()))
    }
}

/// Whoever speaks of a turn that is not published proves that its prompt has arrived.
pub(super) fn prove(draft: &mut Draft<'_>, turn_id: TurnId) {
    if draft.rows.turns.get(&turn_id).is_some_and(Turn::is_reservation) {
        turn::publish(draft, turn_id);
    }
}

/// The turn belongs to this execution from now on (or to an agent that has none), and its agent does more than ask.
pub(super) fn take_turn(draft: &mut Draft<'_>, turn_id: TurnId, execution: Option<ExecutionId>) {
    let stamp = draft.stamp;
    draft.change_turn(turn_id, |turn| {
        turn.acked_at = turn.acked_at.or(Some(stamp));
        turn.execution_id = turn.execution_id.or(execution);
    });
    let asked: Vec<_> = draft.rows.active_bundles(turn_id, draft.now()).map(|bundle| bundle.pending_id).collect();
    for pending in asked {
        draft.change_bundle(pending, |bundle| bundle.attended = true);
    }
}

/// One thing an agent tells about its work.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// Words or reasoning for the history.
    Text {
        /// `message` or `thinking`.
        kind: MessageType,
        /// The words.
        text: String,
        /// The agent's name for the message; later frames with it change the same message.
        key: Option<String>,
        /// Whether the words are added to what stands there, instead of replacing it.
        delta: bool,
    },
    /// The agent's word about itself.
    Info {
        /// `session_info` or `session_status`.
        kind: &'static str,
        /// What it says.
        data: Value,
    },
    /// The turn is over.
    Complete {
        /// How.
        stop_reason: StopReason,
        /// What went wrong, in the agent's words.
        error: Option<String>,
    },
}

/// How an agent ends its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It is done.
    EndTurn,
    /// It was cancelled.
    Cancelled,
    /// It failed.
    Error,
}

/// Frames of an execution, numbered from 1. Seen numbers are dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct Frames {
    /// The owner.
    pub epoch: Epoch,
    /// The execution.
    pub execution_id: ExecutionId,
    /// The generation they belong to.
    pub generation: i64,
    /// Number of the first.
    pub first_seq: i64,
    /// The frames.
    pub frames: Vec<Frame>,
    /// Claims of this session that were released before this request came.
    pub released: Vec<ClaimId>,
    /// The grace.
    pub grace: Duration,
}

/// What became of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramesStored {
    /// Highest number stored.
    pub accepted: i64,
    /// The turn that they closed.
    pub closed: Option<TurnId>,
}

impl Command for Frames {
    type Reply = FramesStored;

    fn needs(&self) -> Needs {
        let keys = self.frames.iter().filter_map(|frame| match frame {
            Frame::Text { key, .. } => key.clone(),
            Frame::Info { .. } | Frame::Complete { .. } => None,
        });
        Needs {
            execution_id: Some(self.execution_id),
            generation: Some(self.generation),
            keys: keys.collect(),
            ..Needs::default()
        }
    }

    fn owner(&self) -> Option<Epoch> {
        Some(self.epoch)
    }

    fn decide(&self, view: &View, ids: &mut Ids) -> Result<Decision<FramesStored>, Rejection> {
        let execution = view.executions.get(&self.execution_id).ok_or(Rejection::NotFound)?;
        let stored = execution.frame_seq;
        let count = i64::try_from(self.frames.len()).unwrap_or(i64::MAX);
        let last = self.first_seq.saturating_sub(1).saturating_add(count);
        let mut draft = Draft::new(view, ids);
        if last <= stored {
            // A repeat of an accepted call gets the same answer, also after the turn's end.
            acknowledge(&mut draft, Some(self.execution_id), &self.released, None);
            return Ok(draft.finish(self.grace, FramesStored { accepted: stored, closed: None }));
        }
        living(view)?;
        newest(view, self.execution_id)?;
        if self.first_seq > stored + 1 {
            return Err(Rejection::FrameGap { expected: stored + 1 });
        }
        let turn = view.turn_of_generation(self.generation).ok_or(Rejection::StaleGeneration)?;
        if let Then::Refuse(_) = draft.turn_move(turn.id, TurnInput::Frame) {
            return Err(Rejection::StaleGeneration);
        }
        acknowledge(&mut draft, Some(self.execution_id), &self.released, None);
        prove(&mut draft, turn.id);
        take_turn(&mut draft, turn.id, Some(self.execution_id));
        let seen = usize::try_from(stored + 1 - self.first_seq).unwrap_or(0);
        let (mut accepted, mut closed) = (stored, None);
        for frame in self.frames.iter().skip(seen) {
            accepted += 1;
            if self.store(&mut draft, turn.id, frame)? {
                // What follows came for a closed turn: it is not stored, and sent again it is refused.
                closed = Some(turn.id);
                break;
            }
        }
        if let Some(row) = draft.rows.executions.get_mut(&self.execution_id) {
            row.frame_seq = accepted;
        }
        Ok(draft.finish(self.grace, FramesStored { accepted, closed }))
    }
}

impl Frames {
    /// Stores one frame. Returns whether it closed the turn.
    fn store(&self, draft: &mut Draft<'_>, turn_id: TurnId, frame: &Frame) -> Result<bool, Rejection> {
        let closes = match frame {
            Frame::Text { kind, text, key, delta } => {
                store_text(draft, turn_id, *kind, text, key.as_deref(), *delta)?;
                false
            }
            Frame::Info { kind, data } => {
                if let Some(row) = draft.rows.executions.get_mut(&self.execution_id) {
                    row.info[*kind] = data.clone();
                }
                false
            }
            Frame::Complete { stop_reason, error } => {
                let input = match stop_reason {
                    StopReason::EndTurn => TurnInput::Complete,
                    StopReason::Cancelled => TurnInput::AgentCancel,
                    StopReason::Error => TurnInput::Fail,
                };
                turn::close(draft, turn_id, input, error.clone());
                true
            }
        };
        Ok(closes)
    }
}

fn store_text(
    draft: &mut Draft<'_>,
    turn_id: TurnId,
    kind: MessageType,
    text: &str,
    key: Option<&str>,
    delta: bool,
) -> Result<(), Rejection> {
    let known = key.and_then(|key| {
        draft
            .rows
            .messages
            .values()
            .find(|message| message.turn_id == turn_id && message.key.as_deref() == Some(key))
            .map(|message| message.id)
    });
    match known {
        // A person deleted it: its text stays gone.
        Some(id) if draft.rows.messages[&id].deleted_at.is_some() => {}
        Some(id) if delta && draft.rows.messages[&id].content.len() + text.len() > MESSAGE_MAX_BYTES => {
            return Err(Rejection::MessageTooLong);
        }
        None | Some(_) if text.len() > MESSAGE_MAX_BYTES => return Err(Rejection::MessageTooLong),
        Some(id) => {
            draft.change_message(id, |message| {
                if !delta {
                    message.content.clear();
                }
                message.content.push_str(text);
            });
            draft.tell(Notice::Message { kind: EventType::MessageUpdated, message_id: id, action: false });
        }
        None => {
            let id = draft.fresh::<MessageId>();
            let mut message = new_message(draft, id, turn_id, AuthorType::Agent, kind, text.to_owned());
            message.key = key.map(str::to_owned);
            draft.add_message(message);
        }
    }
    Ok(())
}
