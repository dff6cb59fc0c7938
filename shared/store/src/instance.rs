//! Instances: who is there, under which fencing epoch, and until when that is believed (design 5.8).

use crate::error::StoreError;
use crate::pool::Store;
use crate::schema::set_limits;
use domain::ids::{Epoch, SessionId};
use domain::time::Timestamp;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use std::time::Duration;
use time::OffsetDateTime;

/// How often a registration is repeated because another process of the same name registered at the same moment.
const REGISTER_TRIES: u32 = 5;

/// What a process serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstanceRole {
    /// Commands of people.
    RespondApi,
    /// Agents; may own sessions.
    Orchestrator,
    /// Reads and streams.
    Projection,
}

impl InstanceRole {
    const fn as_str(self) -> &'static str {
        match self {
            Self::RespondApi => "respond_api",
            Self::Orchestrator => "orchestrator",
            Self::Projection => "projection",
        }
    }
}

/// One process as the database knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its fencing number.
    pub epoch: Epoch,
    /// Its name: a successor of the same name fences it.
    pub name: String,
    /// Where others reach it.
    pub url: String,
    /// Until when it is believed to live.
    pub lease_until: Timestamp,
    /// Whether its writes are refused for ever.
    pub fenced: bool,
}

/// The instance that holds a session's waiters and watchdog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its fencing number.
    pub epoch: Epoch,
    /// Where it is reached.
    pub url: String,
    /// Whether its lease is valid by the database's clock.
    pub live: bool,
}

/// What a renewal found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease is valid for its full length again.
    Renewed,
    /// Somebody has taken over: this epoch never comes back.
    Fenced,
}

/// The connection a process renews its lease on: its own, so that a busy pool cannot cost the lease.
///
/// While a call runs it holds the connection out of the handle: a call that is dropped, for example by a time-out,
/// closes it, and the next call connects anew.
#[derive(Debug)]
pub struct InstanceConnection {
    connect: PgConnectOptions,
    connection: Option<PgConnection>,
}

impl InstanceConnection {
    /// Registers a process that starts and fences its predecessor of the same name at once.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn register(
        &mut self,
        name: &str,
        role: InstanceRole,
        url: &str,
        lease: Duration,
    ) -> Result<Epoch, StoreError> {
        let mut connection = self.take().await?;
        let mut tries = 0;
        let epoch = loop {
            tries += 1;
            match register(&mut connection, name, role, url, lease).await {
                Err(sqlx::Error::Database(error)) if error.is_unique_violation() && tries < REGISTER_TRIES => {}
                other => break other?,
            }
        };
        self.connection = Some(connection);
        Ok(epoch)
    }

    /// Makes the lease valid for `lease` from now by the database's clock, also after it had lapsed, unless somebody
    /// fenced it.
    ///
    /// # Errors
    /// The database does not answer; the next call connects anew.
    pub async fn renew(&mut self, epoch: Epoch, lease: Duration) -> Result<Renewal, StoreError> {
        let mut connection = self.take().await?;
        let renewed = sqlx::query!(
            "update instances set lease_until = clock_timestamp() + make_interval(secs => $2)
             where epoch = $1 and not fenced",
            epoch.0,
            lease.as_secs_f64()
        )
        .execute(&mut connection)
        .await?
        .rows_affected();
        self.connection = Some(connection);
        Ok(if renewed == 1 { Renewal::Renewed } else { Renewal::Fenced })
    }

    /// Gives the epoch up at shutdown: it is fenced, and its sessions may be taken over at once.
    ///
    /// # Errors
    /// The database does not answer; then the lease lapses by itself.
    pub async fn release(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        let mut connection = self.take().await?;
        sqlx::query!(
            "update instances set fenced = true, lease_until = least(lease_until, clock_timestamp()) where epoch = $1",
            epoch.0
        )
        .execute(&mut connection)
        .await?;
        self.connection = Some(connection);
        Ok(())
    }

    async fn take(&mut self) -> Result<PgConnection, sqlx::Error> {
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => {
                let mut connection = self.connect.connect().await?;
                set_limits(&mut connection).await?;
                Ok(connection)
            }
        }
    }
}

