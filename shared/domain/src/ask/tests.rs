use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn ask(input: Value) -> Result<Ask, Vec<FieldError>> {
    normalise(serde_json::from_value(input).expect("the input has the shape of an ask"))
}

fn faults(input: Value) -> Vec<(String, String)> {
    let faults = ask(input).expect_err("the input breaks a rule");
    faults.into_iter().map(|fault| (fault.pointer, fault.detail)).collect()
}

fn one(question: Value) -> Value {
    Value::Object([("questions".to_owned(), Value::Array(vec![question]))].into_iter().collect())
}

fn options(count: usize) -> Vec<Value> {
    (1..=count).map(|place| json!({ "label": format!("choice {place}") })).collect()
}

/// An ask in normal form, said again as an agent would say it.
fn again(ask: &Ask) -> AskInput {
    let option = |option: &Choice| OptionInput {
        label: option.label.clone(),
        description: Some(option.description.clone()),
        option_id: Some(option.option_id.clone()),
    };
    let question = |question: &Question| QuestionInput {
        prompt: question.prompt.clone(),
        title: Some(question.title.clone()),
        question_id: Some(question.question_id.clone()),
        options: question.options.iter().map(option).collect(),
        multi_select: question.multi_select,
    };
    AskInput {
        questions: ask.questions.iter().map(question).collect(),
        context: Some(ask.context.clone()),
        context_paragraphs: None,
    }
}

#[test]
fn defaults_are_filled_in_by_place() {
    let ask = ask(json!({
        "questions": [
            { "prompt": "  Deploy?\n", "options": [{ "label": " yes " }, { "label": "no", "description": " later " }] },
            { "prompt": "Where?", "title": " Target ", "question_id": "where", "multi_select": true,
              "options": [{ "label": "a" }, { "label": "b", "option_id": "bee" }, { "label": "c" }] },
            { "prompt": "Why?" },
        ],
        "context": " first ",
        "context_paragraphs": ["second\n", "  ", "third"],
    }))
    .expect("every rule is kept");
    let seen = serde_json::to_value(&ask.questions).expect("questions are JSON");
    let choice = |id: &str, label: &str, description: &str| json!({ "option_id": id, "label": label, "description": description });
    assert_eq!(
        seen,
        json!([
            { "question_id": "q1", "title": "", "prompt": "Deploy?", "multi_select": false,
              "options": [choice("q1_opt1", "yes", ""), choice("q1_opt2", "no", "later")] },
            { "question_id": "where", "title": "Target", "prompt": "Where?", "multi_select": true,
              "options": [choice("where_opt1", "a", ""), choice("bee", "b", ""), choice("where_opt3", "c", "")] },
            { "question_id": "q3", "title": "", "prompt": "Why?", "multi_select": false, "options": [] },
        ])
    );
    assert_eq!(ask.context, "first\n\nsecond\n\nthird");
}

#[test]
fn null_and_absent_are_the_same_and_unknown_fields_are_refused() {
    let absent = ask(one(json!({ "prompt": "Go?", "options": [{ "label": "a" }, { "label": "b" }] })));
    let null = ask(json!({
        "questions": [{
            "prompt": "Go?", "title": null, "question_id": null, "multi_select": null,
            "options": [{ "label": "a", "description": null, "option_id": null }, { "label": "b" }],
        }],
        "context": null,
        "context_paragraphs": null,
    }));
    assert_eq!(absent, null);
    assert_eq!(ask(one(json!({ "prompt": "Go?" }))), ask(one(json!({ "prompt": "Go?", "options": null }))));

    for refused in [
        json!({}),
        json!({ "questions": null }),
        json!({ "questions": [], "colour": 1 }),
        one(json!({ "prompt": null })),
        one(json!({ "prompt": "Go?", "colour": 1 })),
        one(json!({ "prompt": "Go?", "options": [{ "label": "a", "colour": 1 }] })),
        one(json!({ "prompt": "Go?", "options": [{}] })),
        json!({ "questions": [], "context_paragraphs": [null] }),
    ] {
        assert!(serde_json::from_value::<AskInput>(refused.clone()).is_err(), "{refused}");
    }
}

