//! Every time the product waits, in one place.

use super::ConfigError;
use std::time::Duration;

/// The longest time that can be configured: a week. Anything longer is a slip of the unit.
const LONGEST_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

macro_rules! times {
    ($($(#[doc = $doc:literal])+ $field:ident, $env:literal, $flag:literal, $default_ms:literal;)+) => {
        /// The times of the protocols. Each is a variable `ASKBACK_<NAME>_MS` and a flag, in milliseconds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
        #[command(next_help_heading = "Times (milliseconds)")]
        pub struct Times {
            $(
                $(#[doc = $doc])+
                #[arg(
                    long = $flag,
                    env = $env,
                    value_name = "MS",
                    default_value = stringify!($default_ms),
                    hide_short_help = true,
                    value_parser = |text: &str| millis($env, text)
                )]
                pub $field: Duration,
            )+
        }

        impl Default for Times {
            fn default() -> Self {
                Self { $($field: Duration::from_millis($default_ms),)+ }
            }
        }
    };
}

times! {
    /// How long an ask blocks before its turn is paused.
    wait, "ASKBACK_WAIT_MS", "wait-ms", 7_200_000;
    /// How often a blocked stream says that it is alive.
    keepalive, "ASKBACK_KEEPALIVE_MS", "keepalive-ms", 20_000;
    /// How long a broken agent connection is not yet a detach.
    grace, "ASKBACK_GRACE_MS", "grace-ms", 12_000;
    /// How long a response may take to claim its bundle.
    claim, "ASKBACK_CLAIM_MS", "claim-ms", 5_000;
    /// How long a claimed response may take to be confirmed by the owner.
    handoff, "ASKBACK_HANDOFF_MS", "handoff-ms", 15_000;
    /// How long the resume of a detached bundle may take in all.
    resume, "ASKBACK_RESUME_MS", "resume-ms", 25_000;
    /// How long a restore or a rollback may take.
    restore, "ASKBACK_RESTORE_MS", "restore-ms", 5_000;
    /// When an intent or a reservation is overdue, whoever holds it.
    deadline, "ASKBACK_DEADLINE_MS", "deadline-ms", 60_000;
    /// How long an agent may be silent after it got an answer.
    watchdog, "ASKBACK_WATCHDOG_MS", "watchdog-ms", 15_000;
    /// How long the recovery after an expired watchdog may take in all.
    watchdog_budget, "ASKBACK_WATCHDOG_BUDGET_MS", "watchdog-budget-ms", 60_000;
    /// How long a stopped agent has to acknowledge before the stop escalates.
    stop_ack, "ASKBACK_STOP_ACK_MS", "stop-ack-ms", 10_000;
    /// How long a stop request waits for its recorded result before it answers 202.
    stop_wait, "ASKBACK_STOP_WAIT_MS", "stop-wait-ms", 15_000;
    /// How long an escalated stop may take.
    stop_escalation, "ASKBACK_STOP_ESCALATION_MS", "stop-escalation-ms", 2_000;
    /// How often an instance renews its lease.
    heartbeat, "ASKBACK_HEARTBEAT_MS", "heartbeat-ms", 1_000;
    /// How long a renewed lease is valid by the database's clock.
    lease, "ASKBACK_LEASE_MS", "lease-ms", 3_000;
    /// How long an instance trusts a renewal by its own clock.
    trust, "ASKBACK_TRUST_MS", "trust-ms", 2_000;
    /// How long a prompt that was refused waits before it is tried again; doubles with each try.
    dispatch_backoff, "ASKBACK_DISPATCH_BACKOFF_MS", "dispatch-backoff-ms", 1_000;
    /// How often due, overdue and lapsed work is looked for.
    reconcile, "ASKBACK_RECONCILE_MS", "reconcile-ms", 1_000;
}

fn millis(name: &'static str, text: &str) -> Result<Duration, String> {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    match plain.parse() {
        Ok(ms) if (1..=LONGEST_MS).contains(&ms) => Ok(Duration::from_millis(ms)),
        _ => Err(format!("{name} must be a whole number of milliseconds between 1 and {LONGEST_MS}")),
    }
}

impl Times {
    /// Checks the orders that the protocols rest on.
    ///
    /// # Errors
    /// [`ConfigError::Order`] names every variable of the first rule that does not hold.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let heartbeat = ("ASKBACK_HEARTBEAT_MS", self.heartbeat);
        let trust = ("ASKBACK_TRUST_MS", self.trust);
        let lease = ("ASKBACK_LEASE_MS", self.lease);
        let grace = ("ASKBACK_GRACE_MS", self.grace);
        let handoff = ("ASKBACK_HANDOFF_MS", self.handoff);
        let respond = [
            ("ASKBACK_CLAIM_MS", self.claim),
            handoff,
            ("ASKBACK_RESUME_MS", self.resume),
            ("ASKBACK_RESTORE_MS", self.restore),
            ("ASKBACK_DEADLINE_MS", self.deadline),
        ];
        check(heartbeat.1 < trust.1, "HEARTBEAT < TRUST", &[heartbeat, trust])?;
        check(trust.1 < lease.1, "TRUST < LEASE", &[trust, lease])?;
        check(grace.1 < handoff.1, "GRACE < HANDOFF", &[grace, handoff])?;
        let in_all = self.claim + self.handoff + self.resume + self.restore;
        check(in_all <= self.deadline, "CLAIM + HANDOFF + RESUME + RESTORE ≤ DEADLINE", &respond)
    }
}

fn check(holds: bool, rule: &'static str, values: &[(&str, Duration)]) -> Result<(), ConfigError> {
    if holds {
        return Ok(());
    }
    let names: Vec<String> = values.iter().map(|(name, value)| format!("{name}={}", value.as_millis())).collect();
    Err(ConfigError::Order { rule, names: names.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Process {
        #[command(flatten)]
        times: Times,
    }

    #[test]
    fn the_defaults_of_the_flags_are_the_default_times_and_hold() {
        let parsed = Process::try_parse_from(["process"]).expect("every time has a default").times;
        assert_eq!(parsed, Times::default());
        parsed.validate().expect("the defaults keep their order");
    }

    #[test]
    fn a_bad_value_names_its_variable() {
        for bad in ["0", "-1", "2s", "", "99999999999999999999", "1.5"] {
            let Err(why) = Process::try_parse_from(["process", &format!("--grace-ms={bad}")]) else {
                panic!("{bad:?} was taken");
            };
            assert!(why.to_string().contains("ASKBACK_GRACE_MS"), "{why}");
        }
    }

    #[test]
    fn an_order_that_does_not_hold_names_both_variables() {
        let ms = Duration::from_millis;
        let base = Times::default();
        let cases = [
            (Times { heartbeat: ms(2_000), ..base }, ["ASKBACK_HEARTBEAT_MS", "ASKBACK_TRUST_MS"]),
            (Times { trust: ms(3_000), ..base }, ["ASKBACK_TRUST_MS", "ASKBACK_LEASE_MS"]),
            (Times { grace: ms(15_000), ..base }, ["ASKBACK_GRACE_MS", "ASKBACK_HANDOFF_MS"]),
            (Times { deadline: ms(49_999), ..base }, ["ASKBACK_CLAIM_MS", "ASKBACK_DEADLINE_MS"]),
        ];
        for (times, names) in cases {
            let why = times.validate().expect_err("the order does not hold").to_string();
            assert!(names.iter().all(|name| why.contains(name)), "{why}");
        }
        Times { deadline: ms(50_000), ..base }.validate().expect("equal is enough for the deadline");
    }
}
