//! A session as far as its transcript is concerned: a small model of what its rows go through.

use crate::judge::Judge;
use domain::ids::{CallId, MessageId, TurnId};
use domain::object::{CallPolicy, CallStatus, TurnStatus};
use domain::transcript::{Block, Ledger, Prompt, Reply, Round, Thinking, ToolCall, Turn, Wire};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use uuid::Uuid;

/// Consecutive failures that fail a turn.
const FAILURES_MAX: usize = 6;

/// What a tool gives back.
#[derive(Clone, Debug)]
pub(crate) enum Output {
    Text(&'static str),
    Json,
    Nothing,
    Error(&'static str),
}

/// What a model streams.
#[derive(Clone, Debug)]
pub(crate) enum Chunk {
    Thinking,
    /// Thinking comes to its end, with what proves it.
    ThinkingEnd,
    /// Both at once.
    Thought,
    Text(&'static str),
    /// A call whose arguments have not finished: no row is written.
    CallBegins,
}

/// A message that no turn has taken.
#[derive(Clone, Debug)]
struct Waiting {
    text: String,
    by_person: bool,
}

/// Where the open turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    /// A reservation: nothing was sent.
    Reserved,
    Requesting,
    Streaming,
    /// Calls are open.
    Calling,
}

/// A session.
pub(crate) struct World {
    pub(crate) wire: Wire,
    pub(crate) ledger: Ledger,
    pub(crate) phase: Phase,
    queue: VecDeque<Waiting>,
    generation: i64,
    rows: u128,
    failures: usize,
    always: BTreeSet<String>,
    /// What the model must be told: kept apart from the rows.
    pub(crate) taken: Vec<(MessageId, String)>,
    pub(crate) withdrawn: Vec<String>,
    pub(crate) issued: Vec<Value>,
    /// What occurred, so that a test can see that everything did.
    pub(crate) seen: BTreeSet<&'static str>,
    pub(crate) judge: Judge,
}

impl World {
    pub(crate) fn new(wire: Wire) -> Self {
        Self {
            wire,
            ledger: Ledger::default(),
            phase: Phase::Idle,
            queue: VecDeque::new(),
            generation: 0,
            rows: 0,
            failures: 0,
            always: BTreeSet::new(),
            taken: Vec::new(),
            withdrawn: Vec::new(),
            issued: Vec::new(),
            seen: BTreeSet::new(),
            judge: Judge::default(),
        }
    }

    fn id(&mut self) -> Uuid {
        self.rows += 1;
        Uuid::from_u128(self.rows)
    }

    pub(crate) fn turn(&mut self) -> &mut Turn {
        self.ledger.turns.last_mut().expect("only called while a turn is open")
    }

    /// Somebody sends a message. A person's message at an unanswered permission ends that turn.
    pub(crate) fn send(&mut self, text: &str, by_person: bool) {
        self.queue.push_back(Waiting { text: text.to_owned(), by_person });
        self.seen.insert(if by_person { "sent" } else { "system message" });
        if by_person {
            self.yield_to_person();
        }
    }

    fn yield_to_person(&mut self) {
        let asks = self.phase == Phase::Calling && self.open_calls(CallStatus::AwaitingPermission) > 0;
        if asks && self.queue.iter().any(|waiting| waiting.by_person) {
            self.seen.insert("message at a permission");
            self.close(TurnStatus::Interrupted);
        }
    }

    /// Whether nobody waits for the model.
    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty()
    }

    /// The head of the queue becomes a reservation.
    pub(crate) fn dispatch(&mut self) {
        if self.phase != Phase::Idle {
            return;
        }
        let Some(waiting) = self.queue.pop_front() else { return };
        self.generation += 1;
        let (turn, message) = (TurnId(self.id()), MessageId(self.id()));
        self.ledger.turns.push(Turn {
            id: turn,
            generation: self.generation,
            status: TurnStatus::Reserved,
            left_out: false,
            prompts: vec![Prompt { id: message, text: waiting.text, deleted: false }],
            rounds: Vec::new(),
        });
        self.phase = Phase::Reserved;
        self.failures = 0;
    }

    /// The reservation is removed and its message goes back to its place, as after a crash or a refusal.
    pub(crate) fn roll_back(&mut self) {
        if self.phase == Phase::Reserved {
            let text = self.turn().prompts[0].text.clone();
            self.ledger.turns.pop();
            self.queue.push_front(Waiting { text, by_person: true });
            self.phase = Phase::Idle;
            self.seen.insert("rolled back");
        }
    }

    /// An operator says that the dispatch was never accepted: the turn is left out, its prompt runs again.
    pub(crate) fn settle_not_accepted(&mut self) {
        if self.phase == Phase::Reserved {
            let text = self.turn().prompts[0].text.clone();
            self.turn().left_out = true;
            self.turn().status = TurnStatus::Failed;
            self.queue.push_front(Waiting { text, by_person: true });
            self.phase = Phase::Idle;
            self.seen.insert("left out");
        }
    }

    /// The turn is published, or goes on, and the next request leaves the house.
    pub(crate) fn request(&mut self) {
        if self.phase == Phase::Reserved {
            self.publish();
        }
        if self.phase == Phase::Requesting {
            self.judge_request();
            self.phase = Phase::Streaming;
        }
    }

    fn publish(&mut self) {
        self.turn().status = TurnStatus::Running;
        let prompt = self.turn().prompts[0].clone();
        self.taken.push((prompt.id, prompt.text));
        self.phase = Phase::Requesting;
    }

    /// The unfinished reply that chunks go into.
    fn partial(&mut self) -> &mut Round {
        let turn = self.turn();
        if turn.rounds.last().is_none_or(|round| round.finished) {
            let round = i32::try_from(turn.rounds.len()).expect("scripts are short");
            turn.rounds.push(Round { round, finished: false, blocks: Vec::new() });
        }
        turn.rounds.last_mut().expect("one was pushed if there was none")
    }

    pub(crate) fn chunk(&mut self, chunk: &Chunk) {
        if self.phase != Phase::Streaming {
            // It belongs to another turn: counted, and nothing else.
            self.seen.insert("stray chunk");
            return;
        }
        let (id, wire) = (MessageId(self.id()), self.wire);
        match chunk {
            Chunk::Thought => {
                self.chunk(&Chunk::Thinking);
                self.chunk(&Chunk::ThinkingEnd);
            }
            Chunk::Text(text) => {
                let reply = Reply { id, text: (*text).to_owned(), deleted: false };
                self.partial().blocks.push(Block::Text(reply));
            }
            Chunk::Thinking => {
                let payload = Value::Null;
                let thinking = Thinking { id, wire, payload, finished: false, deleted: false };
                self.partial().blocks.push(Block::Thinking(thinking));
            }
            Chunk::ThinkingEnd => {
                let proof = thinking(wire, self.rows);
                if let Some(Block::Thinking(last)) = self.partial().blocks.last_mut()
                    && !last.finished
                {
                    last.finished = true;
                    last.payload = proof.clone();
                    self.issued.push(proof);
                }
            }
            Chunk::CallBegins => _ = self.seen.insert("unfinished call"),
        }
    }

    /// The model has finished its reply, with these calls.
    pub(crate) fn done(&mut self, calls: &[(&str, CallPolicy)]) {
        if self.phase != Phase::Streaming {
            return;
        }
        let ids: Vec<Uuid> = calls.iter().map(|_| self.id()).collect();
        let always = self.always.clone();
        let round = self.partial();
        round.finished = true;
        for (index, ((name, policy), id)) in calls.iter().zip(ids).enumerate() {
            let policy = if always.contains(*name) { CallPolicy::Always } else { *policy };
            round.blocks.push(Block::Call(ToolCall {
                id: CallId(id),
                // Some providers begin anew with each reply.
                provider_call_id: format!("call_{index}"),
                index: i32::try_from(index).expect("scripts are short"),
                name: (*name).to_owned(),
                input: json!({ "index": index }),
                policy,
                status: match policy {
                    CallPolicy::Ask => CallStatus::AwaitingPermission,
                    CallPolicy::Always => CallStatus::Running,
                    CallPolicy::Never => CallStatus::Denied,
                },
                output: None,
                denial: None,
                late_output: None,
                deleted: false,
            }));
        }
        if calls.is_empty() {
            return self.close(TurnStatus::Completed);
        }
        self.seen.insert(if calls.len() > 1 { "batch" } else { "call" });
        self.phase = Phase::Calling;
        self.yield_to_person();
        self.go_on();
    }

    /// All results are in: they go out together.
    fn go_on(&mut self) {
        let open = |round: &Round| round.has_open_call();
        if self.phase == Phase::Calling && !self.turn().rounds.last().is_some_and(open) {
            self.phase = Phase::Requesting;
        }
    }

    fn open_calls(&self, status: CallStatus) -> usize {
        let last = self.ledger.turns.last().and_then(|turn| turn.rounds.last());
        last.map_or(0, |round| round.calls().filter(|call| call.status == status).count())
    }

    /// The `nth` call of the last round that stands so, counted around.
    fn call(&mut self, nth: usize, status: CallStatus) -> Option<&mut ToolCall> {
        let count = self.open_calls(status);
        if self.phase != Phase::Calling || count == 0 {
            return None;
        }
        let round = self.turn().rounds.last_mut()?;
        let mut calls = round.blocks.iter_mut().filter_map(|block| match block {
            Block::Call(call) if call.status == status => Some(call),
            _ => None,
        });
        calls.nth(nth % count)
    }

    /// A person allows a call, for this time or for the whole session.
    pub(crate) fn approve(&mut self, nth: usize, for_all: bool) {
        let Some(call) = self.call(nth, CallStatus::AwaitingPermission) else { return };
        call.status = CallStatus::Running;
        let name = call.name.clone();
        if for_all {
            self.always.insert(name);
        }
        self.seen.insert("approved");
    }

    pub(crate) fn deny(&mut self, nth: usize, reason: Option<&str>) {
        let Some(call) = self.call(nth, CallStatus::AwaitingPermission) else { return };
        call.status = CallStatus::Denied;
        call.denial = reason.map(str::to_owned);
        self.seen.insert("denied");
        self.go_on();
    }

    /// A tool gives its result.
    pub(crate) fn result(&mut self, nth: usize, output: &Output) {
        let Some(call) = self.call(nth, CallStatus::Running) else {
            return self.late_result(nth, output);
        };
        (call.status, call.output) = output.row();
        let failed = call.status == CallStatus::Failed;
        self.failures = if failed { self.failures + 1 } else { 0 };
        if self.failures == FAILURES_MAX {
            self.seen.insert("six failures");
            return self.close(TurnStatus::Failed);
        }
        self.seen.insert("result");
        self.go_on();
    }

    /// A result for a call that is closed: kept, shown to people, and told to no model.
    fn late_result(&mut self, nth: usize, output: &Output) {
        let blocks = self.ledger.turns.iter_mut().flat_map(|turn| &mut turn.rounds).flat_map(|round| &mut round.blocks);
        let mut calls = blocks.filter_map(|block| match block {
            Block::Call(call) if call.status.is_terminal() => Some(call),
            _ => None,
        });
        if let Some(call) = calls.nth(nth) {
            call.late_output = output.row().1;
            self.seen.insert("late result");
        }
    }

    /// The tool host is gone for good.
    pub(crate) fn deadline(&mut self) {
        self.result(0, &Output::Error("The tool did not answer in time."));
    }

    /// The open turn ends, and its calls with it.
    pub(crate) fn close(&mut self, status: TurnStatus) {
        match self.phase {
            Phase::Idle => return,
            // Nothing was sent: the reservation goes, and its message is given back to who stopped it.
            Phase::Reserved if status == TurnStatus::Cancelled => {
                let text = self.turn().prompts[0].text.clone();
                self.withdrawn.push(text);
                self.ledger.turns.pop();
                self.seen.insert("stopped before it was sent");
                self.phase = Phase::Idle;
                return;
            }
            Phase::Reserved if status == TurnStatus::Interrupted => return self.roll_back(),
            // A failure before anything was sent: the turn is there, and failed.
            Phase::Reserved => self.publish(),
            Phase::Requesting | Phase::Streaming | Phase::Calling => {}
        }
        let partial = self.turn().rounds.iter().any(|round| !round.finished && round.says_something());
        if partial {
            self.seen.insert("partial reply");
        }
        for block in self.turn().rounds.iter_mut().flat_map(|round| &mut round.blocks) {
            if let Block::Call(call) = block {
                call.status = match call.status {
                    CallStatus::Running => CallStatus::Interrupted,
                    open if !open.is_terminal() => CallStatus::Abandoned,
                    closed => closed,
                };
            }
        }
        self.turn().status = status;
        self.seen.insert(status.as_str());
        self.phase = Phase::Idle;
    }

    /// A message that waits is taken back.
    pub(crate) fn withdraw(&mut self, nth: usize) {
        if !self.queue.is_empty() {
            let waiting = self.queue.remove(nth % self.queue.len()).expect("it is within the queue");
            self.withdrawn.push(waiting.text);
            self.seen.insert("withdrawn");
        }
    }

    /// A row of the history is deleted. What is open or unpublished is not deleted: that is refused elsewhere.
    pub(crate) fn delete(&mut self, nth: usize) {
        let mut rows: Vec<(&mut bool, Option<MessageId>)> = Vec::new();
        for turn in self.ledger.turns.iter_mut().filter(|turn| turn.is_told()) {
            rows.extend(turn.prompts.iter_mut().map(|prompt| (&mut prompt.deleted, Some(prompt.id))));
            for block in turn.rounds.iter_mut().flat_map(|round| &mut round.blocks) {
                match block {
                    Block::Thinking(thinking) => rows.push((&mut thinking.deleted, None)),
                    Block::Text(reply) => rows.push((&mut reply.deleted, None)),
                    Block::Call(call) if call.status.is_terminal() => rows.push((&mut call.deleted, None)),
                    Block::Call(_) => {}
                }
            }
        }
        let count = rows.len();
        if let Some((deleted, prompt)) = rows.into_iter().nth(if count == 0 { 0 } else { nth % count }) {
            *deleted = true;
            self.taken.retain(|(id, _)| Some(*id) != prompt);
            self.seen.insert("deleted");
            self.judge.forget();
        }
    }

    /// The process dies and comes back: memory is gone, the rows are there.
    pub(crate) fn crash(&mut self) {
        self.close(TurnStatus::Interrupted);
        self.judge.restart();
        self.seen.insert("crash");
    }
}

impl Output {
    fn row(&self) -> (CallStatus, Option<Value>) {
        match self {
            Self::Text(text) => (CallStatus::Succeeded, Some(json!(text))),
            Self::Json => (CallStatus::Succeeded, Some(json!({ "b": [1, "ü"], "a": null }))),
            Self::Nothing => (CallStatus::Succeeded, None),
            Self::Error(text) => (CallStatus::Failed, Some(json!(text))),
        }
    }
}

/// Thinking as a provider issues it.
pub(crate) fn thinking(wire: Wire, number: u128) -> Value {
    match wire {
        Wire::Anthropic if number.is_multiple_of(3) => {
            json!({ "type": "redacted_thinking", "data": format!("data{number}") })
        }
        Wire::Anthropic => {
            json!({ "type": "thinking", "thinking": format!("hm {number}"), "signature": format!("sig{number}") })
        }
        Wire::OpenAiChat => json!(format!("hm {number}")),
        Wire::OpenAiResponses => json!({
            "type": "reasoning", "id": format!("rs_{number}"), "summary": [], "encrypted_content": format!("enc{number}"),
        }),
    }
}
