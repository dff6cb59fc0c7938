//! Every code that is used stands in the document, at an operation that can give it.

use crate::document::{Document, items};
use crate::sources;
use anyhow::{Result, ensure};
use std::collections::BTreeSet;
use strum::IntoEnumIterator as _;
use wire::Code;

/// Whether the code names a variant of [`Code`], by itself or through another name of the type.
fn uses(code: &str, variant: &str) -> bool {
    ["Code::", "Self::"].iter().any(|prefix| {
        let name = format!("{prefix}{variant}");
        code.match_indices(&name).any(|(at, _)| {
            let next = code[at + name.len()..].chars().next();
            !next.is_some_and(|sign| sign.is_alphanumeric() || sign == '_')
        })
    })
}

#[test]
fn every_code_that_is_used_stands_at_an_operation() -> Result<()> {
    let code = sources::code()?;
    let document = Document::read()?;
    let described: BTreeSet<String> =
        document.operations.iter().flat_map(|operation| operation.codes(&document)).collect();
    let used: Vec<Code> = Code::iter().filter(|variant| uses(&code, &format!("{variant:?}"))).collect();
    ensure!(used.len() > 20 && used.contains(&Code::AlreadyAnswered), "the codes were not found: {used:?}");
    let missing: Vec<&Code> = used.iter().filter(|code| !described.contains(code.as_str())).collect();
    ensure!(missing.is_empty(), "not described: {missing:?}");
    let unused: Vec<&String> =
        described.iter().filter(|name| !used.iter().any(|code| code.as_str() == name.as_str())).collect();
    ensure!(unused.is_empty(), "described, and never given: {unused:?}");
    Ok(())
}

#[test]
fn the_schema_of_a_problem_knows_every_code() -> Result<()> {
    let document = Document::read()?;
    let known: BTreeSet<&str> = items(&document.json["components"]["schemas"]["Code"]["oneOf"])
        .filter_map(|code| code["const"].as_str())
        .collect();
    assert_eq!(known, Code::iter().map(Code::as_str).collect());
    Ok(())
}
