//! What a benchmark reports.

use super::machine::Machine;
use crate::output::Output;
use serde::Serialize;
use std::io;
use std::time::Duration;

/// One measured number, and what was promised about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    /// What is promised; none where the number only explains others.
    bound: Option<Bound>,
    holds: Option<bool>,
}

/// A promise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bound {
    /// Not more than this.
    AtMost(f64),
    /// Not less than this.
    AtLeast(f64),
}

impl Figure {
    /// A number that explains others.
    pub(super) fn plain(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, bound: None, holds: None }
    }

    /// A number that something is promised about.
    pub(super) fn promised(name: impl Into<String>, value: f64, unit: &'static str, bound: Bound) -> Self {
        // What is no number keeps no promise.
        let holds = match bound {
            Bound::AtMost(most) => value <= most,
            Bound::AtLeast(least) => value >= least,
        };
        Self { bound: Some(bound), holds: Some(holds), ..Self::plain(name, value, unit) }
    }
}

/// All figures of one run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    /// The command that repeats it.
    command: String,
    machine: Machine,
    figures: Vec<Figure>,
    /// Whether every promise is kept.
    pub(super) holds: bool,
}

impl Report {
    pub(super) fn new(machine: Machine, figures: Vec<Figure>) -> Self {
        let holds = figures.iter().all(|figure| figure.holds != Some(false));
        let command = std::env::args().skip(1).fold("askback".to_owned(), |line, word| format!("{line} {word}"));
        Self { command, machine, figures, holds }
    }
}

/// The report for people.
pub(super) fn write(out: &mut Output, report: &Report) -> io::Result<()> {
    out.text(&format!("$ {}", report.command))?;
    for line in report.machine.lines() {
        out.text(&line)?;
    }
    out.text("")?;
    let rows = report.figures.iter().map(|figure| {
        let bound = match figure.bound {
            None => String::new(),
            Some(Bound::AtMost(most)) => format!("<= {}", shown(most)),
            Some(Bound::AtLeast(least)) => format!(">= {}", shown(least)),
        };
        let holds = figure.holds.map_or("", |holds| if holds { "yes" } else { "NO" });
        vec![figure.name.clone(), shown(figure.value), figure.unit.to_owned(), bound, holds.to_owned()]
    });
    out.table(&["FIGURE", "VALUE", "UNIT", "PROMISED", "KEPT"], rows.collect())
}

fn shown(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// Times that were measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    /// The time below which `share` of them lie, in milliseconds; not a number without any.
    pub(super) fn quantile_ms(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a place in a list of some thousands"
        )]
        let place = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
        sorted.get(place).map_or(f64::NAN, |time| time.as_secs_f64() * 1_000.0)
    }

    /// Half of them are shorter, in milliseconds.
    pub(super) fn p50(&self) -> f64 {
        self.quantile_ms(0.5)
    }

    /// One in a hundred is longer, in milliseconds.
    pub(super) fn p99(&self) -> f64 {
        self.quantile_ms(0.99)
    }

    pub(super) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub(super) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// How many a second.
pub(super) fn rate(count: usize, took: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / took.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let mut times = Times::default();
        assert!(times.p50().is_nan());
        for ms in 1..=100 {
            times.push(Duration::from_millis(ms));
        }
        assert_eq!((times.p50(), times.p99(), times.quantile_ms(1.0)), (50.0, 99.0, 100.0));
    }

    #[test]
    fn a_promise_about_nothing_is_not_kept() {
        assert_eq!(Figure::promised("x", f64::NAN, "ms", Bound::AtMost(1.0)).holds, Some(false));
        assert_eq!(Figure::promised("x", 2.0, "ms", Bound::AtLeast(2.0)).holds, Some(true));
    }
}
