//! What an agent asks: the rules a request must keep, and its normal form.
//!
//! The normal form is what is stored, shown and hashed. It has every default filled in, so that nothing later has to
//! know what a request may leave out, and it is a fixed point: asking a normal form again gives the same bundle.

use crate::field_error::{Faults, FieldError};
use crate::object::{Choice, Question};
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write;

#[cfg(test)]
mod tests;

/// Most questions in one bundle.
pub const QUESTIONS_MAX: usize = 10;
/// Fewest options of a question that has any: a single option is no choice.
pub const OPTIONS_MIN: usize = 2;
/// Most options of a question.
pub const OPTIONS_MAX: usize = 12;
/// Longest prompt, in characters.
pub const PROMPT_MAX_CHARS: usize = 4_000;
/// Longest title of a question, in characters.
pub const TITLE_MAX_CHARS: usize = 80;
/// Longest label of an option, in characters.
pub const LABEL_MAX_CHARS: usize = 200;
/// Longest description of an option, in characters.
pub const DESCRIPTION_MAX_CHARS: usize = 1_000;
/// Largest context of a bundle with its paragraphs and the blank lines between them, in bytes.
pub const CONTEXT_MAX_BYTES: usize = 16 * 1024;
/// Longest id of a question or an option, in characters.
pub const ID_MAX_CHARS: usize = 64;
/// Longest `request_id`, `call_id` or frame `key`, in characters.
pub const KEY_MAX_CHARS: usize = 200;

/// How a `request_id` begins that is a client's own name for one tool call, and not the agent's name for what it asks.
/// The first character is none that [`check_key`] lets through, so that no agent can give such a name itself.
const CALL_KEY: &str = "§mcp:";

const PARAGRAPH_BREAK: &str = "\n\n";

/// An ask as the agent sends it. For its optional fields `null` and absent are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskInput {
    /// What is asked, in the order in which people see it.
    pub questions: Vec<QuestionInput>,
    /// What a person should know before answering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// More of the context; a blank line stands between it and what is before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_paragraphs: Option<Vec<String>>,
}

/// One question of an ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct QuestionInput {
    /// The question itself.
    pub prompt: String,
    /// A short heading; none if absent or blank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its id in the bundle; `q1`, `q2`, … by its place if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question_id: Option<String>,
    /// What may be chosen; without any, only own words answer it.
    #[serde(default, deserialize_with = "null_as_absent", skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<OptionInput>,
    /// Whether more than one option may be chosen; `false` if absent.
    #[serde(default, deserialize_with = "null_as_absent")]
    pub multi_select: bool,
}

/// One option of a question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OptionInput {
    /// What a person chooses by.
    pub label: String,
    /// What choosing it means; none if absent or blank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its id in the question; `<question_id>_opt1`, … by its place if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<String>,
}

/// Agents write their arguments themselves and often spell an absent field as `null`.
fn null_as_absent<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(value: D) -> Result<T, D::Error> {
    Option::deserialize(value).map(Option::unwrap_or_default)
}

/// An ask in its normal form.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The questions, every default filled in, texts without surrounding white space.
    pub questions: Vec<Question>,
    /// Context and its paragraphs as one text; empty if there is none.
    pub context: String,
    /// SHA-256 of questions and context, in lower-case hex: asks with the same hash are the same ask. The context
    /// counts, because "Deploy?" about another service is another question.
    pub content_hash: String,
}

/// Brings an ask into its normal form.
///
/// Lengths are counted as sent, before trimming.
///
/// # Errors
/// Every rule the ask breaks, in the order of its fields, never only the first.
pub fn normalise(input: AskInput) -> Result<Ask, Vec<FieldError>> {
    let mut faults = Faults::default();
    match input.questions.len() {
        0 => faults.add("/questions", "must hold at least one question"),
        count if count > QUESTIONS_MAX => {
            faults.add("/questions", format!("must hold at most {QUESTIONS_MAX} questions, holds {count}"));
        }
        _ => {}
    }
    let mut seen = BTreeSet::new();
    let questions: Vec<Question> = input
        .questions
        .into_iter()
        .enumerate()
        .map(|(index, question)| normal_question(index, question, &mut seen, &mut faults))
        .collect();
    let context = normal_context(input.context, input.context_paragraphs, &mut faults);
    let content_hash = content_hash(&questions, &context);
    faults.or(Ask { questions, context, content_hash })
}

