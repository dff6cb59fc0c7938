//! The endpoints, one a file.

mod cancel_clarification;
mod create_agent_token;
mod create_session;
mod create_task;
mod create_token;
mod create_workspace;
mod delete_member;
mod delete_message;
mod delete_session;
mod delete_task;
mod delete_token;
mod end_session;
mod later;
mod patch_queued;
mod patch_task;
mod put_member;
mod queue;
mod release_queue;
mod respond_clarification;
mod send_message;
mod sessions;
mod settle_turn;
mod tasks;
mod withdraw_queued;
mod workspaces;

use crate::app::App;
use axum::Router;
use axum::routing::{delete, patch, post, put};

/// The commands of people. Health, fallbacks and everything else that all services share is added by
/// [`kit::serve::finish`].
pub fn router(app: App) -> Router {
    Router::new()
        .route("/api/v1/workspaces", post(create_workspace::handle))
        .route("/api/v1/workspaces/{id}/members/{subject}", put(put_member::handle).delete(delete_member::handle))
        .route("/api/v1/tokens", post(create_token::handle))
        .route("/api/v1/tokens/{id}", delete(delete_token::handle))
        .route("/api/v1/tasks", post(create_task::handle))
        .route("/api/v1/tasks/{id}", patch(patch_task::handle).delete(delete_task::handle))
        .route("/api/v1/tasks/{id}/task-sessions", post(create_session::handle))
        .route("/api/v1/task-sessions/{id}", delete(delete_session::handle))
        .route("/api/v1/task-sessions/{id}/agent-tokens", post(create_agent_token::handle))
        .route("/api/v1/task-sessions/{id}/end", post(end_session::handle))
        .route("/api/v1/task-sessions/{id}/messages", post(send_message::handle))
        .route(
            "/api/v1/task-sessions/{id}/queue/{queued_id}",
            patch(patch_queued::handle).delete(withdraw_queued::handle),
        )
        .route("/api/v1/task-sessions/{id}/queue/release", post(release_queue::handle))
        .route("/api/v1/task-sessions/{id}/messages/{message_id}", delete(delete_message::handle))
        .route("/api/v1/clarification/{pending_id}/respond", post(respond_clarification::handle))
        .route("/api/v1/clarification/{pending_id}/cancel", post(cancel_clarification::handle))
        .route("/api/v1/turns/{turn_id}/settle", post(settle_turn::handle))
        .merge(later::routes())
        .with_state(app)
}

/// What the API's description says of these endpoints.
#[cfg(feature = "openapi")]
#[must_use]
pub fn docs() -> Vec<wire::openapi::Endpoint> {
    let mut docs = vec![
        create_workspace::doc(),
        put_member::doc(),
        delete_member::doc(),
        create_token::doc(),
        delete_token::doc(),
        create_task::doc(),
        patch_task::doc(),
        delete_task::doc(),
        create_session::doc(),
        delete_session::doc(),
        create_agent_token::doc(),
        end_session::doc(),
        delete_message::doc(),
        send_message::doc(),
        patch_queued::doc(),
        withdraw_queued::doc(),
        release_queue::doc(),
        respond_clarification::doc(),
        cancel_clarification::doc(),
        settle_turn::doc(),
    ];
    docs.extend(later::docs());
    docs
}
