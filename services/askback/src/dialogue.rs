//! Answering a bundle on a terminal, question by question. It only reads lines and writes text, so that it can be
//! tested without a terminal.

use crate::output::plain;
use domain::object::{Bundle, BundleQuestion, QuestionStatus};
use std::io::{self, BufRead, Write};
use wire::people::{AnswerInput, Respond};

const HELP: &str = "  numbers choose (1 or 1,3) · 1: text adds words · anything else is your own text (=text if it looks \
                    like a command)\n  empty: no answer · b: back · s: skip all · q: quit";

/// What a person says to one question, or about the dialogue.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    Answer { chosen: Vec<usize>, text: String },
    Empty,
    Back,
    Skip,
    Quit,
}

/// Leads a person through the pending questions. `None` if the person quits or the input ends.
pub(crate) fn run(bundle: &Bundle, input: &mut impl BufRead, out: &mut impl Write) -> io::Result<Option<Respond>> {
    let pending: Vec<&BundleQuestion> =
        bundle.questions.iter().filter(|question| question.status == QuestionStatus::Pending).collect();
    write_head(bundle, out)?;
    let mut answers: Vec<AnswerInput> = pending
        .iter()
        .map(|question| AnswerInput { question_id: question.question_id.clone(), ..AnswerInput::default() })
        .collect();
    let mut at = 0;
    loop {
        let (Some(question), Some(answer)) = (pending.get(at), answers.get_mut(at)) else {
            match confirm(&pending, &answers, input, out)? {
                Line::Empty => return Ok(Some(Respond { answers, ..Respond::default() })),
                Line::Back => at = pending.len().saturating_sub(1),
                Line::Skip => return skip(input, out),
                _ => return Ok(None),
            }
            continue;
        };
        write_question(question, at, pending.len(), answer, out)?;
        match read_line(question, input, out)? {
            Line::Answer { chosen, text } => {
                answer.selected_options = chosen
                    .into_iter()
                    .filter_map(|index| question.options.get(index))
                    .map(|option| option.option_id.clone())
                    .collect();
                answer.custom_text = text;
                at += 1;
            }
            // After a step back, an empty line keeps what was said.
            Line::Empty => at += 1,
            Line::Back => at = at.saturating_sub(1),
            Line::Skip => return skip(input, out),
            Line::Quit => return Ok(None),
        }
    }
}

fn write_head(bundle: &Bundle, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", plain(&bundle.task_title))?;
    if !bundle.context.is_empty() {
        writeln!(out, "\n{}", plain(&bundle.context))?;
    }
    Ok(())
}

fn write_question(
    question: &BundleQuestion,
    at: usize,
    total: usize,
    answer: &AnswerInput,
    out: &mut impl Write,
) -> io::Result<()> {
    let title = if question.title.is_empty() { String::new() } else { format!(" {}", plain(&question.title)) };
    writeln!(out, "\n[{}/{total}]{title}\n{}", at + 1, plain(&question.prompt))?;
    for (index, option) in question.options.iter().enumerate() {
        let mark = if answer.selected_options.contains(&option.option_id) { '*' } else { ' ' };
        let description =
            if option.description.is_empty() { String::new() } else { format!(" - {}", plain(&option.description)) };
        writeln!(out, " {mark}{}) {}{description}", index + 1, plain(&option.label))?;
    }
    if !answer.custom_text.is_empty() {
        writeln!(out, "  so far: {}", plain(&answer.custom_text))?;
    }
    if question.multi_select && !question.options.is_empty() {
        writeln!(out, "  (several may be chosen)")?;
    }
    if at == 0 {
        writeln!(out, "{HELP}")?;
    }
    Ok(())
}

/// Asks until a line can be understood. The end of the input is "quit".
fn read_line(question: &BundleQuestion, input: &mut impl BufRead, out: &mut impl Write) -> io::Result<Line> {
    loop {
        let Some(text) = prompt("> ", input, out)? else { return Ok(Line::Quit) };
        match understand(&text, question.options.len(), question.multi_select) {
            Ok(line) => return Ok(line),
            Err(complaint) => writeln!(out, "  {complaint}")?,
        }
    }
}

