//! The check of the rows before they are told. It names the row, and it repairs nothing.

use crate::ids::{CallId, MessageId, TurnId};
use crate::object::TurnStatus;
use crate::transcript::is_blank;
use crate::transcript::ledger::{Round, Turn};
use std::fmt;
use thiserror::Error;

/// A row from which no sound request can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{row} of turn {turn}: {fault}")]
pub struct Damaged {
    /// The turn.
    pub turn: TurnId,
    /// The row in it.
    pub row: Row,
    /// What is wrong.
    pub fault: Fault,
}

/// A row of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// The turn itself.
    Turn,
    /// A message.
    Message(MessageId),
    /// A reply, by its number.
    Round(i32),
    /// A tool call.
    Call(CallId),
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn => f.write_str("the row"),
            Self::Message(id) => write!(f, "message {id}"),
            Self::Round(round) => write!(f, "round {round}"),
            Self::Call(id) => write!(f, "tool call {id}"),
        }
    }
}

/// What is wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// Its generation does not come after that of the turn before.
    #[error("its generation does not follow on that of the turn before")]
    OutOfOrder,
    /// Another turn comes after it.
    #[error("it is open, and another turn follows")]
    OpenAndFollowed,
    /// A message without text.
    #[error("it is blank")]
    Blank,
    /// The row was told already.
    #[error("it stands in the conversation twice")]
    Twice,
    /// A call of a closed turn that can still change.
    #[error("it is open, and its turn is closed")]
    OpenCall,
    /// Rounds do not rise.
    #[error("its number does not follow on that of the round before")]
    RoundOrder,
    /// Calls do not rise.
    #[error("its index does not follow on that of the call before")]
    CallOrder,
    /// A partial reply in the midst of a turn.
    #[error("it is not finished, and another round follows")]
    UnfinishedFollowed,
    /// A partial reply that a completed turn ends with.
    #[error("it is not finished, and its turn is completed")]
    UnfinishedCompleted,
    /// A call of no tool.
    #[error("it names no tool")]
    Nameless,
}

/// Whether a turn that comes after `generation`, as the `last` one or not, can be told.
pub(in crate::transcript) fn check(turn: &Turn, generation: Option<i64>, last: bool) -> Result<(), Damaged> {
    let damaged = |row, fault| Err(Damaged { turn: turn.id, row, fault });
    if generation.is_some_and(|before| turn.generation <= before) {
        return damaged(Row::Turn, Fault::OutOfOrder);
    }
    if !last && !turn.status.is_terminal() {
        return damaged(Row::Turn, Fault::OpenAndFollowed);
    }
    if let Some(prompt) = turn.prompts.iter().find(|prompt| !prompt.deleted && is_blank(&prompt.text)) {
        return damaged(Row::Message(prompt.id), Fault::Blank);
    }
    if let Some(pair) = turn.rounds.windows(2).find(|pair| pair[0].round >= pair[1].round) {
        return damaged(Row::Round(pair[1].round), Fault::RoundOrder);
    }
    for (place, round) in turn.rounds.iter().enumerate() {
        let followed = place + 1 < turn.rounds.len();
        check_round(turn, round, followed).or_else(|(row, fault)| damaged(row, fault))?;
    }
    Ok(())
}

fn check_round(turn: &Turn, round: &Round, followed: bool) -> Result<(), (Row, Fault)> {
    let this = Row::Round(round.round);
    if !round.finished && followed {
        return Err((this, Fault::UnfinishedFollowed));
    }
    if !round.finished && turn.status == TurnStatus::Completed {
        return Err((this, Fault::UnfinishedCompleted));
    }
    let mut before = None;
    for call in round.calls() {
        let row = Row::Call(call.id);
        if before.is_some_and(|before| call.index <= before) {
            return Err((row, Fault::CallOrder));
        }
        before = Some(call.index);
        if is_blank(&call.name) {
            return Err((row, Fault::Nameless));
        }
        if !call.status.is_terminal() && turn.status.is_terminal() {
            return Err((row, Fault::OpenCall));
        }
    }
    Ok(())
}
