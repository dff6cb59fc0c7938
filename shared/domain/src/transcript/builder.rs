//! From turns to a body, by appending.

use super::ledger::{Block, Ledger, Round, Thinking, ToolCall, Turn};
use super::sheet::{Called, Open, Part, Sheet, Told};
use super::validate::rows::{self, Damaged, Fault, Row};
use super::{Wire, is_blank, told};
use std::collections::HashSet;
use uuid::Uuid;

/// The history part of an Anthropic request: the array under `messages`.
///
/// # Errors
/// A row is not sound.
pub fn anthropic(ledger: &Ledger) -> Result<String, Damaged> {
    build(Wire::Anthropic, ledger)
}

/// The history part of a chat completions request: the array under `messages`, without system text.
///
/// # Errors
/// A row is not sound.
pub fn openai_chat(ledger: &Ledger) -> Result<String, Damaged> {
    build(Wire::OpenAiChat, ledger)
}

/// The history part of a Responses request: the array under `input`.
///
/// # Errors
/// A row is not sound.
pub fn openai_responses(ledger: &Ledger) -> Result<String, Damaged> {
    build(Wire::OpenAiResponses, ledger)
}

/// The history part of a request on `wire`. The same ledger always gives the same bytes.
///
/// # Errors
/// A row is not sound.
pub fn build(wire: Wire, ledger: &Ledger) -> Result<String, Damaged> {
    let mut builder = Builder::new(wire);
    builder.extend(&ledger.turns)?;
    Ok(builder.body())
}

/// Builds the body of one session's requests, one after the other, reading of each turn no more than once after its
/// end. What it gives is equal, byte for byte, to what a new builder gives for the whole ledger.
///
/// The deletion of a message that it has read makes it worthless: begin a new one.
#[derive(Clone, Debug)]
pub struct Builder {
    wire: Wire,
    sheet: Sheet,
    /// Whether the last reply told broke off, and no prompt has said so.
    broke_off: bool,
    seen: Seen,
    /// What stood on the page when the last closed turn was written; what came after belongs to an open one.
    sealed: Seal,
}

/// The end of what can no longer change.
#[derive(Clone, Copy, Debug)]
struct Seal {
    generation: Option<i64>,
    length: usize,
    open: Open,
    broke_off: bool,
}

/// Rows and names that are on the page; those of an open turn can be forgotten again.
#[derive(Clone, Debug, Default)]
struct Seen {
    rows: HashSet<Uuid>,
    names: HashSet<String>,
    new_rows: Vec<Uuid>,
    new_names: Vec<String>,
}

impl Builder {
    /// One that has read nothing.
    #[must_use]
    pub fn new(wire: Wire) -> Self {
        let sheet = Sheet::new(wire);
        let sealed = Seal { generation: None, length: sheet.text.len(), open: sheet.open, broke_off: false };
        Self { wire, sheet, broke_off: false, seen: Seen::default(), sealed }
    }

    /// The generation of the last turn that was closed when it was read. The next call of [`Self::extend`] wants all
    /// turns after it.
    #[must_use]
    pub fn sealed(&self) -> Option<i64> {
        self.sealed.generation
    }

    /// Reads all turns after [`Self::sealed`]; an open turn that was read before is read anew.
    ///
    /// # Errors
    /// A row is not sound. The builder then stands where it stood after the last closed turn that was sound.
    pub fn extend(&mut self, turns: &[Turn]) -> Result<(), Damaged> {
        self.forget_open_turn();
        for (place, turn) in turns.iter().enumerate() {
            let read =
                rows::check(turn, self.sealed.generation, place + 1 == turns.len()).and_then(|()| self.write(turn));
            if let Err(damaged) = read {
                self.forget_open_turn();
                return Err(damaged);
            }
            if turn.status.is_terminal() {
                self.seal(turn.generation);
            }
        }
        Ok(())
    }

    /// The body as far as it was read: a JSON array.
    #[must_use]
    pub fn body(&self) -> String {
        self.sheet.body()
    }

    fn seal(&mut self, generation: i64) {
        self.seen.keep();
        self.sealed = Seal {
            generation: Some(generation),
            length: self.sheet.text.len(),
            open: self.sheet.open,
            broke_off: self.broke_off,
        };
    }

    fn forget_open_turn(&mut self) {
        self.seen.forget();
        self.sheet.text.truncate(self.sealed.length);
        self.sheet.open = self.sealed.open;
        self.broke_off = self.sealed.broke_off;
    }

