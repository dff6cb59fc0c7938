//! How long it takes: linear in what is told, and not at all in what was told before.

use domain::ids::{CallId, MessageId, TurnId};
use domain::object::{CallPolicy, CallStatus, TurnStatus};
use domain::transcript::{Block, Builder, Ledger, Prompt, Reply, Round, ToolCall, Turn, Wire, build};
use serde_json::json;
use std::time::{Duration, Instant};
use strum::IntoEnumIterator as _;
use uuid::Uuid;

const CALLS_PER_TURN: i32 = 5;
/// How often a thing is measured.
const RUNS_MIN: usize = 3;
const RUNS_MAX: usize = 30;

/// A session of closed turns, each with a batch of calls and a closing reply.
fn session(turns: i64) -> Ledger {
    let mut rows = 0;
    let mut id = || {
        rows += 1;
        Uuid::from_u128(rows)
    };
    let turns = (1..=turns).map(|generation| {
        let calls = (0..CALLS_PER_TURN).map(|index| {
            Block::Call(ToolCall {
                id: CallId(id()),
                provider_call_id: format!("toolu_{generation}_{index}"),
                index,
                name: "read_file".to_owned(),
                input: json!({ "path": format!("src/module_{index}.rs"), "lines": [1, 80] }),
                policy: CallPolicy::Always,
                status: CallStatus::Succeeded,
                output: Some(json!("fn main() { println!(\"hello\"); }\n".repeat(4))),
                denial: None,
                late_output: None,
                deleted: false,
            })
        });
        let first = Round { round: 0, finished: true, blocks: calls.collect() };
        let text = "It prints a greeting, and nothing else.".to_owned();
        let reply = Block::Text(Reply { id: MessageId(id()), text, deleted: false });
        let last = Round { round: 1, finished: true, blocks: vec![reply] };
        let prompt = Prompt { id: MessageId(id()), text: format!("What does file {generation} do?"), deleted: false };
        Turn {
            id: TurnId(id()),
            generation,
            status: TurnStatus::Completed,
            left_out: false,
            prompts: vec![prompt],
            rounds: vec![first, last],
        }
    });
    Ledger { turns: turns.collect() }
}

fn timed(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

/// How many times as long `long` takes as `short`. Each is measured until the shortest run of one is less than `limit`
/// times that of the other, or often enough to know that it never is: a busy machine lengthens runs, none shortens them.
fn times_as_long(limit: f64, mut short: impl FnMut(), mut long: impl FnMut()) -> f64 {
    let (mut shortest, mut longest) = (Duration::MAX, Duration::MAX);
    let mut ratio = f64::INFINITY;
    for run in 1..=RUNS_MAX {
        shortest = shortest.min(timed(&mut short));
        longest = longest.min(timed(&mut long));
        ratio = longest.as_secs_f64() / shortest.as_secs_f64();
        if run >= RUNS_MIN && ratio < limit {
            break;
        }
    }
    ratio
}

#[test]
fn eight_times_the_session_takes_some_eight_times_as_long() {
    let (short, long) = (session(250), session(2_000));
    for wire in Wire::iter() {
        let build = |ledger| assert!(build(wire, ledger).is_ok());
        let ratio = times_as_long(24.0, || build(&short), || build(&long));
        assert!(ratio < 24.0, "{wire}: {ratio:.1} times; linear is 8, a square would be 64");
    }
}

/// The next request of a long session reads what is new.
#[test]
fn the_next_request_of_a_long_session_is_cheap() {
    let session = session(2_001);
    let (last, before) = session.turns.split_last().expect("there are turns");
    for wire in Wire::iter() {
        let mut reader = Builder::new(wire);
        reader.extend(before).expect("the rows are sound");
        // Open, so that it is read anew each time.
        let mut open = last.clone();
        open.status = TurnStatus::Running;
        let whole = timed(|| assert!(build(wire, &session).is_ok()));
        let new = (0..RUNS_MAX).map(|_| timed(|| assert_eq!(reader.extend(std::slice::from_ref(&open)), Ok(())))).min();
        assert!(new.is_some_and(|new| new * 20 < whole), "{wire}: {new:?} for one turn of {whole:?}");
        reader.extend(std::slice::from_ref(last)).expect("the rows are sound");
        assert_eq!(Ok(reader.body()), build(wire, &session));
    }
}

#[test]
#[ignore = "a measurement; it says something in release only: cargo test --release --test transcript -- --ignored"]
fn two_thousand_turns_with_ten_thousand_calls_take_no_more_than_50_ms() {
    let session = session(2_000);
    assert_eq!(session.turns.len() * usize::try_from(CALLS_PER_TURN).unwrap_or_default(), 10_000);
    for wire in Wire::iter() {
        let body = build(wire, &session).expect("the rows are sound");
        let runs = (0..RUNS_MIN).map(|_| timed(|| assert!(build(wire, &session).is_ok())));
        let took = runs.min().unwrap_or_default();
        println!("{wire}: {took:?} for {} bytes", body.len());
        assert!(took <= Duration::from_millis(50), "{wire}: {took:?}");
    }
}
