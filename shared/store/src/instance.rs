//! Instances: who is there, under which fencing epoch, and until when that is believed (design 5.8).

use crate::error::StoreError;
use crate::pool::Store;
use domain::ids::{Epoch, SessionId};
use domain::time::Timestamp;
use std::time::Duration;

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
#[derive(Debug)]
pub struct InstanceConnection {}

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
        todo!()
    }

    /// Makes the lease valid for `lease` from now by the database's clock, also after it had lapsed, unless somebody
    /// fenced it.
    ///
    /// # Errors
    /// The database does not answer; the next call connects anew.
    pub async fn renew(&mut self, epoch: Epoch, lease: Duration) -> Result<Renewal, StoreError> {
        todo!()
    }

    /// Gives the epoch up at shutdown: it is fenced, and its sessions may be taken over at once.
    ///
    /// # Errors
    /// The database does not answer; then the lease lapses by itself.
    pub async fn release(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        todo!()
    }
}

impl Store {
    /// A connection for one process's lease. Connects at its first use.
    #[must_use]
    pub fn instance_connection(&self) -> InstanceConnection {
        todo!()
    }

    /// The owner of a session, if it has one; also one whose lease has lapsed.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn owner_of(&self, session: SessionId) -> Result<Option<Owner>, StoreError> {
        todo!()
    }

    /// One instance by its epoch.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn instance(&self, epoch: Epoch) -> Result<Option<Instance>, StoreError> {
        todo!()
    }

    /// Orchestrators whose lease is valid, newest first.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn live_orchestrators(&self) -> Result<Vec<Instance>, StoreError> {
        todo!()
    }

    /// Fences every orchestrator whose lease has lapsed, and gives the epochs that are fenced and still own sessions:
    /// those have to be taken over, session by session ([`Store::sessions_owned_by`]).
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn fence_lapsed(&self) -> Result<Vec<Epoch>, StoreError> {
        todo!()
    }
}