    fn write(&mut self, turn: &Turn) -> Result<(), Damaged> {
        self.see(turn)?;
        if !turn.is_told() {
            return Ok(());
        }
        let sayable = sayable(turn);
        let live: Vec<&str> =
            turn.prompts.iter().filter(|prompt| !prompt.deleted).map(|prompt| prompt.text.as_str()).collect();
        match (live.is_empty(), turn.prompts.is_empty()) {
            (false, _) => live.into_iter().for_each(|text| self.prompt(text)),
            // Always, so that the model is spoken to in a request, and that none of it goes away when the turn ends.
            (true, false) => self.prompt(told::DELETED_PROMPT),
            (true, true) if sayable.is_empty() => return Ok(()),
            (true, true) => self.prompt(told::NO_PROMPT),
        }
        for round in sayable {
            let told = self.told(round);
            self.sheet.reply(&told);
        }
        self.broke_off = turn.broke_off();
        Ok(())
    }

    /// Each row is told once: a message that two turns have taken, or a call that stands twice, is damage.
    fn see(&mut self, turn: &Turn) -> Result<(), Damaged> {
        let prompts = turn.prompts.iter().map(|prompt| (prompt.id.0, Row::Message(prompt.id)));
        let calls = turn.rounds.iter().flat_map(Round::calls).map(|call| (call.id.0, Row::Call(call.id)));
        for (id, row) in prompts.chain(calls) {
            if !self.seen.row(id) {
                return Err(Damaged { turn: turn.id, row, fault: Fault::Twice });
            }
        }
        Ok(())
    }

    fn prompt(&mut self, text: &str) {
        if std::mem::take(&mut self.broke_off) {
            self.sheet.user(&format!("{}\n{text}", told::INTERRUPTED_MARKER));
        } else {
            self.sheet.user(text);
        }
    }

    fn told<'a>(&mut self, round: &'a Round) -> Told<'a> {
        let mut parts = Vec::with_capacity(round.blocks.len());
        for (place, block) in round.blocks.iter().enumerate() {
            match block {
                Block::Thinking(thinking) if keeps(self.wire, round, place, thinking) => {
                    parts.push(Part::Thinking(&thinking.payload));
                }
                Block::Thinking(_) => {}
                Block::Text(reply) if block.says_something() => parts.push(Part::Text(reply.text.trim_end())),
                Block::Call(call) if block.says_something() => {
                    // A call that is not closed is in no round that is told.
                    if let Some(outcome) = told::outcome(call) {
                        let id = self.seen.name(call);
                        parts.push(Part::Call(Called { id, name: &call.name, input: &call.input, outcome }));
                    }
                }
                Block::Text(_) | Block::Call(_) => {}
            }
        }
        Told { parts }
    }
}

/// The rounds that are told. Of an open turn these are rounds of which nothing can change, and they end with results,
/// because the next request does: a reply whose calls were deleted is told when something follows it.
fn sayable(turn: &Turn) -> Vec<&Round> {
    let open = !turn.status.is_terminal();
    let stands = |round: &&Round| !open || (round.finished && !round.has_open_call());
    let mut rounds: Vec<&Round> =
        turn.rounds.iter().take_while(stands).filter(|round| round.says_something()).collect();
    while open && rounds.last().is_some_and(|round| round.calls().all(|call| call.deleted)) {
        rounds.pop();
    }
    rounds
}

/// Whether a block of thinking stays. It stands with what it led to, or it goes whole.
fn keeps(wire: Wire, round: &Round, place: usize, thinking: &Thinking) -> bool {
    if !round.finished || !thinking.is_usable(wire) {
        return false;
    }
    let mut after = round.blocks[place + 1..].iter();
    match wire {
        // A message must not end with thinking; that a neighbour was deleted does not matter.
        Wire::Anthropic => after.any(Block::says_something),
        // One field of the message, whatever the order.
        Wire::OpenAiChat => true,
        // The item that directly follows is the one it produced.
        Wire::OpenAiResponses => after
            .find(|block| match block {
                Block::Thinking(_) => false,
                Block::Text(reply) => !is_blank(&reply.text),
                Block::Call(_) => true,
            })
            .is_some_and(Block::says_something),
    }
}

impl Seen {
    /// Remembers a row; `false` if it was there.
    fn row(&mut self, id: Uuid) -> bool {
        let new = self.rows.insert(id);
        if new {
            self.new_rows.push(id);
        }
        new
    }

    /// The name of a call in the request: the provider's own where it can be used and is not taken, because some want
    /// it back in their own form; otherwise one made of the call's id.
    fn name(&mut self, call: &ToolCall) -> String {
        let own = &call.provider_call_id;
        let name = if is_name(own) && !self.names.contains(own) {
            own.clone()
        } else {
            format!("call_{}", call.id.0.simple())
        };
        self.names.insert(name.clone());
        self.new_names.push(name.clone());
        name
    }

    fn keep(&mut self) {
        self.new_rows.clear();
        self.new_names.clear();
    }

    fn forget(&mut self) {
        for id in self.new_rows.drain(..) {
            self.rows.remove(&id);
        }
        for name in self.new_names.drain(..) {
            self.names.remove(&name);
        }
    }
}

/// What every provider takes as the id of a call.
fn is_name(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
