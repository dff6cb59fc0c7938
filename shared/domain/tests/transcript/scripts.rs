//! Random scripts of everything that can happen, in every order, on every wire.

use crate::world::{Chunk, Output, Phase, World};
use domain::object::{CallPolicy, TurnStatus};
use domain::transcript::Wire;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;

/// Texts that are equal to each other, to a fixed line, to what joins two texts, or hard to write down.
const TEXTS: [&str; 8] = [
    "do it",
    "do it",
    "do it\n\nagain",
    "[The previous reply was interrupted.]",
    "  spaces  ",
    "quote \" backslash \\ \u{1f980} ]}\"}",
    "again",
    "\u{0}\u{7f}\n",
];
const REPLIES: [&str; 5] = ["Hello", "Hello ", " \n", "", "]}"];
const TOOLS: [&str; 3] = ["read", "write", "shell"];

/// Something that happens. Small numbers choose among what there is.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Send(usize, bool),
    Dispatch,
    Request,
    Chunk(Chunk),
    Done(Vec<(usize, CallPolicy)>),
    Approve(usize, bool),
    Deny(usize, bool),
    Result(usize, Output),
    Stop,
    ProviderError,
    Deadline,
    ExecutionLost,
    Crash,
    RollBack,
    NotAccepted,
    Withdraw(usize),
    Delete(usize),
    /// Whatever is the ordinary next step; with these calls if the model speaks.
    Go(Vec<(usize, CallPolicy)>),
    /// A model that tries the same failing tool again and again.
    Fumble,
}

fn chunk() -> impl Strategy<Value = Chunk> {
    prop_oneof![
        2 => Just(Chunk::Thinking),
        2 => Just(Chunk::ThinkingEnd),
        3 => (0..REPLIES.len()).prop_map(|text| Chunk::Text(REPLIES[text])),
        1 => Just(Chunk::CallBegins),
    ]
}

fn output() -> impl Strategy<Value = Output> {
    prop_oneof![
        2 => Just(Output::Text("42")),
        1 => Just(Output::Text(" ")),
        1 => Just(Output::Json),
        1 => Just(Output::Nothing),
        2 => Just(Output::Error("broken")),
        1 => Just(Output::Error("")),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let policy = prop_oneof![
        3 => Just(CallPolicy::Ask),
        4 => Just(CallPolicy::Always),
        1 => Just(CallPolicy::Never),
    ];
    let calls = || prop::collection::vec((0..TOOLS.len(), policy.clone()), 0..4);
    prop_oneof![
        40 => calls().prop_map(Op::Go),
        6 => (0..TEXTS.len(), prop::bool::weighted(0.8)).prop_map(|(text, person)| Op::Send(text, person)),
        3 => Just(Op::Dispatch),
        3 => Just(Op::Request),
        14 => chunk().prop_map(Op::Chunk),
        4 => calls().prop_map(Op::Done),
        4 => (0..3_usize, prop::bool::weighted(0.1)).prop_map(|(nth, all)| Op::Approve(nth, all)),
        2 => (0..3_usize, any::<bool>()).prop_map(|(nth, reason)| Op::Deny(nth, reason)),
        6 => (0..3_usize, output()).prop_map(|(nth, output)| Op::Result(nth, output)),
        3 => Just(Op::Stop),
        1 => Just(Op::ProviderError),
        1 => Just(Op::Deadline),
        1 => Just(Op::ExecutionLost),
        1 => Just(Op::Crash),
        1 => Just(Op::RollBack),
        1 => Just(Op::NotAccepted),
        1 => (0..3_usize).prop_map(Op::Withdraw),
        2 => (0..20_usize).prop_map(Op::Delete),
        1 => Just(Op::Fumble),
    ]
}

impl World {
    fn take(&mut self, op: &Op) {
        match op {
            Op::Send(text, by_person) => self.send(TEXTS[*text], *by_person),
            Op::Dispatch => self.dispatch(),
            Op::Request => self.request(),
            Op::Chunk(chunk) => self.chunk(chunk),
            Op::Done(calls) => self.speak(calls),
            Op::Approve(nth, for_all) => self.approve(*nth, *for_all),
            Op::Deny(nth, reason) => self.deny(*nth, reason.then_some("not \"now\"")),
            Op::Result(nth, output) => self.result(*nth, output),
            Op::Stop => self.close(TurnStatus::Cancelled),
            Op::ProviderError => self.close(TurnStatus::Failed),
            Op::Deadline => self.deadline(),
            Op::ExecutionLost => self.close(TurnStatus::Interrupted),
            Op::Crash => self.crash(),
            Op::RollBack => self.roll_back(),
            Op::NotAccepted => self.settle_not_accepted(),
            Op::Withdraw(nth) => self.withdraw(*nth),
            Op::Delete(nth) => self.delete(*nth),
            Op::Go(calls) => self.go(calls),
            Op::Fumble => self.fumble(),
        }
    }
}

/// As often as a turn may fail.
const FUMBLES: usize = 6;

impl World {
    fn go(&mut self, calls: &[(usize, CallPolicy)]) {
        match self.phase {
            Phase::Idle if self.is_quiet() => self.send(TEXTS[calls.len()], true),
            Phase::Idle => self.dispatch(),
            Phase::Reserved | Phase::Requesting => self.request(),
            Phase::Streaming => self.speak(calls),
            Phase::Calling => {
                self.approve(0, false);
                self.result(0, &Output::Text("42"));
            }
        }
    }

    fn speak(&mut self, calls: &[(usize, CallPolicy)]) {
        let calls: Vec<_> = calls.iter().map(|(tool, policy)| (TOOLS[*tool], *policy)).collect();
        self.done(&calls);
    }

    fn fumble(&mut self) {
        for _ in 0..FUMBLES {
            self.request();
            self.done(&[("shell", CallPolicy::Always)]);
            self.deadline();
        }
    }
}

/// Plays a script, judges every request and every history on the way, and gives the world at its end.
pub(crate) fn play(wire: Wire, script: &[Op]) -> World {
    let mut world = World::new(wire);
    for op in script {
        world.take(op);
        world.judge_step();
    }
    world.judge_history();
    world
}

fn script() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..24)
}

