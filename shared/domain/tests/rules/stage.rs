//! A world with one session in it, and short words for the commands that tests give.

use domain::answer::{self, AnswerInput, NormalisedResponse, RespondInput};
use domain::ask::{self, AskInput, OptionInput, QuestionInput};
use domain::ids::{ClaimId, Epoch, ExecutionId, Ids, MessageId, PendingId, SessionId, TaskId, TurnId, WorkspaceId};
use domain::object::{
    Actor, BundleState, EndState, MessageType, QuestionStatus, RuntimeKind, SessionState, SettledAs, TaskState,
    TurnStatus,
};
use domain::session::decide::{
    AckPrompt, Acknowledge, Ask, AskReply, Attach, AttachWaiter, Begin, Cancel, Claim, ClaimReply, Confirm,
    ConfirmReply, DeleteMessage, DeleteSession, EndSession, FetchPrompt, Frame, Frames, FramesStored, HandOver, Handed,
    LoseWaiter, Mark, NewSession, Opening, Outgoing, Prompt, Recover, Reserve, ReserveReply, Restore, RestoreReply,
    Resume, ResumeReply, Retry, Settle, StopReason, TakeOver, TakenOver, Tick, TickReply, Verdict,
};
use domain::session::event::EventType;
use domain::session::rows::{Rows, Task};
use domain::session::transitions::Taken;
use domain::session::{Command, Rejection};
use domain::sim::World;
use domain::time::Timestamp;
use std::time::Duration;

pub(crate) const GRACE: Duration = Duration::from_secs(12);
pub(crate) const WAIT: Duration = Duration::from_secs(7_200);
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
const START: i64 = 1_790_000_000_000_000;

/// One session, the instance that owns it, and what was released to its agent.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) session: SessionId,
    pub(crate) owner: Epoch,
    /// Claims released so far: what the next requests of the agent acknowledge.
    pub(crate) released: Vec<ClaimId>,
    /// Rows of the table that were taken.
    pub(crate) taken: Taken,
    ids: Ids,
}

impl Stage {
    /// A session of a runtime, owned by instance 1, with first prompts in its queue or none.
    pub(crate) fn new(runtime: RuntimeKind, prompt: Option<&str>) -> Self {
        let mut world = World::new(Timestamp::from_micros(START));
        let mut ids = Ids::new(1_790_000_000_000, [1; 16]);
        let (task_id, workspace_id): (TaskId, WorkspaceId) = (ids.draw(), ids.draw());
        world.put_task(Task {
            id: task_id,
            workspace_id,
            title: "Ship it".to_owned(),
            description: String::new(),
            workflow_id: None,
            step_id: None,
            state: TaskState::Todo,
            primary_session_id: None,
            created_at: world.now(),
            updated_at: world.now(),
        });
        let new = NewSession { id: ids.draw(), task_id, workspace_id, agent: "agent".to_owned(), runtime };
        let author = Actor { id: "p1".to_owned(), name: "Ada".to_owned() };
        let prompt = prompt.map(|content| Opening { content: content.to_owned(), author });
        let begin = Begin { prompt, grace: GRACE, traceparent: None };
        let session = world.create(new, &begin).expect("the task is there");
        let mut stage = Self { world, session, owner: Epoch(0), released: vec![], taken: vec![], ids };
        stage.take_over(Epoch(1));
        stage
    }

    /// A mailbox session whose first prompt an execution has taken.
    pub(crate) fn working() -> (Self, ExecutionId) {
        let mut stage = Self::new(RuntimeKind::Mailbox, Some("go"));
        let execution = stage.attach(None).expect("the session lives");
        stage.tick();
        let turn = stage.open_turn().expect("the prompt was published");
        stage.ack(execution, turn).expect("the turn is open");
        (stage, execution)
    }

    /// A push session whose runner has accepted its first prompt, asked, lost its wait and ended its turn: the question
    /// is open, and an answer to it has to be handed over.
    pub(crate) fn asked_elsewhere(set: u8) -> (Self, ExecutionId, PendingId) {
        let mut stage = Self::new(RuntimeKind::Push, Some("go"));
        let execution = stage.attach(None).expect("the session lives");
        let turn = stage.sent();
        stage.hand_over(turn, Verdict::Accepted).expect("the turn is marked");
        stage.ack(execution, turn).expect("the turn is open");
        let asked = stage.ask(Some(execution), set).expect("the turn is open");
        stage.lose(asked.pending_id).expect("the bundle is there");
        stage.pass(GRACE);
        stage.tick();
        stage.say(vec![complete(StopReason::EndTurn)]).expect("the turn is open");
        (stage, execution, asked.pending_id)
    }

