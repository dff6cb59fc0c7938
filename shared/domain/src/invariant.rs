//! What must hold of every session, whatever happened to it: the promises of the product as checks over rows.
//!
//! [`state`] looks at all rows of a session, [`step`] at what one decision made of them, [`events`] at what it told, and
//! [`view`] at whether the rows a decision was shown tell the same story as all rows. Violations are values: who checks
//! decides what follows.

mod state;
mod step;
mod view;

use crate::session::event::{Event, EventType};
use crate::session::rows::Rows;
use serde_json::Value;
use std::fmt;
use strum::{Display, EnumIter};

pub use state::state;
pub use step::step;
pub use view::view;

macro_rules! invariants {
    ($($name:ident $id:literal { promise: $promise:literal, check: $check:literal $(,)? })+) => {
        /// A promise that is kept at every moment.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumIter)]
        pub enum Invariant {
            $(#[doc = concat!($id, ": ", $promise)] $name,)+
        }

        impl Invariant {
            /// Its number, which probes and reports name it by.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)+ }
            }

            /// What is promised.
            #[must_use]
            pub const fn promise(self) -> &'static str {
                match self { $(Self::$name => $promise,)+ }
            }

            /// What this module checks of it, or why rows cannot show it.
            #[must_use]
            pub const fn check(self) -> &'static str {
                match self { $(Self::$name => $check,)+ }
            }
        }
    };
}

invariants! {
    OneResponse "INV-1" {
        promise: "A bundle has at most one winning response, readable for ever.",
        check: "At most one intent of a bundle is open, confirmed or retired, and no later decision changes a response \
                that won.",
    }
    OneDelivery "INV-2" {
        promise: "A claim is released to a waiter, carried by a new prompt and replaced at most once each, the last \
                  only after its turn is closed.",
        check: "A live response has exactly one delivery and a resumed one exactly one turn; a replaced delivery has \
                exactly one replacement and a closed turn, and nothing else has one.",
    }
    NoStuckClaim "INV-3" {
        promise: "No claim is stuck: past its deadline, or without a live claimant, it is restored or made final.",
        check: "An open intent has a deadline, its session lives, its turn is the accepted one, and no row of its \
                bundle is pending beside it.",
    }
    CurrentOnly "INV-4" {
        promise: "A bundle of a turn that is not current is never written by a response.",
        check: "When an intent is made its bundle was answerable.",
    }
    WatchdogFirst "INV-5" {
        promise: "The watchdog is armed before the agent can see the answer.",
        check: "Nothing: it is an order of steps in the orchestrator, which rows do not show.",
    }
    OneTurn "INV-6" {
        promise: "At most one conversational turn is open and one reserved; generations strictly rise; authority never \
                  moves backward.",
        check: "The turns of a session in the order of their generations, and the current and the accepted turn \
                before and after each decision.",
    }
    OwnGeneration "INV-7" {
        promise: "What is said under one generation changes no turn of another, and a frame sent twice is stored once.",
        check: "A turn that was closed gets no message and no message of it gets other words; the frame number of an \
                execution never falls, and stands still once the execution has ended.",
    }
    QueueOrder "INV-8" {
        promise: "A queued message ends as taken by exactly one turn or as withdrawn, and history keeps the order in \
                  which messages were taken.",
        check: "Queue and turns point at each other, and prompts stand in history in the order of their turns.",
    }
    CallsClosed "INV-9" {
        promise: "Every tool call of a closed turn is closed, and every transcript is valid for its provider.",
        check: "Nothing: sessions have no rows of tool calls.",
    }
    GapFree "INV-10" {
        promise: "Events of a session are numbered without a gap; so are the positions of all events.",
        check: "The events of each decision go on from the last number. Positions are the sequencer's and are probed \
                in the database.",
    }
    Revision "INV-11" {
        promise: "Equal revisions of the pending action mean equal pending actions.",
        check: "The revision rises by one exactly when a decision changes what is pending or answerable.",
    }
    Fenced "INV-12" {
        promise: "The work of a live owner within its deadline is never reconciled by another, and nothing that a \
                  fenced owner writes lands.",
        check: "The in-memory world refuses commands of fenced owners as the store does; tests give them such commands.",
    }
    Tenancy "INV-13" {
        promise: "Nobody reads or writes anything of a workspace they do not belong to.",
        check: "Nothing: it is a matter of queries, which rows of one session do not show.",
    }
    Final "INV-14" {
        promise: "An accepted command has exactly one recorded outcome; what has ended never opens again.",
        check: "Turns, intents, deliveries, queued messages, executions, sessions and bundles that had ended before a \
                decision stand after it as they stood.",
    }
    Total "TABLE" {
        promise: "Every state makes of every input what the transition table says, and what cannot happen does not.",
        check: "No decision takes a row of the table that it says is never taken.",
    }
    Columns "ROW-1" {
        promise: "Columns of a row that say the same thing agree.",
        check: "Ends have their moments and moments their ends; waiters, evidence, supersession and positions fit the \
                rows they are derived from.",
    }
    Due "ROW-2" {
        promise: "An orchestrator looks at a session no later than something becomes due.",
        check: "`work_due_at` is not later than the next dispatch, end of a grace or end of a wait, and is set while \
                an agent may have fallen silent.",
    }
    Guarded "ROW-3" {
        promise: "A decision is written over exactly the rows it saw.",
        check: "Every compare-and-set of a decision finds its guard.",
    }
    Sufficient "ROW-4" {
        promise: "What a decision is shown is enough to decide.",
        check: "State, authority, answerable bundles, admission and the states of all loaded bundles read the same \
                from the loaded rows as from all rows.",
    }
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// Of what, and how.
    pub detail: String,
}

impl Violation {
    /// A violation of `invariant`.
    #[must_use]
    pub const fn new(invariant: Invariant, detail: String) -> Self {
        Self { invariant, detail }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.invariant.id(), self.detail, self.invariant.promise())
    }
}

/// Violations found so far.
#[derive(Default)]
struct Found(Vec<Violation>);

impl Found {
    /// Records a violation unless `holds`.
    fn expect(&mut self, invariant: Invariant, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Violation::new(invariant, detail()));
        }
    }
}

/// Checks the events of one decision: `last` was the session's last number before it, `after` are its rows now.
#[must_use]
pub fn events(last: i64, after: &Rows, events: &[Event]) -> Vec<Violation> {
    let mut found = Found::default();
    let numbers: Vec<i64> = events.iter().filter_map(|event| event.session_seq).collect();
    let wanted: Vec<i64> = (last + 1..=after.session.event_seq).collect();
    found.expect(Invariant::GapFree, numbers == wanted, || format!("events {numbers:?} where {wanted:?} were due"));
    let stamped = events.iter().all(|event| event.stamp == after.session.stamp);
    found.expect(Invariant::GapFree, stamped, || "an event without the stamp of its decision".to_owned());
    let of = |event: &Event, kind, pointer| {
        (event.kind == kind).then(|| event.data.pointer(pointer)).flatten().and_then(Value::as_str).map(str::to_owned)
    };
    for (at, event) in events.iter().enumerate() {
        let Some(closed) = of(event, EventType::TurnCompleted, "/turn/id") else { continue };
        let late = events[at..]
            .iter()
            .any(|event| of(event, EventType::MessageAdded, "/message/turn_id").as_ref() == Some(&closed));
        found.expect(Invariant::OwnGeneration, !late, || format!("a message was added to {closed} behind its end"));
    }
    found.0
}
