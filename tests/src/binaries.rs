//! Where the programs under test lie.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;

/// What to run when a program is missing.
const BUILD: &str = "cargo build --workspace --bins";

/// Finds a program: in the folder `ASKBACK_TEST_BINARIES`, or where cargo puts what it builds beside this test.
///
/// # Errors
/// When it is not there, with what to run.
pub fn find(name: &str) -> Result<PathBuf> {
    let path = folder()?.join(name);
    if path.is_file() {
        return Ok(path);
    }
    bail!("{} is not built; run `{BUILD}` first", path.display())
}

/// Like [`find`], and checks that the program was built with armed crash points.
///
/// # Errors
/// When it is not there or not armed, with what to run.
pub fn find_armed(name: &str) -> Result<PathBuf> {
    const MARK: &[u8] = b"ASKBACK_CRASH_LOG";
    let path = find(name)?;
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.windows(MARK.len()).any(|window| window == MARK) {
        return Ok(path);
    }
    bail!("{} was built alone, so its crash points are not armed; run `{BUILD}`", path.display())
}

fn folder() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("ASKBACK_TEST_BINARIES").filter(|folder| !folder.is_empty()) {
        return Ok(PathBuf::from(folder));
    }
    let test = std::env::current_exe().context("a running test has a path")?;
    // target/<profile>/deps/<test>
    let folder = test.parent().and_then(|deps| deps.parent()).context("the test does not lie in a target folder")?;
    Ok(folder.to_owned())
}