    /// The turn of the head of the queue, which is handed over now.
    pub(crate) fn sent(&mut self) -> TurnId {
        self.tick().outgoing.expect("the head of the queue may go").turn_id
    }

    /// A session without a runtime's prompt, whose agent came by itself over MCP.
    pub(crate) fn alone() -> Self {
        Self::new(RuntimeKind::Mailbox, None)
    }

    pub(crate) fn give<C: Command>(&mut self, command: &C) -> Result<C::Reply, Rejection> {
        let unix_ms = u64::try_from(self.world.now().as_micros() / 1_000).expect("the clock stands after 1970");
        let mut ids = Ids::new(unix_ms, *self.ids.draw::<uuid::Uuid>().as_bytes());
        let accepted = self.world.transact_with(self.session, command, &mut ids)?;
        self.taken.extend(accepted.taken);
        Ok(accepted.reply)
    }

    pub(crate) fn rows(&self) -> &Rows {
        self.world.rows(self.session).expect("the session was created")
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        self.world.advance(span);
    }

    pub(crate) fn check(&self) {
        let found = self.world.violations(self.session);
        assert!(found.is_empty(), "{}", found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }

    pub(crate) fn open_turn(&self) -> Option<TurnId> {
        self.rows().open_turn().map(|turn| turn.id)
    }

    pub(crate) fn turn_status(&self, turn: TurnId) -> TurnStatus {
        self.rows().turns[&turn].status
    }

    pub(crate) fn bundle_state(&self, pending: PendingId) -> BundleState {
        self.rows().bundle_state(&self.rows().bundles[&pending], self.world.now())
    }

    pub(crate) fn state(&self) -> SessionState {
        self.rows().state(self.world.now())
    }

    pub(crate) fn told(&self, kind: EventType) -> usize {
        self.world.events(self.session).iter().filter(|event| event.kind == kind).count()
    }

    // What orchestrators do.

    pub(crate) fn take_over(&mut self, epoch: Epoch) -> TakenOver {
        let gone = self.rows().session.owner_epoch;
        if let Some(gone) = gone.filter(|gone| *gone != epoch) {
            self.world.fence(gone);
        }
        let reply = self.give(&TakeOver { epoch, gone, grace: GRACE }).expect("the owner before is gone");
        self.owner = epoch;
        reply
    }

    pub(crate) fn tick(&mut self) -> TickReply {
        self.tick_with(vec![], self.world.now())
    }

    pub(crate) fn tick_with(&mut self, absent: Vec<PendingId>, seen_at: Timestamp) -> TickReply {
        self.give(&Tick { epoch: self.owner, absent, seen_at, grace: GRACE, deadline: DEADLINE })
            .expect("a tick is never refused to the owner")
    }

    pub(crate) fn confirm(&mut self, claim_id: ClaimId) -> Result<ConfirmReply, Rejection> {
        let reply = self.give(&Confirm { claim_id, epoch: self.owner, grace: GRACE })?;
        if let ConfirmReply::Confirmed { .. } = reply {
            self.released.push(claim_id);
        }
        Ok(reply)
    }

    pub(crate) fn resume(&mut self, claim_id: ClaimId) -> Result<ResumeReply, Rejection> {
        self.give(&Resume { claim_id, grace: GRACE })
    }

    pub(crate) fn restore(&mut self, claim_id: ClaimId) -> Result<RestoreReply, Rejection> {
        self.give(&Restore { claim_id, reason: "delivery_failed", grace: GRACE })
    }

    pub(crate) fn written(&mut self, claim_id: ClaimId) -> Result<(), Rejection> {
        self.give(&Acknowledge { claim_id, grace: GRACE })
    }

    pub(crate) fn lose(&mut self, pending_id: PendingId) -> Result<(), Rejection> {
        self.give(&LoseWaiter { pending_id, epoch: self.owner, grace: GRACE })
    }

    pub(crate) fn cancel(&mut self, pending_id: PendingId) -> Result<(), Rejection> {
        self.give(&Cancel { pending_id, epoch: self.owner, grace: GRACE })
    }

    pub(crate) fn reserve(&mut self, claim_id: ClaimId, attempt: bool) -> Result<ReserveReply, Rejection> {
        self.give(&Reserve { claim_id, epoch: self.owner, attempt, deadline: DEADLINE, grace: GRACE })
    }

    pub(crate) fn mark(&mut self, turn_id: TurnId) -> Result<Option<Outgoing>, Rejection> {
        self.give(&Mark { turn_id, epoch: self.owner, grace: GRACE })
    }

    pub(crate) fn hand_over(&mut self, turn_id: TurnId, verdict: Verdict) -> Result<Handed, Rejection> {
        self.give(&HandOver { turn_id, epoch: self.owner, verdict, grace: GRACE })
    }

    pub(crate) fn recover(&mut self) -> Result<Option<(TurnId, Handed)>, Rejection> {
        self.give(&Recover { allowance: Duration::from_secs(5), grace: GRACE })
    }

    pub(crate) fn settle(&mut self, turn_id: TurnId, verdict: SettledAs) -> Result<(), Rejection> {
        let actor = Actor { id: "p3".to_owned(), name: "Olga".to_owned() };
        self.give(&Settle { turn_id, verdict, actor, note: "asked the runner".to_owned(), grace: GRACE })
    }

    // What agents do.

    pub(crate) fn attach(&mut self, execution_id: Option<ExecutionId>) -> Result<ExecutionId, Rejection> {
        let attach = Attach { epoch: self.owner, execution_id, name: None, grace: GRACE };
        self.give(&attach).map(|attached| attached.execution_id)
    }

    pub(crate) fn fetch(&mut self, execution_id: ExecutionId) -> Result<Option<Prompt>, Rejection> {
        self.give(&FetchPrompt { epoch: self.owner, execution_id, released: self.released.clone(), grace: GRACE })
    }

    pub(crate) fn ack(&mut self, execution_id: ExecutionId, turn_id: TurnId) -> Result<(), Rejection> {
        self.give(&AckPrompt {
            epoch: self.owner,
            execution_id,
            turn_id,
            released: self.released.clone(),
            grace: GRACE,
        })
    }

    /// Asks question set `set`; waits unless told otherwise.
    pub(crate) fn ask(&mut self, execution: Option<ExecutionId>, set: u8) -> Result<AskReply, Rejection> {
        let ask = self.asking(execution, set);
        self.give(&ask)
    }

    pub(crate) fn asking(&mut self, execution_id: Option<ExecutionId>, set: u8) -> Ask {
        Ask {
            pending_id: self.ids.draw(),
            epoch: self.owner,
            execution_id,
            generation: None,
            ask: questions(set),
            request_id: None,
            wait: Some(WAIT),
            grace: GRACE,
            released: self.released.clone(),
            traceparent: None,
        }
    }

    pub(crate) fn poll(&mut self, execution_id: Option<ExecutionId>, pending_id: PendingId) -> Result<bool, Rejection> {
        let released = self.released.clone();
        self.give(&AttachWaiter { pending_id, epoch: self.owner, execution_id, wait: WAIT, grace: GRACE, released })
    }

    pub(crate) fn frames(
        &mut self,
        execution_id: ExecutionId,
        generation: i64,
        first_seq: i64,
        frames: Vec<Frame>,
    ) -> Result<FramesStored, Rejection> {
        let (epoch, released) = (self.owner, self.released.clone());
        self.give(&Frames { epoch, execution_id, generation, first_seq, frames, released, grace: GRACE })
    }

    /// Sends the next frames of the newest execution for the newest turn.
    pub(crate) fn say(&mut self, frames: Vec<Frame>) -> Result<FramesStored, Rejection> {
        let session = &self.rows().session;
        let (execution, generation) = (session.execution_id.expect("an execution has attached"), session.generation);
        let next = self.rows().executions[&execution].frame_seq + 1;
        self.frames(execution, generation, next, frames)
    }

    // What people do.

    pub(crate) fn claiming(&mut self, pending_id: PendingId, skip: bool) -> Claim {
        let pending: Vec<_> = self
            .rows()
            .questions(pending_id)
            .into_iter()
            .filter(|(_, part)| part.question_status == QuestionStatus::Pending)
            .map(|(message, part)| (message.id, part.question.clone()))
            .collect();
        let (message_ids, questions): (Vec<MessageId>, Vec<_>) = pending.into_iter().unzip();
        Claim {
            claim_id: self.ids.draw(),
            pending_id,
            message_ids,
            response: response(&questions, skip),
            actor: Actor { id: "p2".to_owned(), name: "Grace".to_owned() },
            claimant_epoch: None,
            deadline: DEADLINE,
            grace: GRACE,
            traceparent: None,
        }
    }

    pub(crate) fn claim(&mut self, pending: PendingId, skip: bool) -> Result<(ClaimId, ClaimReply), Rejection> {
        let claim = self.claiming(pending, skip);
        self.give(&claim).map(|reply| (claim.claim_id, reply))
    }

    /// Claims with an answer, live: the claim is open afterwards.
    pub(crate) fn answer(&mut self, pending: PendingId) -> ClaimId {
        self.claim(pending, false).expect("the bundle is answerable").0
    }

    pub(crate) fn delete(&mut self, message_id: MessageId) -> Result<(), Rejection> {
        self.give(&DeleteMessage { message_id, grace: GRACE })
    }

    pub(crate) fn delete_all(&mut self, pending: PendingId) -> Result<(), Rejection> {
        let messages: Vec<_> = self.rows().questions(pending).iter().map(|(message, _)| message.id).collect();
        messages.into_iter().try_for_each(|message| self.delete(message))
    }

    pub(crate) fn end(&mut self) -> Result<(), Rejection> {
        self.give(&EndSession { state: EndState::Completed, grace: GRACE })
    }

    pub(crate) fn delete_session(&mut self) -> Result<(), Rejection> {
        self.give(&DeleteSession { grace: GRACE })
    }
}

/// A refusal that is tried again twice.
pub(crate) fn refused() -> Verdict {
    let retry = Retry { retries: 2, backoff: Duration::from_secs(1) };
    Verdict::NotAccepted { why: "the runner said 422".to_owned(), retry }
}

/// A text frame.
pub(crate) fn text(words: &str) -> Frame {
    Frame::Text { kind: MessageType::Message, text: words.to_owned(), key: None, delta: false }
}

/// A text frame under a key.
pub(crate) fn keyed(key: &str, words: &str, delta: bool) -> Frame {
    Frame::Text { kind: MessageType::Message, text: words.to_owned(), key: Some(key.to_owned()), delta }
}

/// The last frame of a turn.
pub(crate) fn complete(stop_reason: StopReason) -> Frame {
    let error = (stop_reason == StopReason::Error).then(|| "out of ideas".to_owned());
    Frame::Complete { stop_reason, error }
}

/// Question sets: 0 has one question with options, 1 has two questions, others are one free question each.
pub(crate) fn questions(set: u8) -> ask::Ask {
    let option = |label: &str| OptionInput { label: label.to_owned(), ..OptionInput::default() };
    let deploy = QuestionInput {
        prompt: "Deploy?".to_owned(),
        options: vec![option("yes"), option("no")],
        ..QuestionInput::default()
    };
    let free = |prompt: String| QuestionInput { prompt, ..QuestionInput::default() };
    let questions = match set {
        0 => vec![deploy],
        1 => vec![deploy, free("Why?".to_owned())],
        other => vec![free(format!("What is {other}?"))],
    };
    ask::normalise(AskInput { questions, context: None, context_paragraphs: None })
        .expect("the questions keep the rules")
}

/// An answer to all of the questions, or a skip.
fn response(questions: &[domain::object::Question], skip: bool) -> NormalisedResponse {
    let answers = questions.iter().map(|question| AnswerInput {
        question_id: question.question_id.clone(),
        selected_options: question.options.iter().take(1).map(|option| option.option_id.clone()).collect(),
        custom_text: if question.options.is_empty() { "because".to_owned() } else { String::new() },
    });
    let input = RespondInput {
        answers: if skip { vec![] } else { answers.collect() },
        rejected: skip,
        reject_reason: if skip { "not now".to_owned() } else { String::new() },
    };
    // A bundle without pending questions takes no answer; the claim on it is refused before anything is read of this.
    answer::validate(questions, &input).unwrap_or(NormalisedResponse {
        answers: vec![],
        rejected: skip,
        reject_reason: String::new(),
    })
}
