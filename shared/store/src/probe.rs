//! Invariants as queries over everything that is kept: what `doctor` and the crash tests ask.

use crate::error::StoreError;
use crate::pool::Store;
use crate::tx::Tx;
use sqlx::AssertSqlSafe;

/// Most rows told of one broken invariant.
const DETAILS_MAX: i64 = 20;

/// Here reading whole tables is what is wanted, which connections otherwise forbid.
const WHOLE: &str = "set local enable_seqscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on; \
                     set local plan_cache_mode = auto";

/// Something that must never be true, and is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's name.
    pub invariant: &'static str,
    /// The row concerned.
    pub detail: String,
    /// What an operator should do.
    pub what_to_do: &'static str,
}

/// Something that may be true for a moment and should not last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: &'static str,
    /// The row concerned.
    pub detail: String,
    /// What an operator should do if it lasts.
    pub what_to_do: &'static str,
}

/// One question to the database; every row it gives is an answer nobody wants.
pub(crate) struct Probe {
    pub(crate) name: &'static str,
    pub(crate) what_to_do: &'static str,
    /// Gives one text a row.
    pub(crate) sql: &'static str,
}

mod history;
mod invariants;
mod waiting;

const REPORT: &str = "report it with the rows of this session; no command repairs it";

impl Store {
    /// Every broken invariant; empty in a healthy database. Reads whole tables: not for every minute.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn violations(&self) -> Result<Vec<Violation>, StoreError> {
        let mut found = Vec::new();
        for Probe { name, what_to_do, sql } in invariants::PROBES.iter().chain(history::PROBES) {
            for detail in self.ask(sql).await? {
                found.push(Violation { invariant: name, detail, what_to_do });
            }
        }
        Ok(found)
    }

    /// The names of everything that [`Store::violations`] asks. What begins with `INV-` and a number is asked of that
    /// invariant; the ninth of the fourteen is no matter of rows (see `domain::invariant`).
    pub fn invariants_asked() -> impl Iterator<Item = &'static str> {
        invariants::PROBES.iter().chain(history::PROBES).map(|probe| probe.name)
    }

    /// Work that waits for somebody: overdue intents, due sessions without an owner, lapsed instances.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn stuck(&self) -> Result<Vec<Finding>, StoreError> {
        let mut found = Vec::new();
        for Probe { name, what_to_do, sql } in waiting::PROBES {
            for detail in self.ask(sql).await? {
                found.push(Finding { kind: name, detail, what_to_do });
            }
        }
        Ok(found)
    }

    async fn ask(&self, sql: &'static str) -> Result<Vec<String>, StoreError> {
        let sql = format!("select detail from ({sql}) probe (detail) limit {DETAILS_MAX}");
        let mut tx = Tx::begin(self).await?;
        sqlx::raw_sql(WHOLE).execute(tx.connection()).await?;
        // The statement is put together from constants of this crate alone.
        let found = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(tx.connection()).await?;
        tx.rollback(self).await;
        Ok(found)
    }
}