#[test]
fn every_rule_has_a_pointer_and_words_of_its_own() {
    let two = |first: Value| one(json!({ "prompt": "Go?", "options": [first, { "label": "b" }] }));
    let id_rule = "must be 1 to 64 characters of a-z, 0-9 and _";
    let nul_rule = "must not contain the NUL character (U+0000)";
    let many: Vec<Value> = (0..11).map(|_| json!({ "prompt": "Go?" })).collect();
    let rows = [
        (json!({ "questions": [] }), "/questions", "must hold at least one question"),
        (json!({ "questions": many }), "/questions", "must hold at most 10 questions, holds 11"),
        (one(json!({ "prompt": " \n\u{3000}" })), "/questions/0/prompt", "must not be blank"),
        (
            one(json!({ "prompt": "ä".repeat(4_001) })),
            "/questions/0/prompt",
            "must be at most 4000 characters, has 4001",
        ),
        (one(json!({ "prompt": "a\0b" })), "/questions/0/prompt", nul_rule),
        (
            one(json!({ "prompt": "Go?", "title": "ä".repeat(81) })),
            "/questions/0/title",
            "must be at most 80 characters, has 81",
        ),
        (one(json!({ "prompt": "Go?", "title": "\0" })), "/questions/0/title", nul_rule),
        (one(json!({ "prompt": "Go?", "question_id": "" })), "/questions/0/question_id", id_rule),
        (one(json!({ "prompt": "Go?", "question_id": "Q1" })), "/questions/0/question_id", id_rule),
        (one(json!({ "prompt": "Go?", "question_id": "q\0" })), "/questions/0/question_id", id_rule),
        (one(json!({ "prompt": "Go?", "question_id": "q".repeat(65) })), "/questions/0/question_id", id_rule),
        (
            json!({ "questions": [{ "prompt": "a", "question_id": "x" }, { "prompt": "b", "question_id": "x" }] }),
            "/questions/1/question_id",
            "the id, \"x\", is used already",
        ),
        (
            json!({ "questions": [{ "prompt": "a", "question_id": "q2" }, { "prompt": "b" }] }),
            "/questions/1/question_id",
            "the default id of this place, \"q2\", is used already",
        ),
        (
            one(json!({ "prompt": "Go?", "options": options(1) })),
            "/questions/0/options",
            "must hold no option or at least 2, holds 1",
        ),
        (
            one(json!({ "prompt": "Go?", "options": options(13) })),
            "/questions/0/options",
            "must hold at most 12 options, holds 13",
        ),
        (two(json!({ "label": "\t" })), "/questions/0/options/0/label", "must not be blank"),
        (
            two(json!({ "label": "ä".repeat(201) })),
            "/questions/0/options/0/label",
            "must be at most 200 characters, has 201",
        ),
        (two(json!({ "label": "a\0" })), "/questions/0/options/0/label", nul_rule),
        (
            two(json!({ "label": "a", "description": "ä".repeat(1_001) })),
            "/questions/0/options/0/description",
            "must be at most 1000 characters, has 1001",
        ),
        (two(json!({ "label": "a", "description": "\0" })), "/questions/0/options/0/description", nul_rule),
        (two(json!({ "label": "a", "option_id": "a-b" })), "/questions/0/options/0/option_id", id_rule),
        (
            two(json!({ "label": "a", "option_id": "q1_opt2" })),
            "/questions/0/options/1/option_id",
            "the default id of this place, \"q1_opt2\", is used already",
        ),
        (
            json!({ "questions": [{ "prompt": "Go?" }], "context": "ä".repeat(8_193) }),
            "/context",
            "must be at most 16384 bytes, has 16386",
        ),
        (
            json!({ "questions": [{ "prompt": "Go?" }], "context": "a".repeat(10_000),
                    "context_paragraphs": ["b".repeat(6_383)] }),
            "/context_paragraphs",
            "must be at most 16384 bytes together with the context, has 16385",
        ),
        (json!({ "questions": [{ "prompt": "Go?" }], "context": "\0" }), "/context", nul_rule),
        (
            json!({ "questions": [{ "prompt": "Go?" }], "context_paragraphs": ["a", "\0"] }),
            "/context_paragraphs/1",
            nul_rule,
        ),
    ];
    for (input, pointer, detail) in rows {
        assert_eq!(faults(input), [(pointer.to_owned(), detail.to_owned())]);
    }
}

