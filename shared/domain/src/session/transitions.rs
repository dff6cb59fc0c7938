//! The transition table: what each state makes of each input. The decisions read it, the state-machine page is
//! generated from it, and a row that no test takes fails the suite.

use crate::object::{BundleState, TurnStatus};
use crate::session::rows::{DeliveryOutcome, IntentStatus};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

/// The machines of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum Machine {
    /// Questions asked together.
    Bundle,
    /// A response's claim on them.
    Intent,
    /// A confirmed live answer on its way.
    Delivery,
    /// A prompt and what follows.
    Turn,
}

macro_rules! inputs {
    ($($(#[$doc:meta])* $name:ident { $($(#[$input_doc:meta])* $input:ident),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumIter, EnumString, IntoStaticStr,
        )]
        #[strum(serialize_all = "snake_case")]
        pub enum $name {
            $($(#[$input_doc])* $input,)+
        }
    )+};
}

inputs! {
    /// What can happen to a bundle.
    BundleInput {
        /// An agent asks the same again, polls, or resumes its stream.
        Attach,
        /// The last waiter's connection broke.
        Lose,
        /// The grace of a lost or silent waiter is over.
        Detach,
        /// The wait's own limit is reached.
        Limit,
        /// A person answers.
        Answer,
        /// A person skips.
        Skip,
        /// The owner confirms a claim.
        Confirm,
        /// A claim is undone.
        Restore,
        /// A person cancels the wait.
        Cancel,
        /// A person deletes one of its rows.
        Delete,
        /// A newer turn is accepted.
        Supersede,
        /// Its turn closes.
        Close,
        /// Its session ends.
        End,
        /// The prompt that carries its response may or may not have arrived.
        Doubt,
    }

    /// What can happen to a delivery intent.
    IntentInput {
        /// The owner holds the waiter and is about to release the answer.
        Confirm,
        /// A new turn carries the answer.
        Resume,
        /// A skip that nobody has to be told.
        Record,
        /// The hand-off did not happen in time.
        Restore,
        /// The session ends.
        End,
        /// The new turn that carries the answer may or may not have arrived.
        Doubt,
        /// It has, as is known by now.
        Prove,
    }

    /// What can happen to a delivery.
    DeliveryInput {
        /// The agent shows that it has the answer.
        Acknowledge,
        /// The agent ends the turn itself.
        Complete,
        /// The turn is closed under the agent.
        Replace,
        /// A person ends the session.
        Drop,
    }

    /// What can happen to a turn.
    TurnInput {
        /// An execution acknowledges the prompt.
        Acknowledge,
        /// Frames of its generation arrive.
        Frame,
        /// The agent says it is done.
        Complete,
        /// The agent says it failed.
        Fail,
        /// The agent says it cancelled.
        AgentCancel,
        /// The agent asked and went away without a word more.
        Yield,
        /// The agent fell silent while its question was open.
        AgentGone,
        /// A wait reached its limit.
        NoResponse,
        /// A new execution attached, or the process that ran it died.
        ExecutionLost,
        /// The next prompt is admitted (turns an agent opened itself).
        Admit,
        /// Its detached question is answered, so a new turn takes over.
        Resume,
        /// The session ends.
        EndSession,
        /// Its prompt is about to leave the house.
        Mark,
        /// The agent's side has accepted its prompt.
        Publish,
        /// The agent's side has certainly not accepted its prompt.
        RollBack,
        /// Nobody can say whether its prompt has arrived.
        Doubt,
        /// An operator says that the prompt has arrived.
        SettleAccepted,
        /// An operator says that the prompt has not arrived.
        SettleNotAccepted,
        /// An operator sets aside a turn from which nothing can be concluded.
        Quarantine,
    }
}

/// The states of a turn that this table tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumIter, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum TurnPhase {
    /// It exists, and its prompt has not left the house.
    Reserved,
    /// Its prompt is on its way out, or its carrier died with it.
    Attempted,
    /// It is unknown whether its prompt has arrived.
    Ambiguous,
    /// An agent may be at work on it.
    Running,
    /// It has ended, however it ended.
    Closed,
}

