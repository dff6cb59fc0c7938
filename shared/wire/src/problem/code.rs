//! The codes: what each is, in one table.

use http::StatusCode;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

/// Every code an HTTP surface can give. Its words are fixed; more may be added, none renamed.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    EnumIter,
    IntoStaticStr,
)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Code {
    /// The request is malformed.
    InvalidRequest,
    /// The answer does not fit the bundle.
    InvalidAnswer,
    /// No valid token.
    Unauthenticated,
    /// The person may read, but not do this.
    Forbidden,
    /// Unknown, or not yours.
    NotFound,
    /// The path does not take this method.
    MethodNotAllowed,
    /// The session has ended.
    SessionEnded,
    /// A newer turn has made the bundle history.
    Superseded,
    /// The bundle expired with its session.
    Expired,
    /// The bundle was cancelled.
    Cancelled,
    /// Somebody has answered.
    AlreadyAnswered,
    /// Somebody has skipped.
    AlreadySkipped,
    /// Somebody's response is being delivered.
    DeliveryInProgress,
    /// A dispatch is under way; its outcome decides.
    ReservationPending,
    /// The first request with this key is still running.
    RequestInProgress,
    /// No agent waits for the bundle.
    NoLiveWaiter,
    /// A newer execution or turn has taken over.
    StaleGeneration,
    /// Frames are missing before these.
    FrameGap,
    /// The tool call is over.
    CallNotOpen,
    /// The tool call waits for no permission.
    NotAwaitingPermission,
    /// The queued message was taken by a turn.
    AlreadyTaken,
    /// The turn's dispatch is not in doubt.
    NotAmbiguous,
    /// The session has turns.
    SessionNotEmpty,
    /// The event cursor is older than the log.
    PositionGone,
    /// The event cursor is of a lost epoch.
    PositionUnknown,
    /// The body is too large.
    TooLarge,
    /// The body is not `application/json`.
    UnsupportedMediaType,
    /// The key was used with another body.
    IdempotencyKeyReused,
    /// The request id was used with other questions.
    RequestIdReused,
    /// The session's queue is full.
    QueueFull,
    /// Too many requests.
    RateLimited,
    /// The answer was accepted, its publication failed.
    AcceptedNotPublished,
    /// It is unknown whether the agent has the answer.
    DispatchAmbiguous,
    /// A fault of the server.
    Internal,
    /// The answer did not reach the agent and was given back.
    DeliveryFailed,
    /// The agent did not take the answer and it was given back.
    ResumeNotAccepted,
    /// Something the server needs is away.
    TemporarilyUnavailable,
    /// The answer could not be given back.
    RecoveryFailed,
}

impl Code {
    /// The code as it stands in the document.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The stable URI of the problem type.
    #[must_use]
    pub fn type_uri(self) -> String {
        format!("urn:askback:problem:{}", self.as_str())
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest | Self::InvalidAnswer => StatusCode::BAD_REQUEST,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::SessionEnded
            | Self::Superseded
            | Self::Expired
            | Self::Cancelled
            | Self::AlreadyAnswered
            | Self::AlreadySkipped
            | Self::DeliveryInProgress
            | Self::ReservationPending
            | Self::RequestInProgress
            | Self::NoLiveWaiter
            | Self::StaleGeneration
            | Self::FrameGap
            | Self::CallNotOpen
            | Self::NotAwaitingPermission
            | Self::AlreadyTaken
            | Self::NotAmbiguous
            | Self::SessionNotEmpty
            | Self::PositionUnknown => StatusCode::CONFLICT,
            Self::PositionGone => StatusCode::GONE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::IdempotencyKeyReused | Self::RequestIdReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::QueueFull | Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::AcceptedNotPublished | Self::DispatchAmbiguous | Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::DeliveryFailed | Self::ResumeNotAccepted | Self::TemporarilyUnavailable | Self::RecoveryFailed => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    /// Whether the same request may be tried again and can then succeed by itself.
    #[must_use]
    pub const fn retryable(self) -> bool {
        matches!(
            self,
            Self::DeliveryInProgress
                | Self::ReservationPending
                | Self::RequestInProgress
                | Self::QueueFull
                | Self::RateLimited
                | Self::DeliveryFailed
                | Self::ResumeNotAccepted
                | Self::TemporarilyUnavailable
        )
    }

    /// Whether `Retry-After` goes with it: on 429 and 503.
    #[must_use]
    pub const fn has_retry_after(self) -> bool {
        matches!(self.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
    }

    /// Whether the document always has a list of `errors`.
    #[must_use]
    pub const fn has_errors(self) -> bool {
        matches!(self, Self::InvalidRequest | Self::InvalidAnswer)
    }
}