async fn register(
    connection: &mut PgConnection,
    name: &str,
    role: InstanceRole,
    url: &str,
    lease: Duration,
) -> Result<Epoch, sqlx::Error> {
    let mut tx = connection.begin().await?;
    sqlx::query!("update instances set fenced = true where name = $1 and not fenced", name).execute(&mut *tx).await?;
    let epoch = sqlx::query_scalar!(
        "insert into instances (name, role, advertised_url, lease_until)
         values ($1, $2, $3, clock_timestamp() + make_interval(secs => $4)) returning epoch",
        name,
        role.as_str(),
        url,
        lease.as_secs_f64()
    )
    .fetch_one(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(Epoch(epoch))
}

struct Row {
    epoch: i64,
    name: String,
    advertised_url: String,
    lease_until: OffsetDateTime,
    fenced: bool,
}

impl From<Row> for Instance {
    fn from(row: Row) -> Self {
        Self {
            epoch: Epoch(row.epoch),
            name: row.name,
            url: row.advertised_url,
            lease_until: row.lease_until.into(),
            fenced: row.fenced,
        }
    }
}

impl Store {
    /// A connection for one process's lease. Connects at its first use.
    #[must_use]
    pub fn instance_connection(&self) -> InstanceConnection {
        InstanceConnection { connect: self.connect.clone(), connection: None }
    }

    /// The owner of a session, if it has one; also one whose lease has lapsed.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn owner_of(&self, session: SessionId) -> Result<Option<Owner>, StoreError> {
        let row = sqlx::query!(
            r#"
            select s.owner_epoch as "epoch!", coalesce(i.advertised_url, '') as "url!",
                   coalesce(not i.fenced and i.lease_until > clock_timestamp(), false) as "live!"
            from task_sessions s left join instances i on i.epoch = s.owner_epoch
            where s.id = $1 and s.owner_epoch is not null
            "#,
            session.0
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|row| Owner { epoch: Epoch(row.epoch), url: row.url, live: row.live }))
    }

    /// One instance by its epoch.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn instance(&self, epoch: Epoch) -> Result<Option<Instance>, StoreError> {
        let row = sqlx::query_as!(
            Row,
            "select epoch, name, advertised_url, lease_until, fenced from instances where epoch = $1",
            epoch.0
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(Instance::from))
    }

    /// Orchestrators whose lease is valid, newest first.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn live_orchestrators(&self) -> Result<Vec<Instance>, StoreError> {
        let rows = sqlx::query_as!(
            Row,
            "select epoch, name, advertised_url, lease_until, fenced from instances
             where not fenced and role = 'orchestrator' and lease_until > statement_timestamp()
             order by epoch desc"
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(Instance::from).collect())
    }

    /// Fences every orchestrator whose lease has lapsed, and gives the epochs that are fenced and still own sessions:
    /// those have to be taken over, session by session ([`Store::sessions_owned_by`]).
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn fence_lapsed(&self) -> Result<Vec<Epoch>, StoreError> {
        sqlx::query!(
            "update instances set fenced = true
             where not fenced and role = 'orchestrator' and lease_until < clock_timestamp()"
        )
        .execute(&self.pool)
        .await?;
        self.fenced_owners().await
    }

    /// Epochs that are fenced and still own sessions, a predecessor of the caller's own name among them.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn fenced_owners(&self) -> Result<Vec<Epoch>, StoreError> {
        let epochs = sqlx::query_scalar!(
            "select epoch from instances i
             where fenced and exists (select from task_sessions s where s.owner_epoch = i.epoch and s.ended_at is null)
             order by epoch"
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(epochs.into_iter().map(Epoch).collect())
    }
}
