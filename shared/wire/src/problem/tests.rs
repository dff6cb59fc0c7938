//! Documents, headers and documentation of problems.

use super::*;
use std::collections::BTreeSet;
use strum::IntoEnumIterator;

fn round_trip(problem: &Problem) -> Problem {
    let response = problem.clone().into_response();
    let body = problem.to_json().to_string();
    Problem::from_parts(response.headers(), body.as_bytes()).expect("a problem of ours reads back")
}

#[test]
fn every_code_reads_back_as_it_was_written() {
    for code in Code::iter() {
        let problem = Problem::new(code, "why").with("state", "terminal").at("/answers/0", "unknown question");
        assert_eq!(round_trip(&problem), problem);
        assert_eq!(problem.to_json()["type"], format!("urn:askback:problem:{code}"));
        assert_eq!(problem.to_json()["retryable"], code.retryable());
    }
}

#[test]
fn headers_follow_the_code() {
    for code in Code::iter() {
        let response = Problem::new(code, "why").with_retry_after_secs(7).into_response();
        assert_eq!(response.status(), code.status());
        assert_eq!(response.headers()[header::CONTENT_TYPE], CONTENT_TYPE);
        let retry_after = matches!(code.status().as_u16(), 429 | 503);
        assert_eq!(response.headers().contains_key(header::RETRY_AFTER), retry_after, "{code}");
        assert!(code.status().as_u16() != 503 || code == Code::RecoveryFailed || code.retryable());
    }
    let response = Problem::new(Code::MethodNotAllowed, "no").with_allow("GET, HEAD").into_response();
    assert_eq!(response.headers()[header::ALLOW], "GET, HEAD");
}

#[test]
fn extensions_cannot_replace_what_every_problem_has() {
    let problem = Problem::new(Code::NotFound, "no").with("code", "already_answered").with("status", 200);
    assert_eq!(problem.to_json()["code"], "not_found");
    assert_eq!(problem.to_json()["status"], 404);
}

#[test]
fn what_is_no_problem_of_ours_is_not_read_as_one() {
    let headers = HeaderMap::new();
    for body in ["", "<html>", "[]", "{}", r#"{"code":"code_of_the_future"}"#] {
        assert_eq!(Problem::from_parts(&headers, body.as_bytes()), None, "{body}");
    }
}

#[test]
fn every_code_is_documented_with_words_of_its_own() {
    let titles: BTreeSet<&str> = Code::iter().map(Code::title).collect();
    assert_eq!(titles.len(), Code::iter().count(), "two codes share a title");
    for code in Code::iter() {
        let docs = code.docs();
        assert!(!docs.meaning.is_empty() && !docs.caller.is_empty() && !docs.operator.is_empty(), "{code}");
    }
}

#[test]
fn the_page_of_errors_is_fresh() {
    let page = include_str!("../../../../docs/errors.md");
    assert!(page == render(), "run `cargo xtask docs`");
}
