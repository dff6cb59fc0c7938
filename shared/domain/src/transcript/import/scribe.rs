//! Writes what the readers find into turns, and repairs it on the way. The readers know the format, it does not.

use super::super::is_blank;
use super::super::ledger::{Block, Ledger, Prompt, Reply, Round, Thinking, ToolCall, Turn, is_provable};
use super::{ImportError, Repair, Repairs, Wire};
use crate::ids::{CallId, MessageId, TurnId};
use crate::object::{CallPolicy, CallStatus, TurnStatus};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use uuid::Uuid;

/// The tool of a call that nothing is known of but its result.
const UNKNOWN_TOOL: &str = "unknown_tool";
/// The prompt of a conversation whose beginning is missing.
const MISSING_PROMPT: &str = "[What was said before this point is not known.]";

/// Where a call stands.
#[derive(Clone, Copy)]
struct Place {
    turn: usize,
    round: usize,
    block: usize,
}

/// Writes a ledger.
pub(super) struct Scribe<N> {
    wire: Wire,
    new_id: N,
    turns: Vec<Turn>,
    calls: HashMap<String, Place>,
    repairs: Repairs,
    /// The next reply begins a round of its own.
    round_is_over: bool,
    /// How many rounds at the end were made up here, for results without a call.
    made_up: usize,
}

impl<N: FnMut() -> Uuid> Scribe<N> {
    pub(super) fn new(wire: Wire, new_id: N) -> Self {
        Self {
            wire,
            new_id,
            turns: Vec::new(),
            calls: HashMap::new(),
            repairs: Repairs::default(),
            round_is_over: true,
            made_up: 0,
        }
    }

    /// Counts a repair that a reader made.
    pub(super) fn repaired(&mut self, repair: Repair) {
        self.repairs.add(repair);
    }

    /// A text of a person.
    pub(super) fn user(&mut self, text: &str) {
        if is_blank(text) {
            return self.repairs.add(Repair::BlankText);
        }
        if self.turns.last().is_none_or(|turn| !turn.rounds.is_empty()) {
            self.begin_turn();
        }
        let prompt = Prompt { id: MessageId((self.new_id)()), text: text.to_owned(), deleted: false };
        if let Some(turn) = self.turns.last_mut() {
            turn.prompts.push(prompt);
        }
    }

    /// A message of the assistant begins: what it says is a round of its own.
    pub(super) fn begin_reply(&mut self) {
        self.round_is_over = true;
    }

    /// A text of the assistant.
    pub(super) fn text(&mut self, text: &str) {
        if is_blank(text) {
            return self.repairs.add(Repair::BlankText);
        }
        let reply = Reply { id: MessageId((self.new_id)()), text: text.to_owned(), deleted: false };
        let round = self.round();
        // Only the Responses wire has a place for a text after a call.
        let after_call = round.calls().next().is_some();
        round.blocks.push(Block::Text(reply));
        if after_call && self.wire != Wire::OpenAiResponses {
            self.repairs.add(Repair::MovedText);
        }
    }

    /// A block of thinking, as the provider issued it.
    pub(super) fn thinking(&mut self, payload: &Value) {
        if !is_provable(self.wire, payload) {
            return self.repairs.add(Repair::UnusableThinking);
        }
        let (id, wire) = (MessageId((self.new_id)()), self.wire);
        let thinking = Thinking { id, wire, payload: payload.clone(), finished: true, deleted: false };
        self.round().blocks.push(Block::Thinking(thinking));
    }

    /// A call.
    pub(super) fn call(&mut self, id: &str, name: &str, input: Value) {
        if self.calls.contains_key(id) {
            return self.repairs.add(Repair::DuplicateCall);
        }
        let call_id = CallId((self.new_id)());
        let round = self.round();
        let index = i32::try_from(round.calls().count()).unwrap_or(i32::MAX);
        round.blocks.push(Block::Call(ToolCall {
            id: call_id,
            provider_call_id: id.to_owned(),
            index,
            name: name.to_owned(),
            input,
            policy: CallPolicy::Always,
            status: CallStatus::Running,
            output: None,
            denial: None,
            late_output: None,
            deleted: false,
        }));
        let turn = self.turns.len() - 1;
        let round = self.turns[turn].rounds.len() - 1;
        let block = self.turns[turn].rounds[round].blocks.len() - 1;
        self.calls.insert(id.to_owned(), Place { turn, round, block });
    }