/// Checks a name that a caller chose for something of its own: a `request_id`, a `call_id` or the `key` of a frame.
/// `pointer` says where it stands.
///
/// # Errors
/// It is not 1 to 200 characters of printable ASCII (space to tilde).
pub fn check_key(pointer: &str, key: &str) -> Result<(), FieldError> {
    if !key.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(FieldError::new(pointer, "must be printable ASCII only"));
    }
    match key.len() {
        0 => Err(FieldError::new(pointer, "must not be empty")),
        count if count > KEY_MAX_CHARS => {
            Err(FieldError::new(pointer, format!("must be at most {KEY_MAX_CHARS} characters, has {count}")))
        }
        _ => Ok(()),
    }
}

/// The `request_id` of an ask whose client names each of its tool calls: `client` is the kind of client, `name` what it
/// calls this one. `None` if that cannot be a key.
///
/// Such a key finds the bundle of the same call again. Unlike a `request_id` it does not decide alone: an agent that asks
/// the same once more makes another call, and some clients use a name twice.
#[must_use]
pub fn call_key(client: &str, name: &str) -> Option<String> {
    let named = format!("{client}:{name}");
    check_key("", &named).is_ok().then(|| format!("{CALL_KEY}{named}"))
}

/// Whether a `request_id` is a [`call_key`].
#[must_use]
pub fn is_call_key(request_id: &str) -> bool {
    request_id.starts_with(CALL_KEY)
}

fn normal_question(index: usize, input: QuestionInput, seen: &mut BTreeSet<String>, faults: &mut Faults) -> Question {
    let at = format!("/questions/{index}");
    let by_place = format!("q{}", index + 1);
    let question_id = normal_id(&format!("{at}/question_id"), input.question_id, by_place.clone(), seen, faults);
    // A refused id would make each default option id wrong too: one fault is enough.
    let option_prefix = if is_id(&question_id) { &question_id } else { &by_place };

    let title = input.title.unwrap_or_default();
    faults.check_text(&format!("{at}/title"), &title, TITLE_MAX_CHARS);
    let prompt = required_text(&format!("{at}/prompt"), &input.prompt, PROMPT_MAX_CHARS, faults);

    check_option_count(&format!("{at}/options"), input.options.len(), faults);
    let mut seen_options = BTreeSet::new();
    let options = input
        .options
        .into_iter()
        .enumerate()
        .map(|(place, option)| {
            let at = format!("{at}/options/{place}");
            let by_place = format!("{option_prefix}_opt{}", place + 1);
            normal_option(&at, option, by_place, &mut seen_options, faults)
        })
        .collect();
    Question { question_id, title: title.trim().to_owned(), prompt, options, multi_select: input.multi_select }
}

fn check_option_count(pointer: &str, count: usize, faults: &mut Faults) {
    if count > OPTIONS_MAX {
        faults.add(pointer, format!("must hold at most {OPTIONS_MAX} options, holds {count}"));
    } else if (1..OPTIONS_MIN).contains(&count) {
        faults.add(pointer, format!("must hold no option or at least {OPTIONS_MIN}, holds {count}"));
    }
}

fn normal_option(
    at: &str,
    input: OptionInput,
    by_place: String,
    seen: &mut BTreeSet<String>,
    faults: &mut Faults,
) -> Choice {
    let option_id = normal_id(&format!("{at}/option_id"), input.option_id, by_place, seen, faults);
    let label = required_text(&format!("{at}/label"), &input.label, LABEL_MAX_CHARS, faults);
    let description = input.description.unwrap_or_default();
    faults.check_text(&format!("{at}/description"), &description, DESCRIPTION_MAX_CHARS);
    Choice { option_id, label, description: description.trim().to_owned() }
}