impl TurnPhase {
    /// The phase of a turn with this status.
    #[must_use]
    pub const fn of(status: TurnStatus) -> Self {
        match status {
            TurnStatus::Reserved => Self::Reserved,
            TurnStatus::Attempted => Self::Attempted,
            TurnStatus::Ambiguous => Self::Ambiguous,
            TurnStatus::Running => Self::Running,
            TurnStatus::Completed | TurnStatus::Cancelled | TurnStatus::Failed | TurnStatus::Interrupted => {
                Self::Closed
            }
        }
    }
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// A transition, to one of these states.
    Go(&'static [&'static str]),
    /// The command is refused with this code.
    Refuse(&'static str),
    /// Nothing happens, and nothing needs to: the input came too late or twice.
    Ignore,
    /// It does not come to this: no decision gives the input in this state. One that did would be a bug.
    Never,
}

/// One row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// The machine.
    pub machine: Machine,
    /// The state it is in.
    pub from: &'static str,
    /// The input.
    pub on: &'static str,
    /// What follows.
    pub then: Then,
    /// Why.
    pub why: &'static str,
}

/// Rows of the table that a decision took, in order.
pub type Taken = Vec<&'static Row>;

const fn row(machine: Machine, from: &'static str, on: &'static str, then: Then, why: &'static str) -> Row {
    Row { machine, from, on, then, why }
}

use Machine::{Bundle, Delivery, Intent, Turn};
use Then::{Go, Ignore, Never, Refuse};