fn prompt(words: &str, input: &mut impl BufRead, out: &mut impl Write) -> io::Result<Option<String>> {
    write!(out, "{words}")?;
    out.flush()?;
    let mut line = String::new();
    let read = input.read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim().to_owned()))
}

fn understand(text: &str, options: usize, multi_select: bool) -> Result<Line, String> {
    match text {
        "" => return Ok(Line::Empty),
        "b" => return Ok(Line::Back),
        "s" => return Ok(Line::Skip),
        "q" => return Ok(Line::Quit),
        _ => {}
    }
    if let Some(words) = text.strip_prefix('=') {
        return Ok(Line::Answer { chosen: Vec::new(), text: words.trim().to_owned() });
    }
    let (numbers, words) = text.split_once(':').unwrap_or((text, ""));
    let Some(numbers) = read_numbers(numbers).filter(|_| options > 0) else {
        return Ok(Line::Answer { chosen: Vec::new(), text: text.to_owned() });
    };
    if let Some(number) = numbers.iter().find(|number| !(1..=options).contains(number)) {
        return Err(format!("there is no option {number}; for the number itself as text, write ={number}"));
    }
    if numbers.len() > 1 && !multi_select {
        return Err("only one option may be chosen here".to_owned());
    }
    Ok(Line::Answer { chosen: numbers.iter().map(|number| number - 1).collect(), text: words.trim().to_owned() })
}

