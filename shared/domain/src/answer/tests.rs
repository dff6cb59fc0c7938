use super::*;
use crate::object::{Actor, Choice};
use crate::time::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

fn question(id: &str, options: usize, multi_select: bool) -> Question {
    let options = (1..=options).map(|place| Choice {
        option_id: format!("{id}_opt{place}"),
        label: format!("choice {place}"),
        description: String::new(),
    });
    Question {
        question_id: id.to_owned(),
        title: String::new(),
        prompt: "Go?".to_owned(),
        options: options.collect(),
        multi_select,
    }
}

/// `q1` takes one of two options, `q2` several of three, `q3` own words only.
fn pending() -> Vec<Question> {
    vec![question("q1", 2, false), question("q2", 3, true), question("q3", 0, false)]
}

fn respond(input: Value) -> Result<NormalisedResponse, Vec<FieldError>> {
    validate(&pending(), &serde_json::from_value(input).expect("the input has the shape of a response"))
}

fn again(response: &NormalisedResponse) -> RespondInput {
    let answer = |entry: &AnswerEntry| AnswerInput {
        question_id: entry.question_id.clone(),
        selected_options: entry.selected_options.clone(),
        custom_text: entry.custom_text.clone(),
    };
    RespondInput {
        answers: response.answers.iter().map(answer).collect(),
        rejected: response.rejected,
        reject_reason: response.reject_reason.clone(),
    }
}

#[test]
fn the_normal_form_has_question_order_option_order_and_trimmed_texts() {
    let response = respond(json!({
        "answers": [
            { "question_id": "q3", "custom_text": "  because\n" },
            { "question_id": "q2", "selected_options": ["q2_opt3", "q2_opt1", "q2_opt3"] },
            { "question_id": "q1", "custom_text": " \t" },
        ],
        "reject_reason": "not said",
    }))
    .expect("every rule is kept");
    assert_eq!(
        serde_json::to_value(&response.answers).expect("answers are JSON"),
        json!([
            { "question_id": "q1", "selected_options": [], "custom_text": "" },
            { "question_id": "q2", "selected_options": ["q2_opt1", "q2_opt3"], "custom_text": "" },
            { "question_id": "q3", "selected_options": [], "custom_text": "because" },
        ])
    );
    assert_eq!((response.rejected, response.reject_reason.as_str()), (false, ""));
    assert_eq!(response.outcome(), ResponseOutcome::Answered);
    assert_eq!(response.answer_to("q1"), None);
    assert_eq!(response.answer_to("q3").map(|entry| entry.custom_text.as_str()), Some("because"));
    assert_eq!(response.answer_to("q9"), None);
}

#[test]
fn an_option_named_twice_is_one_option_and_own_words_may_stand_beside_it() {
    let response = respond(json!({ "answers": [
        { "question_id": "q1", "selected_options": ["q1_opt2", "q1_opt2"], "custom_text": "but slowly" },
        { "question_id": "q2" },
        { "question_id": "q3" },
    ] }))
    .expect("every rule is kept");
    assert_eq!(response.answers[0].selected_options, ["q1_opt2"]);
    assert_eq!(response.answers[0].custom_text, "but slowly");
}

#[test]
fn a_skip_has_no_answers_and_keeps_its_reason() {
    for answers in [json!({}), json!({ "answers": [] })] {
        let mut input = json!({ "rejected": true, "reject_reason": " not now " });
        input.as_object_mut().expect("it is an object").extend(answers.as_object().expect("it is one").clone());
        let response = respond(input).expect("every rule is kept");
        assert_eq!(response.outcome(), ResponseOutcome::Skipped);
        assert_eq!((response.answers.as_slice(), response.reject_reason.as_str()), (&[][..], "not now"));
    }
}

