//! The check of a response before anything is claimed.

use super::Respond;
use crate::app::App;
use access::{Person, not_found, unavailable};
use domain::answer::{self, NormalisedResponse};
use domain::ids::{MessageId, SessionId};
use domain::object::{Question, QuestionStatus, Role};
use domain::session::{Rejection, View, decide};
use store::OpenQuestions;
use wire::problem::{Code, Problem};

/// A response that fits the bundle as it was read.
pub(super) struct Checked {
    pub(super) session: SessionId,
    /// The pending questions it was checked against.
    pub(super) message_ids: Vec<MessageId>,
    pub(super) response: NormalisedResponse,
}

/// Checks that the person may respond, that the bundle is active, and that the response fits it. A bundle that is
/// plainly not active is refused here, without waiting for the session's lock.
pub(super) async fn check(app: &App, person: &Person, respond: &Respond) -> Result<Checked, Problem> {
    let open = app.store.open_questions(&person.scope(), respond.pending).await.map_err(unavailable)?;
    let Some(OpenQuestions { session, workspace, questions }) = open else {
        return check_whole(app, person, respond).await;
    };
    person.require(workspace, Role::Member)?;
    fit(session, questions, respond)
}

/// The same by all rows that bear on it: they say why a bundle cannot be answered.
async fn check_whole(app: &App, person: &Person, respond: &Respond) -> Result<Checked, Problem> {
    let view = app.store.view_of_bundle(&person.scope(), respond.pending).await.map_err(unavailable)?;
    let view = view.ok_or_else(not_found)?;
    person.require(view.session.workspace_id, Role::Member)?;
    active(&view, respond)?;
    let questions = view
        .questions(respond.pending)
        .into_iter()
        .filter(|(_, part)| part.question_status == QuestionStatus::Pending)
        .map(|(message, part)| (message.id, part.question.clone()))
        .collect();
    fit(view.session.id, questions, respond)
}

fn fit(session: SessionId, questions: Vec<(MessageId, Question)>, respond: &Respond) -> Result<Checked, Problem> {
    let (message_ids, questions): (Vec<MessageId>, Vec<Question>) = questions.into_iter().unzip();
    let response = answer::validate(&questions, &respond.input).map_err(|errors| {
        Problem::new(Code::InvalidAnswer, "the answer does not fit the bundle").with_errors(errors)
    })?;
    Ok(Checked { session, message_ids, response })
}

fn active(view: &View, respond: &Respond) -> Result<(), Problem> {
    let bundle = view.bundles.get(&respond.pending).ok_or_else(not_found)?;
    if view.session.ended_state.is_some() || !view.bundle_state(bundle, view.now).is_active() {
        return Err(decide::inactive(view, bundle).into());
    }
    if !view.is_answerable(bundle, view.now) {
        return Err(Rejection::ReservationPending.into());
    }
    Ok(())
}