/// Numbers with commas or spaces between them, each once; `None` if it is anything else.
fn read_numbers(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for word in text.split([',', ' ']).filter(|word| !word.is_empty()) {
        let number = word.parse().ok()?;
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    (!numbers.is_empty()).then_some(numbers)
}

fn confirm(
    pending: &[&BundleQuestion],
    answers: &[AnswerInput],
    input: &mut impl BufRead,
    out: &mut impl Write,
) -> io::Result<Line> {
    writeln!(out)?;
    for (question, answer) in pending.iter().zip(answers) {
        writeln!(out, "{}: {}", plain(&question.prompt), plain(&summary(question, answer)))?;
    }
    loop {
        let Some(text) = prompt("Send? [Y]es, b: back, s: skip all, q: quit > ", input, out)? else {
            return Ok(Line::Quit);
        };
        match text.to_ascii_lowercase().as_str() {
            "" | "y" | "yes" => return Ok(Line::Empty),
            "b" => return Ok(Line::Back),
            "s" => return Ok(Line::Skip),
            "q" | "n" | "no" => return Ok(Line::Quit),
            _ => {}
        }
    }
}

fn summary(question: &BundleQuestion, answer: &AnswerInput) -> String {
    let mut parts: Vec<&str> = question
        .options
        .iter()
        .filter(|option| answer.selected_options.contains(&option.option_id))
        .map(|option| option.label.as_str())
        .collect();
    if !answer.custom_text.is_empty() {
        parts.push(&answer.custom_text);
    }
    if parts.is_empty() { "(no answer)".to_owned() } else { parts.join(", ") }
}

fn skip(input: &mut impl BufRead, out: &mut impl Write) -> io::Result<Option<Respond>> {
    let reason = prompt("Skip all. Why? (empty: no reason, q: quit) > ", input, out)?;
    Ok(reason.filter(|reason| reason != "q").map(|reject_reason| Respond {
        rejected: true,
        reject_reason,
        answers: Vec::new(),
    }))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    pub(crate) fn bundle() -> Bundle {
        let id = "0190f3c2-0000-7000-8000-000000000001";
        let options = json!([
            { "option_id": "yes", "label": "Yes", "description": "at once" },
            { "option_id": "no", "label": "No", "description": "" }
        ]);
        let question = |id: &str, index: u32, options: &serde_json::Value, multi: bool, status: &str| {
            json!({
                "question_id": id, "index": index, "title": "", "prompt": format!("Prompt {id}?"),
                "options": options, "multi_select": multi, "status": status, "response": null
            })
        };
        let none = json!([]);
        let value = json!({
            "pending_id": id, "workspace_id": id, "task_id": id, "task_title": "Ship it", "session_id": id,
            "turn_id": id, "state": "active_live", "context": "The build is green.",
            "questions": [
                question("q1", 0, &options, false, "pending"), question("q2", 1, &options, true, "pending"),
                question("q3", 2, &none, false, "pending"), question("q4", 3, &none, false, "deleted")
            ],
            "agent_disconnected": false, "created_at": "2026-11-30T08:00:00Z", "deadline_at": null,
            "recorded": null, "superseded_by": null
        });
        serde_json::from_value(value).expect("the bundle has the contract's shape")
    }

    /// Runs the dialogue on `lines`; what was sent, and what was shown.
    fn talk(lines: &str) -> (Option<Respond>, String) {
        let mut shown = Vec::new();
        let sent = run(&bundle(), &mut lines.as_bytes(), &mut shown).expect("memory can be read and written");
        (sent, String::from_utf8(shown).expect("only text is shown"))
    }

    fn entry(id: &str, options: &[&str], text: &str) -> AnswerInput {
        let selected_options = options.iter().map(|option| (*option).to_owned()).collect();
        AnswerInput { question_id: id.into(), selected_options, custom_text: text.into() }
    }

    #[test]
    fn every_pending_question_is_asked_and_answered() {
        let (sent, shown) = talk("1\n1, 2: but slowly\n42\n\n");
        let answers =
            vec![entry("q1", &["yes"], ""), entry("q2", &["yes", "no"], "but slowly"), entry("q3", &[], "42")];
        assert_eq!(sent, Some(Respond { answers, ..Respond::default() }));
        assert!(shown.contains("The build is green.") && shown.contains("[1/3]") && shown.contains("1) Yes - at once"));
        assert!(!shown.contains("Prompt q4?"), "a deleted question is not asked");
        assert!(shown.contains("Prompt q2?: Yes, No, but slowly"), "{shown}");
    }

    #[test]
    fn an_empty_line_is_no_answer_and_own_words_need_no_option() {
        let (sent, _) = talk("ask me tomorrow: early\n\n=s\ny\n");
        let answers = vec![entry("q1", &[], "ask me tomorrow: early"), entry("q2", &[], ""), entry("q3", &[], "s")];
        assert_eq!(sent, Some(Respond { answers, ..Respond::default() }));
    }

    #[test]
    fn what_cannot_be_chosen_is_asked_again() {
        let (sent, shown) = talk("1,2\n3\n2\n\n\n\n");
        assert!(shown.contains("only one option may be chosen here") && shown.contains("there is no option 3"));
        assert_eq!(sent.map(|sent| sent.answers[0].clone()), Some(entry("q1", &["no"], "")));
    }

    #[test]
    fn back_returns_and_keeps_what_was_said() {
        let (sent, shown) = talk("1\nb\n\n2\nwords\nb\n\n\n");
        let answers = vec![entry("q1", &["yes"], ""), entry("q2", &["no"], ""), entry("q3", &[], "words")];
        assert_eq!(sent, Some(Respond { answers, ..Respond::default() }));
        assert!(shown.contains(" *1) Yes") && shown.contains("so far: words"));
    }

    #[test]
    fn skip_takes_a_reason() {
        let (sent, _) = talk("1\ns\nnot today\n");
        assert_eq!(sent, Some(Respond { rejected: true, reject_reason: "not today".into(), answers: vec![] }));
    }

    #[test]
    fn quitting_and_the_end_of_the_input_send_nothing() {
        for lines in ["q\n", "", "1\n1\n", "1\n1\nx\nq\n", "s\nq\n", "s\n"] {
            let (sent, _) = talk(lines);
            assert_eq!(sent, None, "{lines:?}");
        }
    }
}
