//! Writes the descriptions of the API that others build on, from what the services say of themselves.
//!
//! It is a program of its own because the services must not pay for it, and because the task runner, which also
//! writes what the store needs to compile, must not depend on the store. `cargo xtask docs` runs it.

mod asyncapi;
mod common;
mod held;
mod openapi;
mod operation;
mod schemas;
mod yaml;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let text = match wanted.as_str() {
        "openapi" => openapi::render()?,
        "asyncapi" => asyncapi::render()?,
        other => bail!("openapi or asyncapi is wanted, not {other:?}"),
    };
    print!("{text}");
    Ok(())
}