    /// The result of a call.
    pub(super) fn result(&mut self, id: &str, output: String, failed: bool) {
        if !self.calls.contains_key(id) {
            self.repairs.add(Repair::ResultWithoutCall);
            let made_up = self.made_up;
            self.round_is_over = true;
            self.call(id, UNKNOWN_TOOL, Value::Object(Map::new()));
            self.made_up = made_up + 1;
        }
        let Some(place) = self.calls.get(id).copied() else { return };
        let moved = !self.is_last(place);
        let block = &mut self.turns[place.turn].rounds[place.round].blocks[place.block];
        let Block::Call(call) = block else { return };
        if call.output.is_some() {
            return self.repairs.add(Repair::DuplicateResult);
        }
        call.status = if failed { CallStatus::Failed } else { CallStatus::Succeeded };
        call.output = Some(Value::String(output));
        self.round_is_over |= !moved;
        if moved {
            self.repairs.add(Repair::MovedResult);
        }
    }

    /// Whether nothing of the conversation was said since the round of this call.
    fn is_last(&self, place: Place) -> bool {
        place.turn + 1 == self.turns.len() && place.round + 1 + self.made_up >= self.turns[place.turn].rounds.len()
    }

    /// The round that the assistant's next word belongs to.
    fn round(&mut self) -> &mut Round {
        if self.turns.is_empty() {
            self.user(MISSING_PROMPT);
            self.repairs.add(Repair::MissingPrompt);
        }
        let turn = self.turns.len() - 1;
        let rounds = &mut self.turns[turn].rounds;
        if self.round_is_over || rounds.is_empty() {
            self.round_is_over = false;
            self.made_up = 0;
            let round = i32::try_from(rounds.len()).unwrap_or(i32::MAX);
            rounds.push(Round { round, finished: true, blocks: Vec::new() });
        }
        let round = rounds.len() - 1;
        &mut rounds[round]
    }

    fn begin_turn(&mut self) {
        let generation = i64::try_from(self.turns.len()).unwrap_or(i64::MAX - 1) + 1;
        self.turns.push(Turn {
            id: TurnId((self.new_id)()),
            generation,
            status: TurnStatus::Completed,
            left_out: false,
            prompts: Vec::new(),
            rounds: Vec::new(),
        });
        self.round_is_over = true;
        self.made_up = 0;
    }

    /// Closes what is open.
    pub(super) fn finish(mut self) -> Result<(Ledger, Repairs), ImportError> {
        for round in self.turns.iter_mut().flat_map(|turn| &mut turn.rounds) {
            let repairs = &mut self.repairs;
            for block in &mut round.blocks {
                if let Block::Call(call) = block
                    && call.status == CallStatus::Running
                {
                    call.status = CallStatus::Interrupted;
                    repairs.add(Repair::CallWithoutResult);
                }
            }
            drop_idle_thinking(self.wire, round, repairs);
        }
        for turn in &mut self.turns {
            turn.rounds.retain(|round| !round.blocks.is_empty());
        }
        if self.turns.is_empty() {
            let problem = "there is nothing to take over: no message with a text or a call".to_owned();
            return Err(ImportError { pointer: String::new(), problem });
        }
        Ok((Ledger { turns: self.turns }, self.repairs))
    }
}

/// Thinking that led to nothing is refused by its provider.
fn drop_idle_thinking(wire: Wire, round: &mut Round, repairs: &mut Repairs) {
    let calls = round.calls().next().is_some();
    let led_to = round.blocks.iter().rposition(Block::says_something);
    let mut place = 0;
    round.blocks.retain(|block| {
        let stays = !matches!(block, Block::Thinking(_))
            || match wire {
                Wire::Anthropic => calls || led_to.is_some_and(|last| place < last),
                Wire::OpenAiChat => led_to.is_some(),
                Wire::OpenAiResponses => led_to.is_some_and(|last| place < last),
            };
        place += 1;
        if !stays {
            repairs.add(Repair::UnusableThinking);
        }
        stays
    });
}

/// Arguments that stand as a string of JSON. Providers read an object from it; what is none is kept in one.
pub(super) fn arguments<N: FnMut() -> Uuid>(scribe: &mut Scribe<N>, text: &str) -> Value {
    if is_blank(text) {
        return Value::Object(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Value::Object(fields),
        _ => {
            scribe.repaired(Repair::UnreadableArguments);
            json!({ "arguments": text })
        }
    }
}
