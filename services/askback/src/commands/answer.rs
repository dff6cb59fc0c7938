//! `askback answer [PENDING_ID]`: by flags, or by a dialogue on a terminal.

use super::{fresh_key, inbox};
use crate::dialogue;
use crate::failure::Failure;
use crate::output::{Output, plain};
use clap::Args;
use domain::ids::PendingId;
use domain::object::{Bundle, BundleQuestion, Delivery, QuestionStatus, RespondOutcome, ResponseOutcome};
use std::io::{self, IsTerminal as _};
use std::time::Duration;
use wire::Client;
use wire::client::{Retry, retrying};
use wire::people::{AnswerInput, Respond};

/// How long a respond call may be repeated under its key.
const RESPOND_FOR: Duration = Duration::from_secs(30);

/// Answer or skip a question.
#[derive(Clone, Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The bundle of questions [default: the oldest open one].
    pending_id: Option<PendingId>,
    /// Choose an option, by its id or its label; with several questions QUESTION_ID=OPTION where it is not clear.
    #[arg(long, value_name = "ID")]
    option: Vec<String>,
    /// Your own words; with several questions QUESTION_ID=WORDS.
    #[arg(long)]
    text: Vec<String>,
    /// Skip: the agent goes on without an answer.
    #[arg(long, conflicts_with_all = ["option", "text"])]
    skip: bool,
    /// Why.
    #[arg(long, requires = "skip")]
    reason: Option<String>,
}

pub(crate) async fn run(client: &Client, args: &AnswerArgs, out: &mut Output) -> Result<(), Failure> {
    let by_flags = args.skip || !args.option.is_empty() || !args.text.is_empty();
    if !by_flags && !io::stdin().is_terminal() {
        return Err(Failure::usage("nothing says what to answer, and stdin is no terminal to ask on")
            .with_hint("give --option, --text or --skip"));
    }
    let bundle = match args.pending_id {
        Some(id) => client.clarification(id).await?,
        None => inbox::oldest(client).await?.ok_or_else(|| Failure::own("nothing_open", "no question is open"))?,
    };
    let body = if by_flags {
        from_flags(&bundle, args)?
    } else if bundle.questions.iter().any(|question| question.status == QuestionStatus::Pending) {
        // The dialogue speaks on stderr, so that stdout stays the result.
        let said = dialogue::run(&bundle, &mut io::stdin().lock(), &mut io::stderr().lock())?;
        said.ok_or(Failure::Interrupted)?
    } else {
        return Err(Failure::own("nothing_open", format!("no question of {} is open", bundle.pending_id)));
    };
    let client = client.with_idempotency_key(fresh_key());
    let retry = Retry { total: RESPOND_FOR, ..Retry::default() };
    let outcome = retrying(retry, || client.respond(bundle.pending_id, &body)).await?;
    out.show(&outcome, |out, outcome| out.text(&words(outcome)))?;
    Ok(())
}

fn words(outcome: &RespondOutcome) -> String {
    let done = match outcome.outcome {
        ResponseOutcome::Answered => "answered",
        ResponseOutcome::Skipped => "skipped",
    };
    match (outcome.delivery, outcome.successor_turn_id) {
        (Delivery::Live, _) => format!("{done}: the waiting agent has it"),
        (Delivery::Resumed, Some(turn)) => format!("{done}: turn {turn} carries it to the agent"),
        (Delivery::Resumed, None) => format!("{done}: a new turn carries it to the agent"),
        (Delivery::Recorded, _) => format!("{done}: recorded"),
        (Delivery::Unconfirmed, _) => format!("{done}: it is not yet known whether the agent has it"),
    }
}

/// The response that the flags mean. An entry is made for each pending question; one that no flag names says "no
/// answer to this one".
fn from_flags(bundle: &Bundle, args: &AnswerArgs) -> Result<Respond, Failure> {
    if args.skip {
        let reject_reason = args.reason.clone().unwrap_or_default();
        return Ok(Respond { rejected: true, reject_reason, answers: Vec::new() });
    }
    let mut pending: Vec<&BundleQuestion> =
        bundle.questions.iter().filter(|question| question.status == QuestionStatus::Pending).collect();
    if pending.is_empty() {
        // Somebody was first. The answer is sent as it was meant: the server says what was recorded instead.
        pending = bundle.questions.iter().collect();
    }
    let mut answers: Vec<AnswerInput> = pending
        .iter()
        .map(|question| AnswerInput { question_id: question.question_id.clone(), ..AnswerInput::default() })
        .collect();
    for flag in &args.option {
        let (at, option_id) = find_option(&pending, flag)?;
        if let Some(answer) = answers.get_mut(at) {
            answer.selected_options.push(option_id);
        }
    }
    for flag in &args.text {
        let (at, text) = find_question(&pending, flag)?;
        if let Some(answer) = answers.get_mut(at) {
            answer.custom_text = text;
        }
    }
    Ok(Respond { answers, ..Respond::default() })
}

