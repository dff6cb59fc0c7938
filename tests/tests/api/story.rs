//! The order in which the examples make one story.

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Whoever the operation is for: the admin, the agent, a service.
    Usual,
    /// The viewer whose token one of the examples makes.
    Viewer,
    /// Somebody with a token that is none.
    Stranger,
}

/// What happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A request.
    Send(&'static str, &'static str, Caller),
    /// A query that says so a moment after what it tells of.
    SendUntil(&'static str, &'static str),
    /// A prompt is handed to an agent, and nobody learns whether it arrived.
    Doubt,
    /// A request that is held until the next one is answered.
    Hold((&'static str, &'static str), (&'static str, &'static str)),
}

const fn send(operation: &'static str, example: &'static str) -> Step {
    Step::Send(operation, example, Caller::Usual)
}

/// Every example.
pub(crate) const STORY: &[Step] = &[
    send("livez", "live"),
    Step::SendUntil("readyz", "ready"),
    send("version", "version"),
    send("create_workspace", "without_a_name"),
    send("create_workspace", "created"),
    send("list_workspaces", "listed"),
    Step::Send("list_workspaces", "with_a_token_that_is_none", Caller::Stranger),
    send("put_member", "put"),
    send("create_token", "created"),
    send("list_tokens", "of_a_workspace"),
    Step::Send("create_task", "as_a_viewer", Caller::Viewer),
    send("create_task", "created"),
    send("list_tasks", "of_a_workspace"),
    send("list_tasks", "too_many"),
    send("show_task", "shown"),
    send("show_task", "unknown"),
    Step::SendUntil("list_events", "of_a_task"),
    send("list_events", "of_another_history"),
    send("stream_events", "of_another_session"),
    send("patch_task", "described"),
    send("create_session", "created"),
    Step::SendUntil("list_sessions", "listed"),
    send("show_session", "shown"),
    send("attach", "new"),
    send("mcp", "ping"),
    send("mcp", "notification"),
    send("mcp_of_an_execution", "ping"),
    send("resume_mcp", "without_an_event"),
    send("resume_mcp_of_an_execution", "without_an_event"),
    send("next_prompt", "prompt"),
    send("ack_prompt", "acknowledged"),
    send("next_prompt", "none_yet"),
    send("send_frames", "a_message"),
    send("send_frames", "one_is_missing"),
    send("ask", "at_once"),
    send("ask", "other_questions"),
    send("list_clarifications", "open"),
    send("show_clarification", "open"),
    send("respond", "without_an_entry"),
    send("wake", "woken"),
    send("deliver", "not_the_owner"),
    send("resume", "unknown_claim"),
    send("cancel_waiter", "not_the_owner"),
    Step::Hold(("poll", "held_until_answered"), ("respond", "answered")),
    send("respond", "too_late"),
    send("list_messages", "listed"),
    send("send_message", "sent"),
    send("patch_queued_message", "edited"),
    send("withdraw_queued_message", "taken_back"),
    send("release_queue", "nothing_held"),
    Step::Hold(("ask", "held_until_cancelled"), ("cancel", "cancelled")),
    send("send_frames", "the_end"),
    send("list_turns", "completed"),
    send("show_queue", "empty"),
    send("create_agent_token", "beside_the_others"),
    send("delete_token", "agent_token"),
    send("delete_token", "unknown"),
    send("delete_message", "deleted"),
    send("end_session", "completed"),
    send("create_agent_token", "of_an_ended_session"),
    send("delete_session", "deleted"),
    Step::Doubt,
    send("list_unresolved_dispatches", "one"),
    send("settle_turn", "accepted"),
    send("settle_turn", "twice"),
    send("delete_task", "deleted"),
    send("delete_member", "deleted"),
];

impl Step {
    /// The examples of the step.
    pub(crate) fn examples(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Send(operation, example, _) | Self::SendUntil(operation, example) => vec![(operation, example)],
            Self::Hold(held, ends) => vec![held, ends],
            Self::Doubt => Vec::new(),
        }
    }
}
