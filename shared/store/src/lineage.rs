//! Which history of the database this is (design 4.7).
//!
//! A restore, or a failover to a standby that lagged, may have lost commits that readers have seen. What they hold must
//! not count as newer than what the database says now, so the epoch before every revision is raised.

use crate::error::StoreError;
use crate::pool::Store;
use sqlx::PgConnection;

/// Compares the database's lineage with the recorded one, raises the epoch if they differ, and gives the epoch.
pub(crate) async fn check(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    let found = sqlx::query!(
        r#"
        select pg_is_in_recovery() as "standby!",
               case when not pg_is_in_recovery()
                    then substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) end as timeline,
               system_identifier::text as "system!",
               (select epoch from lineage) as epoch,
               (select (system_identifier, timeline) from lineage)::text as recorded
        from pg_control_system()
        "#
    )
    .fetch_one(&mut *connection)
    .await?;
    let Some(timeline) = found.timeline.filter(|_| !found.standby) else {
        return Err(sqlx::Error::Configuration("the server is a standby and takes no writes".into()));
    };
    let here = format!("({},{timeline})", found.system);
    if let (Some(epoch), Some(recorded)) = (found.epoch, found.recorded)
        && recorded == here
    {
        return Ok(epoch);
    }
    raise(connection, &found.system, &timeline).await
}

/// Several connections find the difference at once; the first one raises the epoch and the others see that it did.
async fn raise(connection: &mut PgConnection, system: &str, timeline: &str) -> Result<i64, sqlx::Error> {
    let raised = sqlx::query_scalar!(
        "
        insert into lineage as l (epoch, system_identifier, timeline) values (1, $1, $2)
        on conflict (only_row) do update
            set epoch = l.epoch + 1, system_identifier = $1, timeline = $2, raised_at = clock_timestamp()
            where (l.system_identifier, l.timeline) is distinct from ($1, $2)
        returning epoch
        ",
        system,
        timeline
    )
    .fetch_optional(&mut *connection)
    .await?;
    match raised {
        Some(1) => {
            tracing::info!(system, timeline, "recorded the lineage of a new database");
            return Ok(1);
        }
        Some(epoch) => {
            tracing::warn!(epoch, system, timeline, "the database is another than before: its epoch was raised");
            return Ok(epoch);
        }
        None => {}
    }
    sqlx::query_scalar!("select epoch from lineage").fetch_one(connection).await
}

impl Store {
    /// Raises the lineage epoch by hand: every revision and position from now on counts as newer than any before.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn raise_lineage(&self) -> Result<i64, StoreError> {
        let epoch =
            sqlx::query_scalar!("update lineage set epoch = epoch + 1, raised_at = clock_timestamp() returning epoch")
                .fetch_one(&self.pool)
                .await?;
        Ok(epoch)
    }
}