/// The table. Every (state, input) of every machine stands in it exactly once.
#[rustfmt::skip]
pub static TABLE: &[Row] = &[
    row(Bundle, "active_live", "attach", Go(&["active_live"]), "one more waiter of the same wait; all get the answer"),
    row(Bundle, "active_live", "lose", Go(&["active_live"]), "the grace begins; the agent may come back to any instance"),
    row(Bundle, "active_live", "detach", Go(&["active_detached"]), "the grace is over; the question stays open"),
    row(Bundle, "active_live", "limit", Go(&["active_detached"]), "silence is no consent: the agent gets no_response, the question stays open"),
    row(Bundle, "active_live", "answer", Go(&["delivery_claimed"]), "the response claims exactly the pending rows"),
    row(Bundle, "active_live", "skip", Go(&["delivery_claimed"]), "the blocked agent must be told"),
    row(Bundle, "active_live", "confirm", Ignore, "the claim was undone before"),
    row(Bundle, "active_live", "restore", Ignore, "nothing is claimed"),
    row(Bundle, "active_live", "cancel", Go(&["terminal"]), "the owner holds the waiter and tells it"),
    row(Bundle, "active_live", "delete", Go(&["active_live", "terminal"]), "the last pending row ends the bundle"),
    row(Bundle, "active_live", "supersede", Never, "no turn is accepted past a waiter: its turn is closed first, and the wait with it"),
    row(Bundle, "active_live", "close", Go(&["active_detached"]), "its waiter ends with the turn"),
    row(Bundle, "active_live", "end", Go(&["terminal"]), "it expires with its session"),
    row(Bundle, "active_live", "doubt", Never, "only a claim has an answer on its way"),

    row(Bundle, "active_detached", "attach", Go(&["active_live", "active_detached"]), "while its turn is open the agent may wait again"),
    row(Bundle, "active_detached", "lose", Ignore, "no waiter is known"),
    row(Bundle, "active_detached", "detach", Never, "only who waits can stay away"),
    row(Bundle, "active_detached", "limit", Never, "only a wait has a limit"),
    row(Bundle, "active_detached", "answer", Go(&["terminal", "delivery_claimed"]), "a new turn carries the answer: at once in this house, or once its runner has accepted it"),
    row(Bundle, "active_detached", "skip", Go(&["terminal"]), "recorded; nobody waits to be told"),
    row(Bundle, "active_detached", "confirm", Ignore, "the claim was undone before"),
    row(Bundle, "active_detached", "restore", Ignore, "nothing is claimed"),
    row(Bundle, "active_detached", "cancel", Refuse("no_live_waiter"), "only a waiting agent can be told; a person skips"),
    row(Bundle, "active_detached", "delete", Go(&["active_detached", "terminal"]), "the last pending row ends the bundle"),
    row(Bundle, "active_detached", "supersede", Go(&["superseded_history"]), "a newer accepted turn makes it history"),
    row(Bundle, "active_detached", "close", Ignore, "no waiter is left to tell"),
    row(Bundle, "active_detached", "end", Go(&["terminal"]), "it expires with its session"),
    row(Bundle, "active_detached", "doubt", Never, "only a claim has an answer on its way"),

    row(Bundle, "delivery_claimed", "attach", Go(&["delivery_claimed"]), "the delivery finds the waiter"),
    row(Bundle, "delivery_claimed", "lose", Go(&["delivery_claimed"]), "the delivery waits for the grace"),
    row(Bundle, "delivery_claimed", "detach", Go(&["delivery_claimed"]), "the claim resumes the agent instead"),
    row(Bundle, "delivery_claimed", "limit", Ignore, "an answer is on its way: the limit does not end the wait"),
    row(Bundle, "delivery_claimed", "answer", Refuse("delivery_in_progress"), "somebody was faster; their claim may yet be undone"),
    row(Bundle, "delivery_claimed", "skip", Refuse("delivery_in_progress"), "somebody was faster; their claim may yet be undone"),
    row(Bundle, "delivery_claimed", "confirm", Go(&["terminal"]), "the delivery boundary"),
    row(Bundle, "delivery_claimed", "restore", Go(&["active_live", "active_detached", "terminal"]), "exactly the claimed rows are pending again; history keeps the response as unconfirmed"),
    row(Bundle, "delivery_claimed", "cancel", Refuse("delivery_in_progress"), "respond and cancel exclude each other"),
    row(Bundle, "delivery_claimed", "delete", Refuse("delivery_in_progress"), "a claimed row cannot be taken from its claim"),
    row(Bundle, "delivery_claimed", "supersede", Never, "no turn is admitted past an open intent"),
    row(Bundle, "delivery_claimed", "close", Go(&["delivery_claimed"]), "its waiter ends with the turn; the claim resumes"),
    row(Bundle, "delivery_claimed", "end", Go(&["terminal"]), "it expires; the response stays readable as unconfirmed"),
    row(Bundle, "delivery_claimed", "doubt", Go(&["terminal"]), "the response stays, as unconfirmed; it is never sent again by itself"),

    row(Bundle, "terminal", "attach", Go(&["terminal"]), "the recorded outcome is told again"),
    row(Bundle, "terminal", "lose", Ignore, "nobody waits"),
    row(Bundle, "terminal", "detach", Never, "only who waits can stay away"),
    row(Bundle, "terminal", "limit", Never, "only a wait has a limit"),
    row(Bundle, "terminal", "answer", Refuse("not_active"), "told with the recorded response"),
    row(Bundle, "terminal", "skip", Refuse("not_active"), "told with the recorded response"),
    row(Bundle, "terminal", "confirm", Ignore, "confirmed before"),
    row(Bundle, "terminal", "restore", Ignore, "a confirmed response is never undone"),
    row(Bundle, "terminal", "cancel", Refuse("not_active"), "told with the recorded response"),
    row(Bundle, "terminal", "delete", Go(&["terminal"]), "its text goes, the recorded response stays"),
    row(Bundle, "terminal", "supersede", Ignore, "it has its outcome"),
    row(Bundle, "terminal", "close", Ignore, "it has its outcome"),
    row(Bundle, "terminal", "end", Ignore, "it has its outcome"),
    row(Bundle, "terminal", "doubt", Never, "it has its outcome"),

    row(Bundle, "superseded_history", "attach", Go(&["superseded_history"]), "the agent is told that a newer turn took over"),
    row(Bundle, "superseded_history", "lose", Ignore, "nobody waits"),
    row(Bundle, "superseded_history", "detach", Never, "only who waits can stay away"),
    row(Bundle, "superseded_history", "limit", Never, "only a wait has a limit"),
    row(Bundle, "superseded_history", "answer", Refuse("not_active"), "a stale answer writes nothing and wakes nobody"),
    row(Bundle, "superseded_history", "skip", Refuse("not_active"), "a stale answer writes nothing and wakes nobody"),
    row(Bundle, "superseded_history", "confirm", Ignore, "the claim was undone before"),
    row(Bundle, "superseded_history", "restore", Ignore, "nothing is claimed"),
    row(Bundle, "superseded_history", "cancel", Refuse("not_active"), "it is history"),
    row(Bundle, "superseded_history", "delete", Go(&["superseded_history", "terminal"]), "history can be deleted"),
    row(Bundle, "superseded_history", "supersede", Never, "only the turn accepted last is superseded, and it is of an older one"),
    row(Bundle, "superseded_history", "close", Never, "its turn was closed before a newer one was accepted"),
    row(Bundle, "superseded_history", "end", Ignore, "it is history"),
    row(Bundle, "superseded_history", "doubt", Never, "it is history"),

    row(Intent, "open", "confirm", Go(&["confirmed"]), "the delivery boundary"),
    row(Intent, "open", "resume", Go(&["confirmed"]), "accepted and published in one step"),
    row(Intent, "open", "record", Go(&["confirmed"]), "nobody waits to be told"),
    row(Intent, "open", "restore", Go(&["restored", "retired"]), "undone while its turn is current, else kept as unconfirmed"),
    row(Intent, "open", "end", Go(&["retired"]), "the response stays readable as unconfirmed"),
    row(Intent, "open", "doubt", Go(&["retired"]), "the prompt that carries it may have arrived: the claim can neither be undone nor counted"),
    row(Intent, "open", "prove", Never, "what is open is confirmed by its publication"),
    row(Intent, "confirmed", "confirm", Ignore, "a late deliver call of a claim that was delivered"),
    row(Intent, "confirmed", "resume", Ignore, "delivered before"),
    row(Intent, "confirmed", "record", Ignore, "recorded before"),
    row(Intent, "confirmed", "restore", Ignore, "the first to commit wins"),
    row(Intent, "confirmed", "end", Never, "only what is open ends with its session"),
    row(Intent, "confirmed", "doubt", Never, "the first to commit wins"),
    row(Intent, "confirmed", "prove", Never, "only what was in doubt is proven"),
    row(Intent, "restored", "confirm", Ignore, "the first to commit wins: nothing is delivered"),
    row(Intent, "restored", "resume", Ignore, "the bundle is open again"),
    row(Intent, "restored", "record", Ignore, "the bundle is open again"),
    row(Intent, "restored", "restore", Ignore, "undone before"),
    row(Intent, "restored", "end", Never, "only what is open ends with its session"),
    row(Intent, "restored", "doubt", Never, "its turn was rolled back"),
    row(Intent, "restored", "prove", Never, "its turn was rolled back"),
    row(Intent, "retired", "confirm", Ignore, "nothing is delivered"),
    row(Intent, "retired", "resume", Ignore, "nothing is delivered"),
    row(Intent, "retired", "record", Ignore, "nothing is delivered"),
    row(Intent, "retired", "restore", Ignore, "it has its end"),
    row(Intent, "retired", "end", Never, "only what is open ends with its session"),
    row(Intent, "retired", "doubt", Never, "it is in doubt"),
    row(Intent, "retired", "prove", Go(&["confirmed"]), "its ambiguous turn was published after all"),

    row(Delivery, "open", "acknowledge", Go(&["acknowledged"]), "another request of the execution that waited"),
    row(Delivery, "open", "complete", Go(&["acknowledged"]), "an agent that ends its turn has what it waited for"),
    row(Delivery, "open", "replace", Go(&["replaced"]), "one prompt at the head of the queue carries the answer again"),
    row(Delivery, "open", "drop", Go(&["dropped"]), "a person ended it"),
    row(Delivery, "acknowledged", "acknowledge", Ignore, "known"),
    row(Delivery, "acknowledged", "complete", Never, "the end of a turn settles what is open"),
    row(Delivery, "acknowledged", "replace", Never, "the end of a turn settles what is open"),
    row(Delivery, "acknowledged", "drop", Never, "the end of a turn settles what is open"),
    row(Delivery, "replaced", "acknowledge", Ignore, "a late sign of the old execution changes nothing"),
    row(Delivery, "replaced", "complete", Never, "the end of a turn settles what is open"),
    row(Delivery, "replaced", "replace", Never, "the end of a turn settles what is open"),
    row(Delivery, "replaced", "drop", Never, "the end of a turn settles what is open"),
    row(Delivery, "dropped", "acknowledge", Ignore, "a person ended it"),
    row(Delivery, "dropped", "complete", Never, "the end of a turn settles what is open"),
    row(Delivery, "dropped", "replace", Never, "the end of a turn settles what is open"),
    row(Delivery, "dropped", "drop", Never, "the end of a turn settles what is open"),
    row(Delivery, "carried", "acknowledge", Never, "no prompt carries an answer in place of another yet"),
    row(Delivery, "carried", "complete", Never, "no prompt carries an answer in place of another yet"),
    row(Delivery, "carried", "replace", Never, "no prompt carries an answer in place of another yet"),
    row(Delivery, "carried", "drop", Never, "no prompt carries an answer in place of another yet"),

    row(Turn, "reserved", "acknowledge", Refuse("stale_generation"), "its prompt has not left the house: nobody can have it"),
    row(Turn, "reserved", "frame", Refuse("stale_generation"), "its prompt has not left the house: nobody can work on it"),
    row(Turn, "reserved", "complete", Never, "nothing of it runs yet"),
    row(Turn, "reserved", "fail", Never, "nothing of it runs yet"),
    row(Turn, "reserved", "agent_cancel", Never, "nothing of it runs yet"),
    row(Turn, "reserved", "yield", Never, "nothing of it runs yet"),
    row(Turn, "reserved", "agent_gone", Never, "nothing of it runs yet"),
    row(Turn, "reserved", "no_response", Never, "nothing of it runs yet"),
    row(Turn, "reserved", "execution_lost", Never, "nothing of it runs yet"),
    row(Turn, "reserved", "admit", Never, "nothing of it runs yet"),
    row(Turn, "reserved", "resume", Never, "nothing of it runs yet"),
    row(Turn, "reserved", "end_session", Go(&["removed"]), "nothing was sent"),
    row(Turn, "reserved", "mark", Go(&["attempted"]), "the at-most-once boundary: from here on a crash leaves doubt"),
    row(Turn, "reserved", "publish", Go(&["running"]), "there is evidence of it, so it was accepted"),
    row(Turn, "reserved", "roll_back", Go(&["removed"]), "nothing was sent: exactly its rows are pending again"),
    row(Turn, "reserved", "doubt", Never, "nothing was sent, so there is no doubt"),
    row(Turn, "reserved", "settle_accepted", Refuse("not_ambiguous"), "it is not settled yet what became of its prompt"),
    row(Turn, "reserved", "settle_not_accepted", Refuse("not_ambiguous"), "it is not settled yet what became of its prompt"),
    row(Turn, "reserved", "quarantine", Go(&["interrupted"]), "an operator sets it aside"),

    row(Turn, "attempted", "acknowledge", Go(&["running"]), "whoever has the prompt proves that it arrived"),
    row(Turn, "attempted", "frame", Go(&["running"]), "whoever works on it proves that it arrived"),
    row(Turn, "attempted", "complete", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "attempted", "fail", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "attempted", "agent_cancel", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "attempted", "yield", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "attempted", "agent_gone", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "attempted", "no_response", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "attempted", "execution_lost", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "attempted", "admit", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "attempted", "resume", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "attempted", "end_session", Go(&["cancelled"]), "its prompt may have arrived: whoever sends it tells the runner to cancel"),
    row(Turn, "attempted", "mark", Never, "it is marked once"),
    row(Turn, "attempted", "publish", Go(&["running"]), "accepted: an ordinary turn from now on"),
    row(Turn, "attempted", "roll_back", Go(&["removed"]), "certainly not accepted: exactly its rows are pending again"),
    row(Turn, "attempted", "doubt", Go(&["ambiguous"]), "nobody can say whether it arrived, so it is never sent again by itself"),
    row(Turn, "attempted", "settle_accepted", Refuse("not_ambiguous"), "it is not settled yet what became of its prompt"),
    row(Turn, "attempted", "settle_not_accepted", Refuse("not_ambiguous"), "it is not settled yet what became of its prompt"),
    row(Turn, "attempted", "quarantine", Go(&["interrupted"]), "an operator sets it aside"),

    row(Turn, "ambiguous", "acknowledge", Go(&["running"]), "whoever has the prompt proves that it arrived"),
    row(Turn, "ambiguous", "frame", Go(&["running"]), "whoever works on it proves that it arrived"),
    row(Turn, "ambiguous", "complete", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "ambiguous", "fail", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "ambiguous", "agent_cancel", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "ambiguous", "yield", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "ambiguous", "agent_gone", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "ambiguous", "no_response", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "ambiguous", "execution_lost", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "ambiguous", "admit", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "ambiguous", "resume", Never, "what an agent says of it proves first that its prompt arrived"),
    row(Turn, "ambiguous", "end_session", Go(&["interrupted"]), "the doubt does not matter any more"),
    row(Turn, "ambiguous", "mark", Never, "it was marked before"),
    row(Turn, "ambiguous", "publish", Go(&["running"]), "whoever sent it knows by now that it arrived"),
    row(Turn, "ambiguous", "roll_back", Ignore, "the doubt is on record, and people have been told of it: an operator settles it"),
    row(Turn, "ambiguous", "doubt", Ignore, "it is in doubt"),
    row(Turn, "ambiguous", "settle_accepted", Go(&["running"]), "an operator found out that it arrived"),
    row(Turn, "ambiguous", "settle_not_accepted", Go(&["failed"]), "an operator made sure that it did not: its prompt goes once more, under a new turn"),
    row(Turn, "ambiguous", "quarantine", Go(&["interrupted"]), "an operator sets it aside"),

    row(Turn, "running", "acknowledge", Go(&["running"]), "the prompt belongs to this execution"),
    row(Turn, "running", "frame", Go(&["running"]), "history grows"),
    row(Turn, "running", "complete", Go(&["completed"]), "the agent is done"),
    row(Turn, "running", "fail", Go(&["failed"]), "the agent says why"),
    row(Turn, "running", "agent_cancel", Go(&["cancelled"]), "the agent's own word, without a stop of ours"),
    row(Turn, "running", "yield", Go(&["completed"]), "ask and yield: the question stays open"),
    row(Turn, "running", "agent_gone", Go(&["interrupted"]), "the answer resumes it in a new turn"),
    row(Turn, "running", "no_response", Go(&["interrupted"]), "the wait limit; the answer resumes it in a new turn"),
    row(Turn, "running", "execution_lost", Go(&["interrupted"]), "what ran is gone"),
    row(Turn, "running", "admit", Go(&["completed"]), "a turn an agent opened itself does not hold up the queue"),
    row(Turn, "running", "resume", Go(&["interrupted"]), "the agent went on without its answer; the answer takes over"),
    row(Turn, "running", "end_session", Go(&["cancelled"]), "ended with its session"),
    row(Turn, "running", "mark", Never, "it was published before"),
    row(Turn, "running", "publish", Ignore, "published before: an agent that was faster proved it"),
    row(Turn, "running", "roll_back", Ignore, "the agent's own word has proved that it arrived"),
    row(Turn, "running", "doubt", Ignore, "the agent's own word has proved that it arrived"),
    row(Turn, "running", "settle_accepted", Refuse("not_ambiguous"), "there is no doubt"),
    row(Turn, "running", "settle_not_accepted", Refuse("not_ambiguous"), "there is no doubt"),
    row(Turn, "running", "quarantine", Never, "only what was never published is set aside"),
    row(Turn, "closed", "acknowledge", Refuse("stale_generation"), "the agent stops what it does and fetches the next prompt"),
    row(Turn, "closed", "frame", Refuse("stale_generation"), "frames of one turn never change another"),
    row(Turn, "closed", "complete", Never, "only an open turn is closed"),
    row(Turn, "closed", "fail", Never, "only an open turn is closed"),
    row(Turn, "closed", "agent_cancel", Never, "only an open turn is closed"),
    row(Turn, "closed", "yield", Never, "only an open turn is closed"),
    row(Turn, "closed", "agent_gone", Never, "only an open turn is closed"),
    row(Turn, "closed", "no_response", Never, "only an open turn is closed"),
    row(Turn, "closed", "execution_lost", Never, "only an open turn is closed"),
    row(Turn, "closed", "admit", Never, "only an open turn is closed"),
    row(Turn, "closed", "resume", Never, "only an open turn is closed"),
    row(Turn, "closed", "end_session", Never, "only an open turn is closed"),
    row(Turn, "closed", "mark", Never, "only a reservation is marked"),
    row(Turn, "closed", "publish", Ignore, "it was closed meanwhile: the runner is told to cancel"),
    row(Turn, "closed", "roll_back", Ignore, "it was closed meanwhile"),
    row(Turn, "closed", "doubt", Ignore, "it was closed meanwhile"),
    row(Turn, "closed", "settle_accepted", Refuse("not_ambiguous"), "there is no doubt"),
    row(Turn, "closed", "settle_not_accepted", Refuse("not_ambiguous"), "there is no doubt"),
    row(Turn, "closed", "quarantine", Never, "only what was never published is set aside"),
];

