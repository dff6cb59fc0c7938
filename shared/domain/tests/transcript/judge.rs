//! Holds every body against the oracle, and the incremental builder against a new one.

use crate::world::World;
use domain::transcript::validate::{appended, history_refusal, refusal, said, thinking_unchanged};
use domain::transcript::{Builder, Wire, build};
use serde_json::Value;
use strum::IntoEnumIterator as _;

/// What is known of the bodies before.
#[derive(Default)]
pub(crate) struct Judge {
    builders: Vec<Builder>,
    earlier: Vec<Told>,
    /// Requests that were judged.
    pub(crate) requests: usize,
}

/// A body that was judged, and how many messages had been taken and withdrawn then.
struct Told {
    wire: Wire,
    body: String,
    known: (usize, usize),
}

impl Judge {
    /// Something was deleted: bodies begin anew.
    pub(crate) fn forget(&mut self) {
        self.builders.clear();
        self.earlier.clear();
    }

    /// Memory is gone. The bytes must be the same all the same.
    pub(crate) fn restart(&mut self) {
        self.builders.clear();
    }
}

impl World {
    /// Judges the body of a request that is about to leave.
    pub(crate) fn judge_request(&mut self) {
        self.judge.requests += 1;
        for wire in Wire::iter() {
            let body = self.body(wire);
            let parsed: Value = serde_json::from_str(&body).expect("a body is JSON");
            assert_eq!(refusal(wire, &parsed), None, "{wire} {body}");
        }
    }

    /// Judges what the model would be told now.
    pub(crate) fn judge_step(&mut self) {
        self.body(self.wire);
    }

    /// Judges what any model would be told now.
    pub(crate) fn judge_history(&mut self) {
        for wire in Wire::iter() {
            self.body(wire);
        }
    }

    fn body(&mut self, wire: Wire) -> String {
        let read = self.incremental(wire);
        let known = (self.taken.len(), self.withdrawn.len());
        let place = self.judge.earlier.iter().position(|told| told.wire == wire);
        if place.is_some_and(|place| self.judge.earlier[place].body == read && self.judge.earlier[place].known == known)
        {
            return read;
        }
        let full = build(wire, &self.ledger).expect("the rows are sound");
        assert_eq!(read, full, "{wire}: what is read step by step is told as if read at once");
        self.judge_body(wire, &full);
        match place.map(|place| &mut self.judge.earlier[place]) {
            Some(earlier) => {
                assert_eq!(appended(&earlier.body, &full), None, "{wire}\n{}\n{full}", earlier.body);
                earlier.body.clone_from(&full);
                earlier.known = known;
            }
            None => self.judge.earlier.push(Told { wire, body: full.clone(), known }),
        }
        full
    }

    fn judge_body(&self, wire: Wire, text: &str) {
        let body: Value = serde_json::from_str(text).expect("a body is JSON");
        assert_eq!(history_refusal(wire, &body), None, "{wire} {text}");
        let accepted: Vec<&str> = self.taken.iter().map(|(_, text)| text.as_str()).collect();
        let withdrawn: Vec<&str> = self.withdrawn.iter().map(String::as_str).collect();
        assert_eq!(said(wire, &body, &accepted, &withdrawn), None, "{wire} {text}");
        let issued = if wire == self.wire { self.issued.as_slice() } else { &[] };
        assert_eq!(thinking_unchanged(wire, &body, issued), None, "{wire} {text}");
    }

    fn incremental(&mut self, wire: Wire) -> String {
        if self.judge.builders.is_empty() {
            self.judge.builders = Wire::iter().map(Builder::new).collect();
        }
        let place = Wire::iter().position(|of| of == wire).expect("every wire has a builder");
        let builder = &mut self.judge.builders[place];
        let sealed = builder.sealed().unwrap_or(i64::MIN);
        let new = self.ledger.turns.partition_point(|turn| turn.generation <= sealed);
        builder.extend(&self.ledger.turns[new..]).expect("the rows are sound");
        builder.body()
    }
}
