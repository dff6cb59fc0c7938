//! What an agent reads: the prompt that carries an answer to it in a new turn, and what the end of a wait means when
//! there is no answer. Plain words, because the reader is a language model that has only these words to go by.

use crate::answer::NormalisedResponse;
use crate::object::{AskOutcome, Question};

#[cfg(test)]
mod tests;

const NOT_CONSENT: &str = "That is not consent: nobody agreed to anything.";

/// The prompt of the turn that carries the response to a detached bundle.
///
/// `questions` are the bundle's questions in their order; one without an entry in `response` is told as unanswered.
/// `others_superseded` names (by title or prompt) the questions of other bundles that this answer closes.
#[must_use]
pub fn resumed_prompt(
    questions: &[Question],
    response: &NormalisedResponse,
    context: &str,
    others_superseded: &[&str],
) -> String {
    let mut text = Paragraphs::default();
    text.add("A person has responded to what you asked earlier. The turn in which you asked is over.");
    tell_response(&mut text, questions, response, context);
    if !others_superseded.is_empty() {
        let list: Vec<String> = others_superseded.iter().map(|other| prefixed(other, "- ", "  ")).collect();
        let heading = "You also asked the following. These questions are closed without an answer; ask again what you \
                       still need to know:";
        text.add(format!("{heading}\n{}", list.join("\n")));
    }
    text.add("Go on from there.");
    text.joined()
}

/// `prompt`, preceded by one that was never taken and whose turn it replaces: what a person sent must not be lost
/// because an answer came in between.
#[must_use]
pub fn with_untaken(prompt: String, untaken: Option<&str>) -> String {
    match untaken {
        None => prompt,
        Some(untaken) => format!("{untaken}\n\n---\n\n{prompt}"),
    }
}

/// The prompt that carries a delivered response again, after its turn was closed before the agent showed that it has
/// it. The agent may have seen the response, and acted on it, already.
#[must_use]
pub fn replacement_prompt(questions: &[Question], response: &NormalisedResponse, context: &str) -> String {
    let mut text = Paragraphs::default();
    text.add(
        "A person has responded to what you asked. The response was sent to you before, but your turn ended before \
         you showed that you have it. You may have seen it already: check what you have done, and do nothing twice.",
    );
    tell_response(&mut text, questions, response, context);
    text.add("Go on from there.");
    text.joined()
}

/// How an agent's wait ends without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// A person skipped the bundle.
    Skipped,
    /// The bundle was cancelled, or its last pending question deleted.
    Cancelled,
    /// The turn was stopped or interrupted.
    Stopped {
        /// Whether its questions were kept and can still be answered.
        stays_open: bool,
    },
    /// The session was ended or deleted.
    Expired,
    /// A newer turn was accepted.
    Superseded,
    /// Nobody answered in time.
    NoResponse {
        /// Whether asking the same again goes on with the same wait; otherwise the turn is closed.
        can_wait_again: bool,
    },
}

impl WaitEnd {
    /// The outcome as the agent gets it.
    #[must_use]
    pub const fn outcome(self) -> AskOutcome {
        match self {
            Self::Skipped => AskOutcome::Skipped,
            Self::Cancelled | Self::Stopped { .. } => AskOutcome::Cancelled,
            Self::Expired => AskOutcome::Expired,
            Self::Superseded => AskOutcome::Superseded,
            Self::NoResponse { .. } => AskOutcome::NoResponse,
        }
    }

    /// Whether asking the same again goes on with the same wait.
    #[must_use]
    pub const fn can_wait_again(self) -> bool {
        matches!(self, Self::NoResponse { can_wait_again: true })
    }