#[test]
fn a_default_option_id_that_grows_too_long_is_named() {
    let question = json!({ "prompt": "Go?", "question_id": "q".repeat(60), "options": options(2) });
    let detail = "the default id of this place would be longer than 64 characters: give one";
    let pointers: Vec<String> = faults(one(question))
        .into_iter()
        .map(|(pointer, found)| {
            assert_eq!(found, detail);
            pointer
        })
        .collect();
    assert_eq!(pointers, ["/questions/0/options/0/option_id", "/questions/0/options/1/option_id"]);
}

#[test]
fn all_faults_come_at_once_and_none_follows_from_another() {
    let found = faults(json!({
        "questions": [
            { "prompt": "", "question_id": "Not Good", "options": [{ "label": "a" }, { "label": "" }] },
            { "prompt": "Go?", "title": "t".repeat(81), "options": options(1) },
        ],
        "context": "c\0",
    }));
    let pointers: Vec<&str> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(
        pointers,
        [
            "/questions/0/question_id",
            "/questions/0/prompt",
            "/questions/0/options/1/label",
            "/questions/1/title",
            "/questions/1/options",
            "/context",
        ]
    );
}

#[test]
fn the_limits_themselves_are_allowed() {
    let question = |place: usize| {
        let options: Vec<Value> = (0..12)
            .map(|option| {
                json!({ "label": "ä".repeat(200), "description": "ä".repeat(1_000),
                        "option_id": format!("{option:0>64}") })
            })
            .collect();
        json!({ "prompt": "ä".repeat(4_000), "title": "ä".repeat(80), "question_id": format!("{place:_>64}"),
                "options": options })
    };
    let questions: Vec<Value> = (0..10).map(question).collect();
    let paragraphs = ["a".repeat(8_192), "b".repeat(8_188)];
    let ask =
        ask(json!({ "questions": questions, "context_paragraphs": paragraphs })).expect("nothing is over a limit");
    assert_eq!(ask.questions.len(), 10);
    assert_eq!(ask.context.len(), CONTEXT_MAX_BYTES - PARAGRAPH_BREAK.len());
}

#[test]
fn the_same_ask_has_the_same_hash_in_every_version() {
    let input = json!({ "questions": [{ "prompt": "Deploy?", "options": options(2) }], "context": "api" });
    let hash = ask(input.clone()).expect("every rule is kept").content_hash;
    let canonical = concat!(
        r#"{"context":"api","questions":[{"multi_select":false,"options":["#,
        r#"{"description":"","label":"choice 1","option_id":"q1_opt1"},"#,
        r#"{"description":"","label":"choice 2","option_id":"q1_opt2"}],"#,
        r#""prompt":"Deploy?","question_id":"q1","title":""}]}"#
    );
    let expected: String = Sha256::digest(canonical).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hash, expected);

    let changes = [
        ("/context", json!("web")),
        ("/questions/0/prompt", json!("Deploy now?")),
        ("/questions/0/options/0/label", json!("choice 3")),
    ];
    for (pointer, value) in changes {
        let mut other = input.clone();
        *other.pointer_mut(pointer).expect("the field is there") = value;
        assert_ne!(ask(other).expect("every rule is kept").content_hash, hash, "{pointer}");
    }
}

