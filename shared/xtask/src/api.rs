//! The descriptions of the API. The services say themselves what they serve, so that another program writes them:
//! this one must not need the store, which may not compile before it has been here.

use crate::generated::File;
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::process::Command;

/// The program that writes them.
const PROGRAM: &str = "api-docs";

/// A description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Description {
    /// Of what is served over HTTP.
    OpenApi,
    /// Of what is published over NATS.
    AsyncApi,
}

impl Description {
    const fn file(self) -> &'static str {
        match self {
            Self::OpenApi => "docs/openapi.json",
            Self::AsyncApi => "docs/asyncapi.yaml",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::OpenApi => "openapi",
            Self::AsyncApi => "asyncapi",
        }
    }
}

/// Builds the program and lets it write each of them.
///
/// It is built together with everything else, as the tests' programs are: alone, cargo would build the services once
/// more, with other features.
pub(crate) fn describe(root: &Path, wanted: &[Description]) -> Result<Vec<File>> {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--workspace", "--bins"])
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    if !built.success() {
        bail!("the services do not compile");
    }
    let this = std::env::current_exe().context("a running program has a path")?;
    let program = this.with_file_name(PROGRAM);
    let run = |description: &Description| {
        let output = Command::new(&program)
            .arg(description.word())
            .output()
            .with_context(|| format!("cannot start {}", program.display()))?;
        if !output.status.success() {
            bail!("{PROGRAM} fails: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok((description.file(), String::from_utf8(output.stdout).context("a description is text")?))
    };
    wanted.iter().map(run).collect()
}
