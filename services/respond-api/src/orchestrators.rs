//! Finds orchestrators and speaks to them.

use domain::ids::{Epoch, SessionId};
use kit::auth::InternalToken;
use parking_lot::Mutex;
use secrecy::ExposeSecret as _;
use std::collections::HashMap;
use store::{Store, StoreError};
use wire::{Client, Secret};

/// Stands for the gateway among epochs, which begin with 1.
const GATEWAY: Epoch = Epoch(0);

/// Most clients kept. Epochs are never used again, so old ones only take up room.
const KEPT: usize = 256;

/// An orchestrator as the database names it.
#[derive(Clone, Debug)]
pub(crate) struct Orchestrator {
    /// Its epoch: whom a call is meant for.
    pub(crate) epoch: Epoch,
    /// A client of it.
    pub(crate) client: Client,
}

/// Finds orchestrators. An epoch's address never changes, so each is looked up once.
#[derive(Debug)]
pub(crate) struct Orchestrators {
    store: Store,
    token: Secret,
    /// Stands before all of them, where there is one.
    gateway: Option<String>,
    clients: Mutex<HashMap<Epoch, Client>>,
}

impl Orchestrators {
    pub(crate) fn new(store: Store, token: &InternalToken, gateway: Option<String>) -> Self {
        let token = Secret::new(token.secret().expose_secret());
        Self { store, token, gateway, clients: Mutex::default() }
    }

    /// The orchestrator of an epoch, whether or not it lives. `None` if there never was one, or its address cannot be
    /// used.
    pub(crate) async fn of_epoch(&self, epoch: Epoch) -> Result<Option<Orchestrator>, StoreError> {
        let kept = self.clients.lock().get(&epoch).cloned();
        if let Some(client) = kept {
            return Ok(Some(Orchestrator { epoch, client }));
        }
        let instance = self.store.instance(epoch).await?;
        Ok(instance.and_then(|instance| self.at(epoch, &instance.url)))
    }

    /// The owner of a session, if it has one whose lease is valid.
    pub(crate) async fn live_owner(&self, session: SessionId) -> Result<Option<Orchestrator>, StoreError> {
        let owner = self.store.owner_of(session).await?.filter(|owner| owner.live);
        Ok(owner.and_then(|owner| self.at(owner.epoch, &owner.url)))
    }

    /// Any orchestrator whose lease is valid: the gateway's choice, where there is a gateway.
    pub(crate) async fn any(&self) -> Result<Option<Orchestrator>, StoreError> {
        if let Some(gateway) = &self.gateway {
            return Ok(self.at(GATEWAY, gateway));
        }
        let all = self.store.live_orchestrators().await?;
        Ok(all.iter().find_map(|instance| self.at(instance.epoch, &instance.url)))
    }

    fn at(&self, epoch: Epoch, url: &str) -> Option<Orchestrator> {
        let mut clients = self.clients.lock();
        if let Some(client) = clients.get(&epoch) {
            return Some(Orchestrator { epoch, client: client.clone() });
        }
        match Client::new(url, Some(&self.token)) {
            Ok(client) => {
                if clients.len() >= KEPT {
                    clients.clear();
                }
                clients.insert(epoch, client.clone());
                Some(Orchestrator { epoch, client })
            }
            Err(why) => {
                tracing::error!(%epoch, %why, "an orchestrator advertises an address that cannot be used");
                None
            }
        }
    }
}