#[test]
fn null_and_unknown_fields_are_no_response() {
    for refused in [
        json!({ "answers": null, "rejected": true }),
        json!({ "rejected": null }),
        json!({ "rejected": true, "reject_reason": null }),
        json!({ "rejected": true, "colour": 1 }),
        json!({ "answers": [{ "question_id": null }] }),
        json!({ "answers": [{ "selected_options": [] }] }),
        json!({ "answers": [{ "question_id": "q1", "selected_options": null }] }),
        json!({ "answers": [{ "question_id": "q1", "selected_options": [null] }] }),
        json!({ "answers": [{ "question_id": "q1", "custom_text": null }] }),
        json!({ "answers": [{ "question_id": "q1", "colour": 1 }] }),
    ] {
        assert!(serde_json::from_value::<RespondInput>(refused.clone()).is_err(), "{refused}");
    }
}

#[test]
fn every_rule_has_a_pointer_and_words_of_its_own() {
    let with = |first: Value| json!({ "answers": [first, { "question_id": "q2" }, { "question_id": "q3" }] });
    let nul_rule = "must not contain the NUL character (U+0000)";
    let rows = [
        (json!({}), "", "must hold `answers`, or `rejected: true` to skip"),
        (json!({ "answers": [] }), "", "must hold `answers`, or `rejected: true` to skip"),
        (
            json!({ "answers": [{ "question_id": "q1" }], "rejected": true }),
            "/answers",
            "must be empty or absent when `rejected` is true",
        ),
        (
            json!({ "answers": [{ "question_id": "q1" }, { "question_id": "q3" }] }),
            "/answers",
            "has no entry for the question \"q2\"",
        ),
        (
            json!({ "answers": [{ "question_id": "q1" }, { "question_id": "q2" }, { "question_id": "q3" },
                                { "question_id": "q4" }] }),
            "/answers/3/question_id",
            "is not the id of a pending question of this bundle",
        ),
        (
            json!({ "answers": [{ "question_id": "q1" }, { "question_id": "q2" }, { "question_id": "q3" },
                                { "question_id": "q1" }] }),
            "/answers/3/question_id",
            "is a second entry for the question \"q1\"",
        ),
        (
            with(json!({ "question_id": "q1", "selected_options": ["q1_opt1", "q2_opt1"] })),
            "/answers/0/selected_options/1",
            "is not the id of an option of this question",
        ),
        (
            with(json!({ "question_id": "q1", "selected_options": ["q1_opt1", "q1_opt2"] })),
            "/answers/0/selected_options",
            "must hold at most one option: the question does not take several",
        ),
        (
            with(json!({ "question_id": "q1", "custom_text": format!("{} ", "ä".repeat(2_000)) })),
            "/answers/0/custom_text",
            "must be at most 2000 characters, has 2001",
        ),
        (with(json!({ "question_id": "q1", "custom_text": "a\0" })), "/answers/0/custom_text", nul_rule),
        (
            json!({ "rejected": true, "reject_reason": " ".repeat(2_001) }),
            "/reject_reason",
            "must be at most 2000 characters, has 2001",
        ),
        (json!({ "rejected": true, "reject_reason": "\0" }), "/reject_reason", nul_rule),
    ];
    for (input, pointer, detail) in rows {
        assert_eq!(respond(input.clone()), Err(vec![FieldError::new(pointer, detail)]), "{input}");
    }
}

#[test]
fn all_faults_come_at_once() {
    let faults = respond(json!({
        "answers": [
            { "question_id": "q1", "selected_options": ["q1_opt1", "q1_opt2", "x"], "custom_text": "\0" },
            { "question_id": "q7" },
        ],
        "reject_reason": "r".repeat(2_001),
    }))
    .expect_err("rules are broken");
    let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
    assert_eq!(
        pointers,
        [
            "/reject_reason",
            "/answers/0/custom_text",
            "/answers/0/selected_options/2",
            "/answers/0/selected_options",
            "/answers/1/question_id",
            "/answers",
            "/answers",
        ]
    );
}

