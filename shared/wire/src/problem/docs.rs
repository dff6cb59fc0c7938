//! What each code means and what to do about it: the text of `docs/errors.md`.

use super::Code;
use std::fmt::Write as _;
use strum::IntoEnumIterator;

/// The documentation of one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeDocs {
    /// A short title, the same for every occurrence.
    pub title: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What the caller does.
    pub caller: &'static str,
    /// What the operator does.
    pub operator: &'static str,
}

const fn docs(title: &'static str, meaning: &'static str, caller: &'static str, operator: &'static str) -> CodeDocs {
    CodeDocs { title, meaning, caller, operator }
}

const NOTHING: &str = "Nothing.";
const READ_RECORDED: &str = "Read `state` and `recorded`: they say what was recorded, by whom and when. Do not retry.";

impl Code {
    /// A short title, the same for every occurrence.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.docs().title
    }

    /// What the code means and what to do about it.
    #[must_use]
    pub const fn docs(self) -> CodeDocs {
        match self {
            Self::Unauthenticated | Self::Forbidden | Self::NotFound | Self::MethodNotAllowed => self.access_docs(),
            Self::InvalidRequest
            | Self::InvalidAnswer
            | Self::TooLarge
            | Self::UnsupportedMediaType
            | Self::IdempotencyKeyReused
            | Self::RequestIdReused
            | Self::QueueFull
            | Self::RateLimited => self.request_docs(),
            Self::SessionEnded
            | Self::Superseded
            | Self::Expired
            | Self::Cancelled
            | Self::AlreadyAnswered
            | Self::AlreadySkipped
            | Self::DeliveryInProgress
            | Self::ReservationPending
            | Self::RequestInProgress => self.response_docs(),
            Self::NoLiveWaiter
            | Self::StaleGeneration
            | Self::FrameGap
            | Self::CallNotOpen
            | Self::NotAwaitingPermission
            | Self::AlreadyTaken
            | Self::NotAmbiguous
            | Self::SessionNotEmpty
            | Self::PositionGone
            | Self::PositionUnknown => self.conflict_docs(),
            _ => self.server_docs(),
        }
    }

    /// The caller, the place or the method is at fault.
    const fn access_docs(self) -> CodeDocs {
        match self {
            Self::Unauthenticated => docs(
                "No valid token",
                "The `Authorization` header is missing, or its token is unknown, revoked or past its end.",
                "Send `Authorization: Bearer <token>` with a token that is good.",
                "If many clients see it at once: compare clocks, and the identity provider's keys and audience.",
            ),
            Self::Forbidden => docs(
                "Not allowed",
                "The token may read this, but its role is too low for what was asked.",
                "Use a token with the role that the detail names.",
                "Raise the member's role if the person should be able to do this.",
            ),
            Self::NotFound => docs(
                "Not found",
                "Nothing with this id, or it belongs to a workspace the caller is not in: the two look the same on \
                 purpose. Also a path that this service does not serve; the detail then names the one that does.",
                "Check the id, the token's workspace and the service's address.",
                "If a whole path is not found: check the proxy's routing by method and path.",
            ),
            _ => docs(
                "Method not allowed",
                "The path exists, but not with this method.",
                "Use a method that the `Allow` header lists.",
                "Check the proxy's routing: reads go to the projection, writes to the respond API.",
            ),
        }
    }

    /// The request itself is at fault.
    const fn request_docs(self) -> CodeDocs {
        match self {
            Self::InvalidAnswer => docs(
                "The answer does not fit the questions",
                "An entry names an unknown question or option, one is missing or stands twice, several options were \
                 chosen where one may be, a text is too long, or there is neither an answer nor a skip. Nothing was \
                 written.",
                "Correct what `errors` points at and send it again.",
                NOTHING,
            ),
            Self::TooLarge => docs(
                "The body is too large",
                "The body is longer than this path takes (256 KiB, where not said otherwise).",
                "Send less.",
                NOTHING,
            ),
            Self::UnsupportedMediaType => docs(
                "Unsupported media type",
                "A body must be sent as `application/json`.",
                "Set `Content-Type: application/json`.",
                NOTHING,
            ),
            Self::IdempotencyKeyReused => docs(
                "The idempotency key was used for another request",
                "The same principal has used this `Idempotency-Key` on this path with another body. Nothing was \
                 written.",
                "Use a new key for a new command; repeat a command with the body it had.",
                NOTHING,
            ),
            Self::RequestIdReused => docs(
                "The request id was used for other questions",
                "This session has asked other questions under this `request_id`.",
                "Use a new `request_id` for new questions.",
                NOTHING,
            ),
            Self::QueueFull => docs(
                "The queue is full",
                "The session has as many waiting messages as it may have. Nothing was written.",
                "Wait until the agent has taken some, or withdraw some.",
                "See whether the session's queue is held.",
            ),
            Self::RateLimited => docs(
                "Too many requests",
                "The caller has more requests or streams open than it may.",
                "Wait for `Retry-After` and go slower.",
                "See which token it is; raise its limit if the use is sound.",
            ),
            _ => docs(
                "The request is malformed",
                "It is not JSON, or a field is missing, unknown, of the wrong type or beyond its limit, or an id, \
                 cursor or parameter does not parse. Nothing was written.",
                "Correct what `errors` points at and send it again.",
                NOTHING,
            ),
        }
    }

    /// A response to a bundle that is not active, or not yet.
    const fn response_docs(self) -> CodeDocs {
        match self {
            Self::SessionEnded => docs(
                "The session has ended",
                "An ended session takes no more commands; its open questions have expired.",
                "Read `recorded`, if the command was a response. Do not retry.",
                NOTHING,
            ),
            Self::Superseded => docs(
                "A newer turn has made this question history",
                "The agent has gone on: a newer turn was accepted, and an answer could not reach the turn that asked.",
                "Send a message instead, if the agent should still know.",
                NOTHING,
            ),
            Self::Expired => {
                docs("The question has expired", "Its session ended before anybody answered.", READ_RECORDED, NOTHING)
            }
            Self::Cancelled => docs(
                "The question was cancelled",
                "Somebody told the waiting agent that nobody will answer.",
                READ_RECORDED,
                NOTHING,
            ),
            Self::AlreadyAnswered => docs(
                "Already answered",
                "Another response won. A question has one winning response, for ever.",
                READ_RECORDED,
                NOTHING,
            ),
            Self::AlreadySkipped => docs(
                "Already skipped",
                "Somebody has skipped the question. A question has one winning response, for ever.",
                READ_RECORDED,
                NOTHING,
            ),
            Self::DeliveryInProgress => docs(
                "A response is being delivered",
                "Another response has claimed the question and is on its way to the agent. It may still be given back.",
                "Try again after a moment: it is then either answered or open.",
                "If it lasts longer than a minute: reconciliation does not run; see the orchestrators' readiness.",
            ),
            Self::ReservationPending => docs(
                "A dispatch is under way",
                "A prompt is being handed to the agent, and its outcome decides whether this command still applies.",
                "Try again after a moment.",
                "If it lasts longer than a minute: reconciliation does not run; see the orchestrators' readiness.",
            ),
            _ => docs(
                "The first request with this key is still running",
                "The same command, with the same `Idempotency-Key`, was not decided within 5 s.",
                "Try again with the same key and body.",
                NOTHING,
            ),
        }
    }

    /// Something else stands where the command expected its object.
    const fn conflict_docs(self) -> CodeDocs {
        match self {
            Self::NoLiveWaiter => docs(
                "No agent waits",
                "`cancel` reaches a waiting agent only, and none waits for this question.",
                "Skip the question instead.",
                NOTHING,
            ),
            Self::StaleGeneration => docs(
                "A newer execution or turn has taken over",
                "The call names an execution or a generation that is no longer the newest.",
                "Stop what this turn does and fetch the next prompt; attach again if there is none.",
                "If an agent sees it all the time: two processes share one session.",
            ),
            Self::FrameGap => docs(
                "Frames are missing",
                "The first frame's number is not the one after the last stored.",
                "Send again from `expected_seq`.",
                NOTHING,
            ),
            Self::CallNotOpen => docs(
                "The tool call is over",
                "The call has another result already, or its turn was closed.",
                "Drop the result.",
                NOTHING,
            ),
            Self::NotAwaitingPermission => docs(
                "The tool call waits for no permission",
                "Somebody has decided, or the call's turn was closed.",
                "Read the call's status.",
                NOTHING,
            ),
            Self::AlreadyTaken => docs(
                "The message was taken",
                "A turn carries the message, or is about to: it can no longer be changed or withdrawn.",
                "Send another message, or stop the turn.",
                NOTHING,
            ),
            Self::NotAmbiguous => docs(
                "The dispatch is not in doubt",
                "Only a turn of which it is unknown whether the agent has its prompt can be settled.",
                "Read the turn: the agent's own sign, another person or the session's end has settled it. A turn that is \
                 being handed over right now settles itself.",
                NOTHING,
            ),
            Self::SessionNotEmpty => docs(
                "The session has turns",
                "A history can be imported only into a session without turns.",
                "Create a new session and import there.",
                NOTHING,
            ),
            Self::PositionGone => docs(
                "The cursor is older than the log",
                "Events before the oldest kept one are gone.",
                "Read the present state (`/api/v1/boot`) and go on from its position.",
                "Keep events longer if readers are away longer.",
            ),
            _ => docs(
                "The cursor is of a lost epoch",
                "The database was restored or failed over, and the log the cursor points into is not this one.",
                "Read the present state (`/api/v1/boot`) and go on from its position.",
                NOTHING,
            ),
        }
    }

    /// The server is at fault.
    const fn server_docs(self) -> CodeDocs {
        match self {
            Self::AcceptedNotPublished => docs(
                "Accepted, but not yet published",
                "The agent has accepted the answer, but writing that down failed. The answer stays; the server goes \
                 on trying to publish its turn.",
                "Do not send it again. Read the bundle: its `recorded` says when it is resumed.",
                "Look at the database first; `askback doctor` lists what is unpublished.",
            ),
            Self::DispatchAmbiguous => docs(
                "It is unknown whether the agent has the answer",
                "The call to the agent broke at a point where it may have been received. The answer stays and is \
                 never sent again by itself.",
                "Do not send it again. Wait for the agent's next sign, or have an operator settle the turn.",
                "Find it with `askback turn unresolved`, look at the agent, then `askback turn settle` as accepted or not \
                 accepted.",
            ),
            Self::DeliveryFailed => docs(
                "The answer did not reach the agent",
                "The agent's side did not confirm in time. The question was given back and is open again.",
                "Try again after `Retry-After`.",
                "If it repeats: see whether the session's owner is alive and reachable from the respond API.",
            ),
            Self::ResumeNotAccepted => docs(
                "The agent did not take the answer",
                "Nobody waited, and a new turn with the answer was not accepted. The question was given back and is \
                 open again.",
                "Try again after `Retry-After`.",
                "If it repeats: see the agent's runtime and the session's error.",
            ),
            Self::TemporarilyUnavailable => docs(
                "Temporarily unavailable",
                "The database or an orchestrator is away, or a transaction could not get its turn. Nothing was \
                 decided.",
                "Try again after `Retry-After`, with the same `Idempotency-Key`.",
                "See `/readyz` of the services, and the database.",
            ),
            Self::RecoveryFailed => docs(
                "The answer could not be given back",
                "Its delivery failed and so did giving the question back. Reconciliation will settle it within a \
                 minute.",
                "Read the bundle before anything else; then decide.",
                "Look at the database; `askback doctor` lists claims that are stuck.",
            ),
            _ => docs(
                "Internal error",
                "A fault of the server. What was decided before it stays.",
                "Read the present state before you try again.",
                "Find the request's id in the log; it is a bug.",
            ),
        }
    }
}

