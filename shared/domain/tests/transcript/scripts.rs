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

/// A number that choices are read from. Strategies for each choice take longer than what is tested.
struct Dice(u32);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        let sides = u32::try_from(sides).expect("few sides");
        let side = self.0 % sides;
        self.0 /= sides;
        usize::try_from(side).expect("few sides")
    }

    fn pick<T: Clone>(&mut self, among: &[T]) -> T {
        among[self.roll(among.len())].clone()
    }

    fn chunk(&mut self) -> Chunk {
        match self.roll(12) {
            0 => Chunk::Thinking,
            1 => Chunk::ThinkingEnd,
            2 => Chunk::CallBegins,
            3..7 => Chunk::Thought,
            _ => Chunk::Text(self.pick(&REPLIES)),
        }
    }

    fn output(&mut self) -> Output {
        match self.roll(8) {
            0 => Output::Text(" "),
            1 => Output::Json,
            2 => Output::Nothing,
            3 | 4 => Output::Error("broken"),
            5 => Output::Error(""),
            _ => Output::Text("42"),
        }
    }

    fn calls(&mut self) -> Vec<(usize, CallPolicy)> {
        use CallPolicy::{Always, Ask, Never};
        let count = self.roll(4);
        (0..count).map(|_| (self.roll(TOOLS.len()), self.pick(&[Ask, Ask, Always, Always, Always, Never]))).collect()
    }

    fn op(&mut self) -> Op {
        match self.roll(90) {
            0..40 => Op::Go(self.calls()),
            40..46 => Op::Send(self.roll(TEXTS.len()), self.roll(5) > 0),
            46..49 => Op::Dispatch,
            49 => Op::Request,
            50..66 => Op::Chunk(self.chunk()),
            66..69 => Op::Done(self.calls()),
            69..72 => Op::Approve(self.roll(3), self.roll(10) == 0),
            72..74 => Op::Deny(self.roll(3), self.roll(2) == 0),
            74..78 => Op::Result(self.roll(3), self.output()),
            78..80 => Op::Stop,
            80 => Op::ProviderError,
            81 => Op::Deadline,
            82 => Op::ExecutionLost,
            83 => Op::Crash,
            84 => Op::RollBack,
            85 => Op::NotAccepted,
            86 => Op::Withdraw(self.roll(3)),
            87 | 88 => Op::Delete(self.roll(20)),
            _ => Op::Fumble,
        }
    }
}

fn script(ops_max: usize) -> impl Strategy<Value = Vec<Op>> {
    let numbers = prop::collection::vec(any::<u32>(), 1..ops_max);
    numbers.prop_map(|numbers| numbers.into_iter().map(|number| Dice(number).op()).collect())
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

/// Long enough for a few turns.
const OPS_MAX: usize = 26;

/// Section 3: the rules hold for every request body any provider is ever sent. 21,000 scripts in all.
macro_rules! properties {
    ($($name:ident: $wire:expr;)+) => {
        proptest! {
            #![proptest_config(ProptestConfig {
                cases: 3_500, failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default()
            })]
            $(
                #[test]
                fn $name(script in script(OPS_MAX)) {
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
    let script = script(60);
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