fn find(machine: Machine, from: &'static str, on: &'static str) -> &'static Row {
    // The `table_is_total` test proves that every pair stands in the table.
    TABLE
        .iter()
        .find(|row| row.machine == machine && row.from == from && row.on == on)
        .expect("every state and input of a machine stands in the table")
}

/// What a bundle in `state` makes of `input`.
#[must_use]
pub fn bundle(state: BundleState, input: BundleInput) -> &'static Row {
    find(Machine::Bundle, state.as_str(), input.into())
}

/// What an intent makes of `input`.
#[must_use]
pub fn intent(status: IntentStatus, input: IntentInput) -> &'static Row {
    find(Machine::Intent, status.into(), input.into())
}

/// What a delivery makes of `input`.
#[must_use]
pub fn delivery(outcome: DeliveryOutcome, input: DeliveryInput) -> &'static Row {
    find(Machine::Delivery, outcome.into(), input.into())
}

/// What a turn makes of `input`.
#[must_use]
pub fn turn(phase: TurnPhase, input: TurnInput) -> &'static Row {
    find(Machine::Turn, phase.into(), input.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use strum::IntoEnumIterator;

    #[test]
    fn table_is_total_and_says_each_pair_once() {
        let mut wanted = BTreeSet::new();
        for state in BundleState::iter() {
            wanted.extend(BundleInput::iter().map(|input| (Machine::Bundle, state.as_str(), input.into())));
        }
        for status in IntentStatus::iter() {
            wanted.extend(IntentInput::iter().map(|input| (Machine::Intent, status.into(), input.into())));
        }
        for outcome in DeliveryOutcome::iter() {
            wanted.extend(DeliveryInput::iter().map(|input| (Machine::Delivery, outcome.into(), input.into())));
        }
        for phase in TurnPhase::iter() {
            wanted.extend(TurnInput::iter().map(|input| (Machine::Turn, phase.into(), input.into())));
        }
        let said: Vec<(Machine, &str, &str)> = TABLE.iter().map(|row| (row.machine, row.from, row.on)).collect();
        assert_eq!(said.len(), wanted.len(), "a pair stands in the table twice, or not at all");
        assert_eq!(said.into_iter().collect::<BTreeSet<_>>(), wanted);
    }
}
