//! Files that are generated: written, or proven fresh by generating them again.

use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::Path;

/// A file's path from the root of the workspace, and its content.
pub(crate) type File = (&'static str, String);

/// Writes what differs.
pub(crate) fn write(root: &Path, files: &[File]) -> Result<()> {
    for (name, text) in files {
        if !is_fresh(root, name, text) {
            fs::write(root.join(name), text).with_context(|| format!("cannot write {name}"))?;
            println!("{name} is written");
        }
    }
    Ok(())
}

/// Fails if a file does not say what the code says.
pub(crate) fn check(root: &Path, files: &[File]) -> Result<()> {
    let stale: Vec<&str> =
        files.iter().filter(|(name, text)| !is_fresh(root, name, text)).map(|(name, _)| *name).collect();
    if stale.is_empty() {
        println!("docs are fresh: {} generated files", files.len());
        return Ok(());
    }
    bail!("{} is stale: run `cargo xtask docs` and commit what it writes", stale.join(", "))
}

fn is_fresh(root: &Path, name: &str, text: &str) -> bool {
    fs::read_to_string(root.join(name)).is_ok_and(|kept| kept == text)
}
