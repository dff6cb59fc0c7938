//! A session owner with a journal. What it says it has done, it has done with the domain's own commands.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use domain::ids::{Epoch, PendingId, SessionId};
use domain::object::EndState;
use domain::session::decide::{Cancel, Confirm, ConfirmReply, EndSession, LoseWaiter};
use domain::session::{Command, Rejection};
use kit::idgen::IdGen;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use store::{IdempotencyKey, Idempotent, InstanceConnection, InstanceRole, Options, Store, TransactError};
use tokio::net::TcpListener;
use tokio::sync::watch;
use wire::internal;

const LEASE: Duration = Duration::from_secs(600);

/// What the owner does with the next delivery or cancel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Confirms, and says so.
    Confirm,
    /// Confirms, and says nothing.
    ConfirmInSilence,
    /// Another delivery holds the waiter.
    Busy,
    /// Says that it is not the owner.
    NotOwner,
    /// Says nothing, for as long as the caller listens.
    Silence,
    /// Breaks off.
    Fail,
    /// The waiter is gone and its grace over; says so.
    NoWaiter(PendingId),
    /// Says that nobody waits, though somebody does.
    NoWaiterFalsely,
    /// Somebody ends the session; the delivery is lost.
    SessionEnds,
    /// Cancels, and says so.
    Cancel,
    /// Cancels, and breaks off.
    CancelAndFail,
}

/// A call that was received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Call {
    Deliver(internal::Deliver),
    Cancel(internal::Cancel),
    Wake(SessionId),
}

#[derive(Clone)]
pub(crate) struct Owner {
    pub(crate) epoch: Epoch,
    store: Store,
    grace: Duration,
    script: Arc<Mutex<VecDeque<Act>>>,
    journal: watch::Sender<Vec<Call>>,
    /// Keeps the lease's connection.
    _lease: Arc<InstanceConnection>,
}

impl Owner {
    pub(crate) async fn start(store: &Store, name: &str, grace: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let mut lease = store.instance_connection();
        let epoch = lease.register(name, InstanceRole::Orchestrator, &url, LEASE).await.expect("it can register");
        let owner = Self {
            epoch,
            store: store.clone(),
            grace,
            script: Arc::default(),
            journal: watch::Sender::new(Vec::new()),
            _lease: Arc::new(lease),
        };
        let router = Router::new()
            .route("/internal/v1/deliver", post(deliver))
            .route("/internal/v1/cancel", post(cancel))
            .route("/internal/v1/wake", post(wake))
            .with_state(owner.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        owner
    }

    /// What it does with the next calls, one after the other; after them it confirms.
    pub(crate) fn will(&self, acts: &[Act]) {
        self.script.lock().extend(acts.iter().copied());
    }

    /// Drops what was left of the script.
    pub(crate) fn forget(&self) {
        self.script.lock().clear();
    }

    pub(crate) fn journal(&self) -> Vec<Call> {
        self.journal.borrow().clone()
    }

    pub(crate) fn deliveries(&self) -> usize {
        self.journal().iter().filter(|call| matches!(call, Call::Deliver(_))).count()
    }

    /// Waits until a call was received that `is` it.
    pub(crate) async fn received(&self, is: impl Fn(&Call) -> bool) {
        let mut journal = self.journal.subscribe();
        let seen = journal.wait_for(|calls| calls.iter().any(&is));
        tokio::time::timeout(Duration::from_secs(20), seen).await.expect("in time").expect("the owner lives");
    }

    pub(crate) async fn woken(&self, session: SessionId) {
        self.received(|call| *call == Call::Wake(session)).await;
    }

    fn note(&self, call: Call) {
        self.journal.send_modify(|calls| calls.push(call));
    }

    fn next(&self) -> Option<Act> {
        self.script.lock().pop_front()
    }

    pub(crate) async fn give<C: Command<Reply: Send> + Sync>(&self, session: SessionId, command: &C) -> C::Reply {
        let given = self.store.transact(session, command, Options::new(IdGen.ids())).await;
        given.expect("the owner's command is accepted").reply
    }

    /// The agent's connection breaks, and it has no time to come back.
    pub(crate) async fn lose_waiter(&self, session: SessionId, pending: PendingId) {
        let lose = LoseWaiter { pending_id: pending, epoch: self.epoch, grace: Duration::ZERO };
        self.give(session, &lose).await;
    }

    async fn confirm(&self, call: &internal::Deliver) -> Response {
        let confirm = Confirm { claim_id: call.claim_id, epoch: self.epoch, grace: self.grace };
        match self.give(call.session_id, &confirm).await {
            ConfirmReply::Confirmed { .. } => Json(json!({ "reply": "confirmed" })).into_response(),
            ConfirmReply::Lost(why) => Json(json!({ "reply": "lost", "why": why.to_string() })).into_response(),
        }
    }
}

async fn deliver(State(owner): State<Owner>, Json(call): Json<internal::Deliver>) -> Response {
    owner.note(Call::Deliver(call));
    match owner.next().unwrap_or(Act::Confirm) {
        Act::Confirm => owner.confirm(&call).await,
        Act::ConfirmInSilence => {
            owner.confirm(&call).await;
            std::future::pending().await
        }
        Act::Busy => Json(json!({ "reply": "busy" })).into_response(),
        Act::NotOwner => Json(json!({ "reply": "not_owner", "epoch": null })).into_response(),
        Act::Silence => std::future::pending().await,
        Act::NoWaiter(pending) => {
            owner.lose_waiter(call.session_id, pending).await;
            Json(json!({ "reply": "no_waiter" })).into_response()
        }
        Act::NoWaiterFalsely => Json(json!({ "reply": "no_waiter" })).into_response(),
        Act::SessionEnds => {
            let end = EndSession { state: EndState::Cancelled, grace: owner.grace };
            owner.give(call.session_id, &end).await;
            owner.confirm(&call).await
        }
        Act::Fail | Act::Cancel | Act::CancelAndFail => StatusCode::BAD_GATEWAY.into_response(),
    }
}

async fn cancel(State(owner): State<Owner>, Json(call): Json<internal::Cancel>) -> Response {
    owner.note(Call::Cancel(call.clone()));
    let act = owner.next().unwrap_or(Act::Cancel);
    match act {
        Act::Busy => return Json(json!({ "reply": "busy" })).into_response(),
        Act::NotOwner => return Json(json!({ "reply": "not_owner" })).into_response(),
        Act::Cancel | Act::CancelAndFail => {}
        _ => return StatusCode::BAD_GATEWAY.into_response(),
    }
    let command = Cancel { pending_id: call.pending_id, epoch: owner.epoch, grace: owner.grace };
    let key = call.idempotency.map(|named| {
        let internal::CommandKey { principal, method, path, key, body_hash } = named;
        IdempotencyKey { principal, method, path, key, body_hash }
    });
    let idempotent = key.map(|key| Idempotent { key, subject: |()| json!({}) });
    let options = Options { idempotent, ..Options::new(IdGen.ids()) };
    let given = owner.store.transact(call.session_id, &command, options).await;
    if matches!(given, Err(TransactError::Rejected(Rejection::NotActive { .. }))) {
        return Json(json!({ "reply": "not_active" })).into_response();
    }
    given.expect("the owner's command is accepted");
    if matches!(act, Act::CancelAndFail) {
        StatusCode::BAD_GATEWAY.into_response()
    } else {
        Json(json!({ "reply": "cancelled" })).into_response()
    }
}

async fn wake(State(owner): State<Owner>, Json(call): Json<internal::Wake>) -> StatusCode {
    owner.note(Call::Wake(call.session_id));
    StatusCode::NO_CONTENT
}
