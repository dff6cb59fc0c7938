//! The shape of the tree: which crate may use which, how long a file may be, and that nobody's machine stands in it.

use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longer files have two jobs.
const LINES_MAX: usize = 500;
/// Folders that hold nothing of ours.
const SKIPPED: [&str; 5] = [".git", "target", "node_modules", ".askback", "dist"];
/// Whether a crate of ours may use something.
type Rule = fn(&Member) -> bool;
/// Crates of others that only some of ours may use, also in their tests.
const KEPT: [(&str, Rule); 5] = [
    ("sqlx", |member| member.name == "store"),
    ("async-nats", |member| member.name == "events"),
    ("axum", Member::speaks_http),
    ("reqwest", Member::speaks_http),
    ("rand", |member| member.name == "kit"),
];
/// What the rules must not know, besides all crates of ours.
const IMPURE: [&str; 7] = ["tokio", "sqlx", "async-nats", "axum", "reqwest", "tracing", "rand"];

/// A crate of the workspace.
struct Member {
    name: String,
    folder: String,
    /// Crates it uses, with whether only its tests do.
    uses: Vec<(String, bool)>,
}

impl Member {
    fn speaks_http(&self) -> bool {
        self.is_service() || matches!(self.name.as_str(), "wire" | "kit" | "tests")
    }

    fn is_service(&self) -> bool {
        self.folder.starts_with("services/")
    }
}

fn root() -> Result<PathBuf> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("this package lies in a folder of the root")?.to_owned())
}

fn members() -> Result<Vec<Member>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(root()?)
        .output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("metadata lists packages")?;
    packages
        .iter()
        .map(|package| member(package).context("a package without a name, a folder or dependencies"))
        .collect()
}

fn member(package: &Value) -> Option<Member> {
    let manifest = Path::new(package["manifest_path"].as_str()?);
    let folder = manifest.parent()?.strip_prefix(root().ok()?).ok()?.to_str()?.to_owned();
    let uses = package["dependencies"].as_array()?.iter();
    let uses = uses.filter_map(|used| Some((used["name"].as_str()?.to_owned(), used["kind"] == "dev")));
    Some(Member { name: package["name"].as_str()?.to_owned(), folder, uses: uses.collect() })
}

/// All files of the tree with their paths from the root.
fn files() -> Result<BTreeMap<String, Vec<u8>>> {
    fn walk(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
                walk(root, &path, found)?;
            } else if kind.is_file() {
                found.insert(path.strip_prefix(root)?.display().to_string(), fs::read(&path)?);
            }
        }
        Ok(())
    }
    let (root, mut found) = (root()?, BTreeMap::new());
    walk(&root, &root, &mut found)?;
    Ok(found)
}

#[test]
fn crates_use_only_what_they_may() -> Result<()> {
    let members = members()?;
    let mut wrong = Vec::new();
    for member in &members {
        for (used, only_tests) in &member.uses {
            let kept = KEPT.iter().any(|(name, may)| name == used && !may(member));
            let ours = members.iter().find(|other| other.name == *used);
            let upward = ours.is_some_and(Member::is_service) && !(member.is_service() || member.name == "tests");
            let test_tool =
                *used == "devstack" && !only_tests && !matches!(member.name.as_str(), "xtask" | "askback" | "tests");
            let impure = member.name == "domain" && (IMPURE.contains(&used.as_str()) || ours.is_some());
            if kept || upward || test_tool || impure {
                wrong.push(format!("{} must not use {used}", member.name));
            }
        }
    }
    assert!(members.len() > 5, "the workspace has more crates than that");
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

#[test]
fn no_file_of_rust_is_longer_than_one_job() -> Result<()> {
    let files = files()?;
    let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
    let long: Vec<_> = files
        .iter()
        .filter(|(path, text)| path.ends_with(".rs") && lines(text) > LINES_MAX)
        .map(|(path, text)| format!("{path}: {} lines", lines(text)))
        .collect();
    assert!(files.keys().any(|path| path.ends_with("tidy.rs")), "this file was not found");
    assert!(long.is_empty(), "{long:#?}");
    Ok(())
}

#[test]
fn no_path_of_a_developers_machine_stands_in_the_tree() -> Result<()> {
    // Put together here, so that this file is not what it looks for.
    let homes = [["/home", "/"].concat(), ["/Users", "/"].concat(), [r"C:\", "Users"].concat()];
    let here = format!("{}/", root()?.display());
    let found: Vec<_> = files()?
        .into_iter()
        .filter(|(_, text)| {
            let text = String::from_utf8_lossy(text);
            text.contains(&here) || homes.iter().any(|home| text.contains(home))
        })
        .map(|(path, _)| path)
        .collect();
    assert!(found.is_empty(), "{found:#?}");
    Ok(())
}