    /// What it means in plain words: the `message` of the agent's result. Each makes plain that nobody agreed to
    /// anything, since a model takes silence for consent if it is left to guess.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Skipped => {
                "The person skipped this without answering. That is not consent: nobody agreed to anything. `reason` \
                 holds their own words, if they gave any. Go on without the answer, and do nothing that needs it."
            }
            Self::Cancelled => {
                "The question was cancelled before anybody answered it. Nobody agreed to anything. Do not wait for it; \
                 ask again if you still need to know."
            }
            Self::Stopped { stays_open: true } => {
                "Your turn was stopped before anybody answered. Nobody agreed to anything. Stop what you are doing. \
                 The question stays open: if a person answers it later, the answer comes to you in a new prompt."
            }
            Self::Stopped { stays_open: false } => {
                "Your turn was stopped and the question was cancelled before anybody answered it. Nobody agreed to \
                 anything. Stop what you are doing."
            }
            Self::Expired => {
                "The session has ended, so nobody can answer this any more. Nobody agreed to anything. Stop what you \
                 are doing."
            }
            Self::Superseded => {
                "A newer turn of this session has begun, so nobody can answer this any more. Nobody agreed to \
                 anything. Stop what you are doing here and follow the newer prompt."
            }
            Self::NoResponse { can_wait_again: true } => {
                "Nobody has answered yet. Silence is not consent: nobody agreed to anything. The question stays open. \
                 Ask exactly the same again now to go on waiting; it will not be shown twice."
            }
            Self::NoResponse { can_wait_again: false } => {
                "Nobody has answered. Silence is not consent: nobody agreed to anything, so do nothing that needs the \
                 answer. The question stays open, but asking it again does not wait for it. If a person answers \
                 later, the answer comes to you in a new prompt, or through the tool `collect_answers` if you have it."
            }
        }
    }
}

fn tell_response(text: &mut Paragraphs, questions: &[Question], response: &NormalisedResponse, context: &str) {
    if !context.is_empty() {
        text.add(format!("The context that you gave:\n{}", quoted(context)));
    }
    for question in questions {
        text.add(tell_question(question, response));
    }
    if response.rejected {
        let mut skip = format!("The person skipped all of this without answering. {NOT_CONSENT}");
        if !response.reject_reason.is_empty() {
            skip.push_str(" Their reason:\n");
            skip.push_str(&quoted(&response.reject_reason));
        }
        text.add(skip);
    }
}

fn tell_question(question: &Question, response: &NormalisedResponse) -> String {
    let mut lines = vec![format!("You asked ({}):", question.question_id)];
    if !question.title.is_empty() {
        lines.push(quoted(&question.title));
    }
    lines.push(quoted(&question.prompt));
    if response.rejected {
        return lines.join("\n");
    }
    let Some(answer) = response.answer_to(&question.question_id) else {
        lines.push(format!("This question got no answer. {NOT_CONSENT}"));
        return lines.join("\n");
    };
    let chosen: Vec<String> = question
        .options
        .iter()
        .filter(|option| answer.selected_options.contains(&option.option_id))
        .map(|option| prefixed(&format!("{} ({})", option.label, option.option_id), "- ", "  "))
        .collect();
    if !chosen.is_empty() {
        lines.push(format!("The person chose:\n{}", chosen.join("\n")));
    }
    if !answer.custom_text.is_empty() {
        lines.push(format!("The person wrote:\n{}", quoted(&answer.custom_text)));
    }
    lines.join("\n")
}

/// A text of somebody else's, each line marked, so that it cannot be mistaken for our own words.
fn quoted(text: &str) -> String {
    prefixed(text, "> ", "> ")
}

fn prefixed(text: &str, first: &str, others: &str) -> String {
    let mut prefix = first;
    let mut lines = Vec::new();
    for line in text.replace("\r\n", "\n").split(is_line_break) {
        lines.push(if line.is_empty() { prefix.trim_end().to_owned() } else { format!("{prefix}{line}") });
        prefix = others;
    }
    lines.join("\n")
}

/// Everything that some reader takes for the end of a line.
const fn is_line_break(sign: char) -> bool {
    matches!(sign, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Paragraphs with a blank line between them.
#[derive(Default)]
struct Paragraphs(Vec<String>);

impl Paragraphs {
    fn add(&mut self, paragraph: impl Into<String>) {
        self.0.push(paragraph.into());
    }

    fn joined(&self) -> String {
        self.0.join("\n\n")
    }
}