#[test]
fn keys_are_printable_ascii() {
    for good in ["a", " ~", &"k".repeat(200)] {
        assert_eq!(check_key("/request_id", good), Ok(()));
    }
    let rows = [
        (String::new(), "must not be empty"),
        ("k".repeat(201), "must be at most 200 characters, has 201"),
        ("a\n".to_owned(), "must be printable ASCII only"),
        ("\u{7f}".to_owned(), "must be printable ASCII only"),
        ("ä".to_owned(), "must be printable ASCII only"),
        ("\0".to_owned(), "must be printable ASCII only"),
    ];
    for (key, detail) in rows {
        assert_eq!(check_key("/call_id", &key), Err(FieldError::new("/call_id", detail)));
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[ \n\0a-zä]{0,12}", any::<String>()]
}

fn any_id() -> impl Strategy<Value = Option<String>> {
    prop_oneof![4 => Just(None), 3 => "[a-z0-9_]{1,64}".prop_map(Some), 2 => "q[123](_opt[123])?".prop_map(Some),
                1 => any_text().prop_map(Some)]
}

prop_compose! {
    fn any_option()(label in any_text(), description in prop::option::of(any_text()), option_id in any_id())
        -> OptionInput { OptionInput { label, description, option_id } }
}

prop_compose! {
    fn any_question()(
        prompt in any_text(), title in prop::option::of(any_text()), question_id in any_id(),
        options in prop::collection::vec(any_option(), 0..4), multi_select in any::<bool>(),
    ) -> QuestionInput { QuestionInput { prompt, title, question_id, options, multi_select } }
}

prop_compose! {
    fn any_ask()(
        questions in prop::collection::vec(any_question(), 0..4), context in prop::option::of(any_text()),
        context_paragraphs in prop::option::of(prop::collection::vec(any_text(), 0..3)),
    ) -> AskInput { AskInput { questions, context, context_paragraphs } }
}

prop_compose! {
    /// Asks that keep every rule, with white space and absent fields for the normal form to work on.
    fn good_ask()(
        questions in prop::collection::vec(
            (
                "[ \n]{0,2}[a-zä?]([ a-zä?\n]){0,20}", prop::option::of("[ a-z]{0,10}"), any::<bool>(),
                prop_oneof![Just(0_usize), 2_usize..=12], any::<bool>(), " {0,2}[a-z]{1,9} {0,2}",
            ),
            1..=10,
        ),
        context in prop::option::of("[ \na-z]{0,40}"),
        context_paragraphs in prop::option::of(prop::collection::vec("[ \na-z]{0,40}", 0..4)),
    ) -> AskInput {
        let option = |label: &str, place: usize| OptionInput { label: format!("{label}{place}"), ..Default::default() };
        let questions = questions.into_iter().enumerate().map(|(place, (prompt, title, named, count, multi_select, label))| {
            QuestionInput {
                prompt, title, multi_select,
                question_id: named.then(|| format!("own_{place}")),
                options: (0..count).map(|place| option(&label, place)).collect(),
            }
        });
        AskInput { questions: questions.collect(), context, context_paragraphs }
    }
}

proptest! {
    #[test]
    fn any_ask_is_refused_with_reasons_or_is_a_fixed_point(input in any_ask()) {
        match normalise(input) {
            Ok(ask) => prop_assert_eq!(normalise(again(&ask)), Ok(ask)),
            Err(faults) => prop_assert!(!faults.is_empty()),
        }
    }

    #[test]
    fn a_good_ask_is_accepted_and_a_fixed_point(input in good_ask()) {
        let ask = normalise(input).map_err(|faults| TestCaseError::fail(format!("{faults:?}")))?;
        prop_assert_eq!(normalise(again(&ask)), Ok(ask));
    }
}