/// Section 3: the rules hold for every request body any provider is ever sent. 21,000 scripts in all.
macro_rules! properties {
    ($($name:ident: $wire:expr;)+) => {
        proptest! {
            #![proptest_config(ProptestConfig {
                cases: 3_500, failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default()
            })]
            $(
                #[test]
                fn $name(script in script()) {
                    play($wire, &script);
                }
            )+
        }
    };
}

properties! {
    anthropic_takes_whatever_happens_one: Wire::Anthropic;
    anthropic_takes_whatever_happens_two: Wire::Anthropic;
    openai_chat_takes_whatever_happens_one: Wire::OpenAiChat;
    openai_chat_takes_whatever_happens_two: Wire::OpenAiChat;
    openai_responses_takes_whatever_happens_one: Wire::OpenAiResponses;
    openai_responses_takes_whatever_happens_two: Wire::OpenAiResponses;
}

/// Worlds that scripts of a fixed seed lead to.
pub(crate) fn worlds(wire: Wire, count: usize) -> impl Iterator<Item = World> {
    let mut runner = TestRunner::deterministic();
    let script = prop::collection::vec(op(), 1..60);
    (0..count).map(move |_| {
        let ops = script.new_tree(&mut runner).expect("a script can always be made").current();
        play(wire, &ops)
    })
}

/// Scripts that never come to something prove nothing about it.
#[test]
fn scripts_come_to_everything() {
    let mut seen = BTreeSet::new();
    let mut requests = 0;
    for world in worlds(Wire::Anthropic, 800) {
        seen.extend(world.seen);
        requests += world.judge.requests;
    }
    let wanted = [
        "approved",
        "batch",
        "call",
        "cancelled",
        "completed",
        "crash",
        "deleted",
        "denied",
        "failed",
        "interrupted",
        "late result",
        "left out",
        "message at a permission",
        "partial reply",
        "result",
        "rolled back",
        "sent",
        "six failures",
        "stopped before it was sent",
        "stray chunk",
        "system message",
        "unfinished call",
        "withdrawn",
    ];
    let missing: Vec<_> = wanted.iter().filter(|name| !seen.contains(*name)).collect();
    assert!(missing.is_empty(), "never: {missing:?}");
    assert!(requests > 3_000, "{requests} requests were judged");
}
