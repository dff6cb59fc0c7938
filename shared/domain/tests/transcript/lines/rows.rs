//! The check of the rows.

use super::{ask, asked};
use crate::world::{Chunk, Output, World};
use domain::object::CallPolicy::Always;
use domain::object::{CallStatus, TurnStatus};
use domain::transcript::validate::appended;
use domain::transcript::{Block, Builder, Damaged, Fault, Row, ToolCall, Wire, anthropic};

// "the transcript builder itself contains no repair, only a check that fails loudly with the row"
#[test]
fn a_damaged_row_is_named() {
    let sound = || {
        let mut world = asked(Wire::Anthropic, "go");
        world.done(&[("read", Always), ("write", Always)]);
        world.result(0, &Output::Json);
        world.result(0, &Output::Json);
        world.request();
        world.chunk(&Chunk::Text("Done"));
        world.done(&[]);
        ask(&mut world, "on");
        world.chunk(&Chunk::Text("I beg"));
        world.close(TurnStatus::Cancelled);
        world
    };
    let fault = |damage: fn(&mut World)| {
        let mut world = sound();
        anthropic(&world.ledger).expect("it is sound before");
        damage(&mut world);
        anthropic(&world.ledger).expect_err("the damage is found")
    };
    let faults = [
        fault(|world| world.ledger.turns[1].generation = 1),
        fault(|world| world.ledger.turns[0].status = TurnStatus::Running),
        fault(|world| world.ledger.turns[0].prompts[0].text = "\n".to_owned()),
        fault(|world| world.ledger.turns[1].prompts[0].id = world.ledger.turns[0].prompts[0].id),
        fault(|world| set(world, 0, |call| call.status = CallStatus::Running)),
        fault(|world| set(world, 1, |call| call.index = 0)),
        fault(|world| set(world, 1, |call| call.name = " ".to_owned())),
        fault(|world| world.ledger.turns[0].rounds[1].round = 0),
        fault(|world| world.ledger.turns[0].rounds[0].finished = false),
        fault(|world| world.ledger.turns[1].status = TurnStatus::Completed),
    ];
    let found: Vec<Fault> = faults.iter().map(|damaged| damaged.fault).collect();
    assert_eq!(
        found,
        [
            Fault::OutOfOrder,
            Fault::OpenAndFollowed,
            Fault::Blank,
            Fault::Twice,
            Fault::OpenCall,
            Fault::CallOrder,
            Fault::Nameless,
            Fault::RoundOrder,
            Fault::UnfinishedFollowed,
            Fault::UnfinishedCompleted,
        ]
    );
    let Damaged { turn, row, .. } = faults[4];
    let world = sound();
    let id = world.ledger.turns[0].rounds[0].calls().next().map(|call| call.id).expect("it has two calls");
    assert_eq!((turn, row), (world.ledger.turns[0].id, Row::Call(id)));
    let words = faults[4].to_string();
    assert_eq!(words, format!("tool call {id} of turn {turn}: it is open, and its turn is closed"));
}

fn set(world: &mut World, nth: usize, change: fn(&mut ToolCall)) {
    if let Block::Call(call) = &mut world.ledger.turns[0].rounds[0].blocks[nth] {
        change(call);
    }
}

// The builder that has met damage stands where it stood, and goes on when the row is mended.
#[test]
fn a_builder_goes_on_after_damage() {
    let mut world = asked(Wire::Anthropic, "go");
    world.done(&[]);
    ask(&mut world, "on");
    let mut builder = Builder::new(Wire::Anthropic);
    let mut damaged = world.ledger.turns.clone();
    damaged[1].prompts[0].text.clear();
    builder.extend(&damaged).expect_err("a blank prompt");
    assert_eq!(
        (builder.sealed(), builder.body()),
        (Some(1), r#"[{"role":"user","content":[{"type":"text","text":"go"}]}]"#.to_owned())
    );
    builder.extend(&world.ledger.turns[1..]).expect("it is sound");
    assert_eq!(Ok(builder.body()), anthropic(&world.ledger));
}

// An agent that talks while its tools run is told up to the first call that is open.
#[test]
fn what_follows_an_open_call_waits_for_it() {
    let mut world = asked(Wire::Anthropic, "go");
    world.done(&[("read", Always), ("write", Always)]);
    world.result(0, &Output::Json);
    world.result(0, &Output::Json);
    world.request();
    world.chunk(&Chunk::Text("Done"));
    world.done(&[]);
    let whole = anthropic(&world.ledger).expect("the rows are sound");
    world.ledger.turns[0].status = TurnStatus::Running;
    set(&mut world, 1, |call| call.status = CallStatus::Running);
    let waits = anthropic(&world.ledger).expect("an open call is no damage in an open turn");
    assert_eq!(waits, r#"[{"role":"user","content":[{"type":"text","text":"go"}]}]"#);
    assert_eq!(appended(&waits, &whole), None);
}
