use super::*;
use crate::object::{AnswerEntry, Choice};
use proptest::prelude::*;

fn questions() -> Vec<Question> {
    let choice = |id: &str, label: &str| Choice {
        option_id: id.to_owned(),
        label: label.to_owned(),
        description: "not told again".to_owned(),
    };
    let question = |id: &str, title: &str, prompt: &str, options: Vec<Choice>| Question {
        question_id: id.to_owned(),
        title: title.to_owned(),
        prompt: prompt.to_owned(),
        options,
        multi_select: true,
    };
    vec![
        question("q1", "Target", "Deploy where?\nPick any.", vec![choice("eu", "Europe"), choice("us", "America")]),
        question("q2", "", "When?", Vec::new()),
        question("q3", "", "Who signs?", vec![choice("me", "I do"), choice("you", "You do")]),
    ]
}

fn answered() -> NormalisedResponse {
    let entry = |id: &str, selected: &[&str], text: &str| AnswerEntry {
        question_id: id.to_owned(),
        selected_options: selected.iter().map(|id| (*id).to_owned()).collect(),
        custom_text: text.to_owned(),
    };
    let answers =
        vec![entry("q1", &["eu", "us"], ""), entry("q2", &[], "Tonight.\n\nGo on from there."), entry("q3", &[], "")];
    NormalisedResponse { answers, rejected: false, reject_reason: String::new() }
}

fn skipped(reason: &str) -> NormalisedResponse {
    NormalisedResponse { answers: Vec::new(), rejected: true, reject_reason: reason.to_owned() }
}

#[test]
fn a_resumed_prompt_tells_what_was_asked_and_answered() {
    let prompt = resumed_prompt(&questions(), &answered(), "Release 7\nis built.", &["Which colour?", "Long\nprompt"]);
    assert_eq!(
        prompt,
        "\
A person has responded to what you asked earlier. The turn in which you asked is over.

The context that you gave:
> Release 7
> is built.

You asked (q1):
> Target
> Deploy where?
> Pick any.
The person chose:
- Europe (eu)
- America (us)

You asked (q2):
> When?
The person wrote:
> Tonight.
>
> Go on from there.

You asked (q3):
> Who signs?
This question got no answer. That is not consent: nobody agreed to anything.

You also asked the following. These questions are closed without an answer; ask again what you still need to know:
- Which colour?
- Long
  prompt

Go on from there."
    );
}

#[test]
fn a_replacement_says_that_it_may_have_been_seen() {
    let prompt = replacement_prompt(&questions()[1..2], &answered(), "");
    assert_eq!(
        prompt,
        "\
A person has responded to what you asked. The response was sent to you before, but your turn ended before you showed \
that you have it. You may have seen it already: check what you have done, and do nothing twice.

You asked (q2):
> When?
The person wrote:
> Tonight.
>
> Go on from there.

Go on from there."
    );
}

#[test]
fn a_skip_is_told_once_with_its_reason() {
    let with_reason = replacement_prompt(&questions(), &skipped("Not my call."), "");
    let skip = "The person skipped all of this without answering. That is not consent: nobody agreed to anything.";
    assert!(with_reason.contains(&format!("> Who signs?\n\n{skip} Their reason:\n> Not my call.\n\nGo on")));
    assert!(!with_reason.contains("got no answer"));
    let without = replacement_prompt(&questions(), &skipped(""), "");
    assert!(without.contains(&format!("{skip}\n\nGo on from there.")));
}

#[test]
fn every_end_of_a_wait_has_its_outcome_and_denies_consent() {
    let ends = [
        (WaitEnd::Skipped, AskOutcome::Skipped),
        (WaitEnd::Cancelled, AskOutcome::Cancelled),
        (WaitEnd::Stopped { stays_open: true }, AskOutcome::Cancelled),
        (WaitEnd::Stopped { stays_open: false }, AskOutcome::Cancelled),
        (WaitEnd::Expired, AskOutcome::Expired),
        (WaitEnd::Superseded, AskOutcome::Superseded),
        (WaitEnd::NoResponse { can_wait_again: true }, AskOutcome::NoResponse),
        (WaitEnd::NoResponse { can_wait_again: false }, AskOutcome::NoResponse),
    ];
    for (end, outcome) in ends {
        assert_eq!(end.outcome(), outcome);
        assert!(end.message().to_lowercase().contains("nobody agreed to anything"), "{end:?}");
        assert!(!end.message().contains("  "), "{end:?}");
        assert_eq!(end.can_wait_again(), end == WaitEnd::NoResponse { can_wait_again: true });
        let stays_open = matches!(end, WaitEnd::Stopped { stays_open: true } | WaitEnd::NoResponse { .. });
        assert_eq!(end.message().contains("stays open"), stays_open, "{end:?}");
        let names_tool = end == WaitEnd::NoResponse { can_wait_again: false };
        assert_eq!(end.message().contains("`collect_answers`"), names_tool, "{end:?}");
    }
}

proptest! {
    #[test]
    fn no_line_of_a_persons_text_passes_for_ours(text in "[a-z\n\r\u{b}\u{c}\u{85}\u{2028}\u{2029}]{1,40}") {
        let response = skipped(&text);
        let prompt = replacement_prompt(&[], &response, "");
        let after = prompt.split_once("Their reason:\n").map(|(_, after)| after.to_owned());
        let quote = after.as_deref().and_then(|after| after.strip_suffix("\n\nGo on from there.")).unwrap_or_default();
        prop_assert!(!quote.is_empty());
        for line in quote.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']) {
            prop_assert!(line.starts_with('>'), "{:?}", line);
        }
    }
}
