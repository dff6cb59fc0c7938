//! SQL for the administration of databases, through `psql`: the SQL of the product lives elsewhere.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::process::{run, without_libpq_settings};

/// Where `psql` is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Psql {
    Program { path: PathBuf },
    Container { name: String },
}

impl Psql {
    /// Runs each statement by itself, stops at the first that fails, and returns the rows, columns separated by `|`.
    pub(crate) fn run(&self, url: &str, statements: &[&str]) -> Result<String> {
        let url = DatabaseUrl::parse(url)?;
        let mut command = match self {
            Self::Program { path } => {
                let mut command = Command::new(path);
                without_libpq_settings(&mut command);
                command.arg("--dbname").arg(url.without_password());
                command
            }
            Self::Container { name } => {
                let mut command = Command::new("docker");
                command.args(["exec", "--env", "PGPASSWORD", name, "psql", "--host", "127.0.0.1"]);
                command.args(["--username", &url.user, "--dbname", &url.database]);
                command
            }
        };
        // In the environment, because everybody can read command lines.
        command.env("PGPASSWORD", url.decoded_password()).env("PGCONNECT_TIMEOUT", "10");
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        for statement in statements {
            command.args(["-c", statement]);
        }
        run(&mut command)
    }
}

/// The parts of a Postgres URL, as written in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabaseUrl {
    user: String,
    password: Option<String>,
    host: String,
    database: String,
    query: String,
}

impl DatabaseUrl {
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let rest = url
            .strip_prefix("postgres://")
            .or_else(|| url.strip_prefix("postgresql://"))
            .context("a database URL begins with postgres://")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, Some(password.to_owned())),
            None => (credentials, None),
        };
        Ok(Self {
            user: user.to_owned(),
            password,
            host: host.to_owned(),
            database: database.to_owned(),
            query: query.to_owned(),
        })
    }

    /// The same server and user, another database.
    pub(crate) fn with_database(&self, database: &str) -> String {
        let password = self.password.as_ref().map(|password| format!(":{password}")).unwrap_or_default();
        self.assemble(&password, database)
    }

    fn without_password(&self) -> String {
        self.assemble("", &self.database)
    }

    fn assemble(&self, password: &str, database: &str) -> String {
        let at = if self.user.is_empty() { "" } else { "@" };
        let query = if self.query.is_empty() { String::new() } else { format!("?{}", self.query) };
        format!("postgres://{}{password}{at}{}/{database}{query}", self.user, self.host)
    }

    fn decoded_password(&self) -> String {
        percent_decode(self.password.as_deref().unwrap_or_default())
    }
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let escaped = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) if byte == b'%' => {
                bytes.push(decoded);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_only_the_database() {
        let url = DatabaseUrl::parse("postgresql://me:p%40ss@db.example:5433/app?sslmode=disable").expect("valid");
        assert_eq!(url.with_database("t_1"), "postgres://me:p%40ss@db.example:5433/t_1?sslmode=disable");
        assert_eq!(url.without_password(), "postgres://me@db.example:5433/app?sslmode=disable");
        assert_eq!(url.decoded_password(), "p@ss");
        let bare = DatabaseUrl::parse("postgres://localhost/app").expect("valid");
        assert_eq!(bare.with_database("t_1"), "postgres://localhost/t_1");
        assert!(DatabaseUrl::parse("mysql://x").is_err());
    }
}