#[test]
fn the_limits_themselves_are_allowed() {
    let text = "ä".repeat(2_000);
    assert!(respond(json!({ "rejected": true, "reject_reason": text })).is_ok());
    let answers = ["q1", "q2", "q3"].map(|id| json!({ "question_id": id, "custom_text": text }));
    assert!(respond(json!({ "answers": answers })).is_ok());
}

#[test]
fn a_recorded_response_says_what_was_said() {
    let recorded = Response {
        answers: Vec::new(),
        rejected: true,
        reject_reason: "later".to_owned(),
        responded_at: Timestamp::from_micros(1),
        actor: Actor { id: "1".to_owned(), name: "Ada".to_owned() },
    };
    let said = NormalisedResponse { answers: Vec::new(), rejected: true, reject_reason: "later".to_owned() };
    assert_eq!(NormalisedResponse::from(&recorded), said);
    assert_eq!(said.outcome(), recorded.outcome());
}

/// Questions of one bundle: their ids differ, as `ask` sees to.
fn any_pending() -> impl Strategy<Value = Vec<Question>> {
    prop::collection::vec((0_usize..4, any::<bool>()), 0..4).prop_map(|shapes| {
        let ids = 1..;
        ids.zip(shapes)
            .map(|(id, (options, multi_select))| question(&format!("q{id}"), options, multi_select))
            .collect()
    })
}

prop_compose! {
    fn any_answer()(
        question_id in prop_oneof!["q[1-4]", any::<String>()],
        selected_options in prop::collection::vec(prop_oneof![9 => "q[1-4]_opt[1-4]", 1 => any::<String>()], 0..4),
        custom_text in prop_oneof!["[ \na-zä]{0,9}", any::<String>()],
    ) -> AnswerInput { AnswerInput { question_id, selected_options, custom_text } }
}

prop_compose! {
    fn any_response()(
        answers in prop::collection::vec(any_answer(), 0..5), rejected in any::<bool>(),
        reject_reason in prop_oneof!["[ a-z]{0,9}", any::<String>()],
    ) -> RespondInput { RespondInput { answers, rejected, reject_reason } }
}

prop_compose! {
    /// Responses to `pending()` that keep every rule, in any order.
    fn good_response()(
        one in prop::option::of(1_usize..=2), several in prop::collection::vec(1_usize..=3, 0..5),
        texts in prop::array::uniform3("[ \na-zä]{0,9}"), order in Just(vec![0_usize, 1, 2]).prop_shuffle(),
    ) -> RespondInput {
        let chosen = [
            one.iter().map(|place| format!("q1_opt{place}")).collect(),
            several.iter().map(|place| format!("q2_opt{place}")).collect(),
            Vec::new(),
        ];
        let answers = order.into_iter().map(|index| AnswerInput {
            question_id: format!("q{}", index + 1),
            selected_options: chosen[index].clone(),
            custom_text: texts[index].clone(),
        });
        RespondInput { answers: answers.collect(), ..Default::default() }
    }
}

proptest! {
    #[test]
    fn any_response_is_refused_with_reasons_or_is_a_fixed_point(
        pending in any_pending(), input in any_response(),
    ) {
        match validate(&pending, &input) {
            Ok(response) => prop_assert_eq!(validate(&pending, &again(&response)), Ok(response)),
            Err(faults) => prop_assert!(!faults.is_empty()),
        }
    }

    #[test]
    fn a_good_response_is_accepted_and_a_fixed_point(input in good_response()) {
        let pending = pending();
        let response = validate(&pending, &input).map_err(|faults| TestCaseError::fail(format!("{faults:?}")))?;
        let ids: Vec<&str> = response.answers.iter().map(|entry| entry.question_id.as_str()).collect();
        prop_assert_eq!(ids, ["q1", "q2", "q3"]);
        prop_assert_eq!(validate(&pending, &again(&response)), Ok(response));
    }
}