/// The question and option that `--option` means.
fn find_option(pending: &[&BundleQuestion], flag: &str) -> Result<(usize, String), Failure> {
    let (question_id, wanted) = match flag.split_once('=') {
        Some((id, wanted)) if pending.iter().any(|question| question.question_id == id) => (Some(id), wanted),
        _ => (None, flag),
    };
    let asked = pending
        .iter()
        .enumerate()
        .filter(|(_, question)| question_id.is_none_or(|id| id == question.question_id))
        .flat_map(|(at, question)| question.options.iter().map(move |option| (at, option)));
    let by_id: Vec<_> = asked.clone().filter(|(_, option)| option.option_id == wanted).collect();
    let found = if by_id.is_empty() { asked.filter(|(_, option)| option.label == wanted).collect() } else { by_id };
    match found.as_slice() {
        [(at, option)] => Ok((*at, option.option_id.clone())),
        [] => {
            Err(Failure::usage(format!("no open question has the option {:?}", plain(flag)))
                .with_hint(choices(pending)))
        }
        _ => Err(Failure::usage(format!("the option {:?} stands in several questions", plain(flag)))
            .with_hint("write --option QUESTION_ID=OPTION")),
    }
}

/// The question that `--text` means, and the words.
fn find_question(pending: &[&BundleQuestion], flag: &str) -> Result<(usize, String), Failure> {
    if let [_] = pending {
        return Ok((0, flag.to_owned()));
    }
    flag.split_once('=')
        .and_then(|(id, text)| {
            let at = pending.iter().position(|question| question.question_id == id)?;
            Some((at, text.to_owned()))
        })
        .ok_or_else(|| {
            let ids: Vec<&str> = pending.iter().map(|question| question.question_id.as_str()).collect();
            Failure::usage("it is not clear which question the text answers")
                .with_hint(format!("write --text QUESTION_ID=WORDS; open are: {}", ids.join(", ")))
        })
}

fn choices(pending: &[&BundleQuestion]) -> String {
    let ids: Vec<String> = pending
        .iter()
        .flat_map(|question| {
            question.options.iter().map(|option| format!("{}={}", question.question_id, option.option_id))
        })
        .collect();
    if ids.is_empty() {
        "the open questions take only --text".to_owned()
    } else {
        format!("there are: {}", ids.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogue::tests::bundle;

    fn args(options: &[&str], texts: &[&str]) -> AnswerArgs {
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        AnswerArgs { pending_id: None, option: own(options), text: own(texts), skip: false, reason: None }
    }

    /// A bundle with only its first question.
    fn single() -> Bundle {
        let mut bundle = bundle();
        bundle.questions.truncate(1);
        bundle
    }

    #[test]
    fn one_question_needs_no_prefix() {
        let body = from_flags(&single(), &args(&["yes"], &["q1=not a prefix"])).expect("the flags fit");
        assert_eq!(body.answers[0].selected_options, ["yes"]);
        assert_eq!(body.answers[0].custom_text, "q1=not a prefix");
        let body = from_flags(&single(), &args(&["No"], &[])).expect("a label is as good as an id");
        assert_eq!(body.answers[0].selected_options, ["no"]);
    }

    #[test]
    fn several_questions_are_told_apart_and_each_gets_an_entry() {
        let flags = args(&["q1=no", "q2=yes", "q2=no"], &["q3=soon"]);
        let body = from_flags(&bundle(), &flags).expect("the flags fit");
        let said: Vec<(&str, usize, &str)> = body
            .answers
            .iter()
            .map(|entry| (entry.question_id.as_str(), entry.selected_options.len(), entry.custom_text.as_str()))
            .collect();
        assert_eq!(said, [("q1", 1, ""), ("q2", 2, ""), ("q3", 0, "soon")]);
    }

    #[test]
    fn what_is_not_clear_is_a_usage_error() {
        for flags in [args(&["yes"], &[]), args(&["maybe"], &[]), args(&[], &["soon"]), args(&["q3=yes"], &[])] {
            let failure = from_flags(&bundle(), &flags).expect_err("it is not clear what is meant");
            assert_eq!(failure.code(), "usage", "{flags:?}");
        }
    }

    #[test]
    fn an_answer_that_comes_too_late_is_still_sent() {
        let mut late = single();
        late.questions[0].status = QuestionStatus::Answered;
        let body = from_flags(&late, &args(&["yes"], &[])).expect("the server judges it, not the command");
        assert_eq!(body.answers[0].selected_options, ["yes"]);
    }

    #[test]
    fn a_skip_carries_its_reason_and_no_answers() {
        let flags = AnswerArgs { skip: true, reason: Some("later".into()), ..args(&[], &[]) };
        let body = from_flags(&bundle(), &flags).expect("a skip always fits");
        assert_eq!(body, Respond { rejected: true, reject_reason: "later".into(), answers: vec![] });
    }
}