fn required_text(pointer: &str, text: &str, max: usize, faults: &mut Faults) -> String {
    faults.check_text(pointer, text, max);
    let trimmed = text.trim();
    if trimmed.is_empty() {
        faults.add(pointer, "must not be blank");
    }
    trimmed.to_owned()
}

/// The given id, or the default of its place. Both must be well-formed and not stand in `seen`.
fn normal_id(
    pointer: &str,
    given: Option<String>,
    by_place: String,
    seen: &mut BTreeSet<String>,
    faults: &mut Faults,
) -> String {
    let is_default = given.is_none();
    let id = given.unwrap_or(by_place);
    if !is_id(&id) {
        faults.add(
            pointer,
            if is_default {
                format!("the default id of this place would be longer than {ID_MAX_CHARS} characters: give one")
            } else {
                format!("must be 1 to {ID_MAX_CHARS} characters of a-z, 0-9 and _")
            },
        );
    } else if seen.contains(&id) {
        let which = if is_default { "the default id of this place" } else { "the id" };
        faults.add(pointer, format!("{which}, \"{id}\", is used already"));
    } else {
        seen.insert(id.clone());
    }
    id
}

fn is_id(id: &str) -> bool {
    (1..=ID_MAX_CHARS).contains(&id.len()) && id.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

fn normal_context(context: Option<String>, paragraphs: Option<Vec<String>>, faults: &mut Faults) -> String {
    let context = context.unwrap_or_default();
    let paragraphs = paragraphs.unwrap_or_default();
    faults.check_no_nul("/context", &context);
    for (index, paragraph) in paragraphs.iter().enumerate() {
        faults.check_no_nul(&format!("/context_paragraphs/{index}"), paragraph);
    }
    let bytes = context.len() + paragraphs.iter().map(|text| PARAGRAPH_BREAK.len() + text.len()).sum::<usize>();
    if context.len() > CONTEXT_MAX_BYTES {
        faults.add("/context", format!("must be at most {CONTEXT_MAX_BYTES} bytes, has {}", context.len()));
    } else if bytes > CONTEXT_MAX_BYTES {
        faults.add(
            "/context_paragraphs",
            format!("must be at most {CONTEXT_MAX_BYTES} bytes together with the context, has {bytes}"),
        );
    }
    let parts: Vec<&str> =
        std::iter::once(&context).chain(&paragraphs).map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
    parts.join(PARAGRAPH_BREAK)
}

/// The hash is stored and compared across versions of the program, so the bytes it is made of are spelt out here,
/// apart from the public shapes: compact JSON, keys in alphabetical order, nothing left out.
fn content_hash(questions: &[Question], context: &str) -> String {
    #[derive(Serialize)]
    struct CanonicalAsk<'a> {
        context: &'a str,
        questions: Vec<CanonicalQuestion<'a>>,
    }
    #[derive(Serialize)]
    struct CanonicalQuestion<'a> {
        multi_select: bool,
        options: Vec<CanonicalOption<'a>>,
        prompt: &'a str,
        question_id: &'a str,
        title: &'a str,
    }
    #[derive(Serialize)]
    struct CanonicalOption<'a> {
        description: &'a str,
        label: &'a str,
        option_id: &'a str,
    }

    let questions = questions.iter().map(|question| CanonicalQuestion {
        multi_select: question.multi_select,
        options: question
            .options
            .iter()
            .map(|option| CanonicalOption {
                description: &option.description,
                label: &option.label,
                option_id: &option.option_id,
            })
            .collect(),
        prompt: &question.prompt,
        question_id: &question.question_id,
        title: &question.title,
    });
    let ask = CanonicalAsk { context, questions: questions.collect() };
    // Writing JSON to memory fails only for maps whose keys are no strings; there is no map here.
    let json = serde_json::to_vec(&ask).expect("structs of strings, lists and booleans are JSON");
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(&json) {
        // Writing to a String cannot fail.
        write!(hex, "{byte:02x}").expect("a String takes every write");
    }
    hex
}
