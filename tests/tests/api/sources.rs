//! The sources of what serves HTTP, for facts that no running service tells.

use anyhow::{Context as _, Result};
use std::fs;
use std::path::Path;

/// Where requests are served and refused.
const FOLDERS: [&str; 6] = [
    "services/respond-api/src",
    "services/orchestrator/src",
    "services/projection/src",
    "shared/access/src",
    "shared/kit/src",
    "shared/wire/src/rejection.rs",
];

/// The code that runs, without comments, unit tests and what describes endpoints.
pub(crate) fn code() -> Result<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("this package lies in a folder of the root")?;
    let mut all = String::new();
    for folder in FOLDERS {
        add(&root.join(folder), &mut all)?;
    }
    Ok(all)
}

fn add(path: &Path, all: &mut String) -> Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            add(&entry?.path(), all)?;
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let mut describes = false;
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            // What an item says of an endpoint is no proof that anything does it.
            describes |= line == "#[cfg(feature = \"openapi\")]";
            if !describes {
                all.push_str(line);
                all.push('\n');
            }
            let ends = line == "}" || (line.ends_with(';') && !line.starts_with([' ', '\t']));
            describes &= !ends;
        }
    }
    Ok(())
}
