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
const RUNS: usize = 5;

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

/// The shortest of several runs: what the work takes when nothing else runs.
fn shortest(mut work: impl FnMut()) -> Duration {
    let run = |_| {
        let begin = Instant::now();
        work();
        begin.elapsed()
    };
    (0..RUNS).map(run).min().unwrap_or_default()
}

#[test]
fn four_times_the_session_takes_no_more_than_some_four_times_as_long() {
    let (short, long) = (session(500), session(2_000));
    for wire in Wire::iter() {
        let short = shortest(|| assert!(build(wire, &short).is_ok()));
        let long = shortest(|| assert!(build(wire, &long).is_ok()));
        let ratio = long.as_secs_f64() / short.as_secs_f64();
        assert!(ratio < 8.0, "{wire}: {long:?} is {ratio:.1} times {short:?}; a square would be 16");
    }
}

/// The next request of a long session reads what is new.
#[test]
fn the_next_request_of_a_long_session_is_cheap() {
    let session = session(2_001);
    let (last, before) = session.turns.split_last().expect("there are turns");
    for wire in Wire::iter() {
        let mut read = Builder::new(wire);
        read.extend(before).expect("the rows are sound");
        let whole_time = shortest(|| assert!(build(wire, &session).is_ok()));
        let mut readers = vec![read.clone(); RUNS].into_iter();
        let new_time = shortest(|| {
            let reader = readers.next().as_mut().map(|reader| reader.extend(std::slice::from_ref(last)));
            assert_eq!(reader, Some(Ok(())), "there is one for each run");
        });
        read.extend(std::slice::from_ref(last)).expect("the rows are sound");
        assert_eq!(Ok(read.body()), build(wire, &session));
        assert!(new_time * 20 < whole_time, "{wire}: {new_time:?} for one turn of {whole_time:?}");
    }
}

#[test]
#[ignore = "a measurement; it says something in release only: cargo test --release --test transcript -- --ignored"]
fn two_thousand_turns_with_ten_thousand_calls_take_no_more_than_50_ms() {
    let session = session(2_000);
    assert_eq!(session.turns.len() * usize::try_from(CALLS_PER_TURN).unwrap_or_default(), 10_000);
    for wire in Wire::iter() {
        let body = build(wire, &session).expect("the rows are sound");
        let took = shortest(|| assert!(build(wire, &session).is_ok()));
        println!("{wire}: {took:?} for {} bytes", body.len());
        assert!(took <= Duration::from_millis(50), "{wire}: {took:?}");
    }
}
