//! Pages that are written from the code: the state machines, the invariants, the crash points and the errors.

use crate::generated::File;
use anyhow::Result;
use domain::invariant::Invariant;
use domain::session::transitions::{Machine, Row, TABLE, Then};
use faults::CrashPoint;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use strum::IntoEnumIterator as _;

/// The pages.
pub(crate) fn pages() -> Result<Vec<File>> {
    Ok(vec![
        ("docs/state-machine.md", state_machine()?),
        ("docs/invariants.md", invariants()?),
        ("docs/crash-points.md", crash_points()?),
        ("docs/errors.md", wire::problem::render()),
    ])
}

const GENERATED: &str = "<!-- Generated from the code: `cargo xtask docs` -->";

fn state_machine() -> Result<String> {
    let mut page = format!(
        "# State machines\n\n{GENERATED}\n\n\
         What each state makes of each input. The decisions in `shared/domain` read this very table \
         (`session::transitions`), and a test gives every input in every state.\n\n\
         * **→ state**: a transition. Where several states stand, the rows decide which.\n\
         * **refused**: the command changes nothing and is answered with this code.\n\
         * **ignored**: it came too late or twice; nothing happens, and nothing needs to.\n\
         * **never**: no decision gives this input in this state; the tests fail if one does.\n"
    );
    for machine in Machine::iter() {
        let rows: Vec<&Row> = TABLE.iter().filter(|row| row.machine == machine).collect();
        write!(page, "\n## {}\n\n{}\n", title(machine), about(machine))?;
        page.push_str(&diagram(&rows)?);
        page.push_str("\n| state | input | what follows | why |\n| --- | --- | --- | --- |\n");
        for row in rows {
            let follows = match row.then {
                Then::Go(states) => format!("→ `{}`", states.join("` or `")),
                Then::Refuse(code) => format!("refused: `{code}`"),
                Then::Ignore => "ignored".to_owned(),
                Then::Never => "never".to_owned(),
            };
            writeln!(page, "| `{}` | `{}` | {follows} | {} |", row.from, row.on, row.why)?;
        }
    }
    Ok(page)
}

const fn title(machine: Machine) -> &'static str {
    match machine {
        Machine::Bundle => "Bundle",
        Machine::Intent => "Delivery intent",
        Machine::Delivery => "Delivery",
        Machine::Turn => "Turn",
    }
}

const fn about(machine: Machine) -> &'static str {
    match machine {
        Machine::Bundle => {
            "Questions asked together. The state is derived from rows and never stored; `delivery_claimed` is the only \
             one that can go back."
        }
        Machine::Intent => "A response's claim on a bundle, from the moment a person responds until it counts or not.",
        Machine::Delivery => {
            "A confirmed live answer, open until the agent shows that it has it or its turn is closed under it."
        }
        Machine::Turn => {
            "A prompt and all that follows. For an agent that fetches its prompts or lives here, a turn is reserved, \
             marked and published in one decision. A prompt that leaves the house is durable first (`reserved`), marked \
             immediately before the call (`attempted`), and ordinary once it is accepted (`running`); what nobody can \
             tell stays visible as `ambiguous` until somebody can. `removed` means that no row is left; `closed` stands \
             for every way a turn has ended."
        }
    }
}

/// The transitions between different states as a diagram. States that no transition leaves are ends.
fn diagram(rows: &[&Row]) -> Result<String> {
    let mut arrows: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for row in rows {
        let Then::Go(states) = row.then else { continue };
        for state in states.iter().filter(|state| **state != row.from) {
            arrows.entry((row.from, state)).or_default().push(row.on);
        }
    }
    let mut text = "\n```mermaid\nstateDiagram-v2\n".to_owned();
    for ((from, to), inputs) in arrows {
        writeln!(text, "    {from} --> {to}: {}", inputs.join(", "))?;
    }
    text.push_str("```\n");
    Ok(text)
}

fn invariants() -> Result<String> {
    let mut page = format!(
        "# Invariants\n\n{GENERATED}\n\n\
         What holds at every moment, whatever crashed or came twice. `domain::invariant` checks it over the rows of a \
         session: after every step of random histories and of the model that is walked whole. The store probes a \
         database for the same. They hold for commits that survive: with an asynchronous standby a \
         failover can lose an acknowledged answer.\n\n\
         | number | promise | what is checked over rows |\n| --- | --- | --- |\n"
    );
    for invariant in Invariant::iter() {
        writeln!(page, "| {} | {} | {} |", invariant.id(), invariant.promise(), invariant.check())?;
    }
    Ok(page)
}

fn crash_points() -> Result<String> {
    let mut page = format!(
        "# Crash points\n\n{GENERATED}\n\n\
         The gaps between two durable steps. At each of them the crash tests make a process kill itself, wait until \
         everything has settled, and look for what the invariants forbid. A point that no test reaches fails them.\n\n\
         | point | durable when the process dies | what would have come next | who puts it right, and how |\n\
         | --- | --- | --- | --- |\n"
    );
    for point in CrashPoint::iter() {
        writeln!(page, "| `{point}` | {} | {} | {} |", point.before(), point.after(), point.recovery())?;
    }
    Ok(page)
}
