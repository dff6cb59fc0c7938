//! SQL past the services, through `psql`: what no interface of theirs shows, and locks that somebody else holds.

use crate::cluster::Cluster;
use anyhow::{Context as _, Result, bail, ensure};
use domain::ids::SessionId;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

/// How long a statement may take.
const PATIENCE: Duration = Duration::from_secs(30);

fn psql(url: &str) -> Command {
    let mut command = Command::new("psql");
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", url]).kill_on_drop(true);
    command
}

impl Cluster {
    /// What a statement gives, columns separated by `|`, past every link.
    ///
    /// # Errors
    /// What `psql` says.
    pub async fn sql(&self, statement: &str) -> Result<String> {
        let output = psql(self.database_url()).args(["-c", statement]).output();
        let output = timeout(PATIENCE, output).await.context("a statement does not end")?.context("psql")?;
        ensure!(output.status.success(), "{statement}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// The number that a statement gives.
    ///
    /// # Errors
    /// What `psql` says; or when it is no number.
    pub async fn count(&self, statement: &str) -> Result<i64> {
        let text = self.sql(statement).await?;
        text.parse().with_context(|| format!("{statement} gives {text:?}"))
    }

    /// Somebody who holds the lock of a session's row until they are told to let go.
    ///
    /// # Errors
    /// When the lock is not granted.
    pub async fn lock(&self, session: SessionId) -> Result<RowLock> {
        RowLock::take(self.database_url(), session).await
    }
}

/// The lock of a session's row, held by a `psql` without any time limit. It ends with the value.
#[derive(Debug)]
pub struct RowLock {
    child: Child,
    stdin: ChildStdin,
}

impl RowLock {
    async fn take(url: &str, session: SessionId) -> Result<Self> {
        let mut child = psql(url).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("psql")?;
        let mut stdin = child.stdin.take().context("it is piped")?;
        let stdout = child.stdout.take().context("it is piped")?;
        let statements = format!(
            "set idle_in_transaction_session_timeout = 0; set lock_timeout = 0; set statement_timeout = 0; begin;\n\
             select 'locked' from task_sessions where id = '{session}' for update;\n"
        );
        stdin.write_all(statements.as_bytes()).await?;
        let mut lines = BufReader::new(stdout).lines();
        match timeout(PATIENCE, lines.next_line()).await.context("the lock is not granted")?? {
            Some(line) if line == "locked" => Ok(Self { child, stdin }),
            other => bail!("no lock: {other:?}"),
        }
    }

    /// Lets go, and returns when that is done.
    ///
    /// # Errors
    /// When `psql` does not end.
    pub async fn release(self) -> Result<()> {
        let Self { mut child, mut stdin } = self;
        stdin.write_all(b"rollback;\n").await?;
        drop(stdin);
        timeout(PATIENCE, child.wait()).await.context("it does not let go")??;
        Ok(())
    }
}