/// The whole of `docs/errors.md`.
#[must_use]
pub fn render() -> String {
    let mut page = String::from(
        "# Errors\n\n\
         <!-- Generated from the code: `cargo xtask docs` -->\n\n\
         Every error is a problem document (RFC 9457, `application/problem+json`) with `type`, `title`, `status`, \
         `code`, `detail` and `retryable`; 429 and 503 also carry `Retry-After`. `retryable: true` means that the same \
         request may be sent again and can then succeed by itself. `detail` is for people and may change; `code` does \
         not.\n\n\
         Responses to a question that is not active also carry `state` and `recorded`: the response that won, with \
         its actor and time, or `null` while it is still being delivered. `frame_gap` carries `expected_seq`. \
         `invalid_request` and `invalid_answer` carry `errors`, each with a JSON pointer and a detail.\n\n\
         | status | code | retryable | title |\n| --- | --- | --- | --- |\n",
    );
    let mut codes: Vec<Code> = Code::iter().collect();
    codes.sort_by_key(|code| code.status().as_u16());
    for code in &codes {
        let retryable = if code.retryable() { "yes" } else { "no" };
        let status = code.status().as_u16();
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| {status} | [`{code}`](#{code}) | {retryable} | {} |", code.title());
    }
    for code in codes {
        let docs = code.docs();
        let _ = write!(
            page,
            "\n## {code}\n\n{} (`{}`)\n\n* *Meaning:* {}\n* *Caller:* {}\n* *Operator:* {}\n",
            docs.title,
            code.status().as_u16(),
            docs.meaning,
            docs.caller,
            docs.operator
        );
    }
    page
}
