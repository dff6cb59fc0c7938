//! The dev token: admin of every workspace, the same after each start with one data folder.

use super::folder::Folder;
use crate::database::{create_admin_token, keep_admin_token, store_failure, write_failure};
use crate::failure::Failure;
use kit::auth::{TokenKind, recognise};
use secrecy::{ExposeSecret as _, SecretString};
use store::{Store, StoreError, WriteError};

const FILE: &str = "token";
const NAME: &str = "dev";

/// The folder's token; a new one where there is none, or where the database would never take it again.
pub(super) async fn ensure(folder: &Folder, store: &Store) -> Result<SecretString, Failure> {
    if let Some(secret) = folder.read(FILE)?
        && let Some((TokenKind::Api, hash)) = recognise(&secret)
        && is_known(store, hash).await?
    {
        return Ok(secret.into());
    }
    let (_, secret) = create_admin_token(store, NAME, None).await?;
    folder.write(FILE, secret.expose_secret())?;
    Ok(secret)
}

/// Whether the database takes the token. One that it has never seen is made known to it: the folder may have been
/// pointed at another database.
async fn is_known(store: &Store, hash: [u8; 32]) -> Result<bool, Failure> {
    if store.principal_by_hash(&hash).await.map_err(|error| store_failure(&error))?.is_some() {
        return Ok(true);
    }
    match keep_admin_token(store, NAME, hash, None).await {
        Ok(_) => Ok(true),
        // It is there already, revoked.
        Err(WriteError::Store(StoreError::Broken(_)) | WriteError::Conflict(_)) => Ok(false),
        Err(error) => Err(write_failure(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use devstack::TestDb;
    use store::Scope;

    async fn database() -> (TestDb, Store) {
        let migrate = async |url: &str| Ok(Store::migrate(url).await?);
        let db = TestDb::create(migrate, &Store::schema_fingerprint()).await.expect("a test database");
        let store = crate::database::connect_as("test", db.url(), 2).await.expect("it accepts connections");
        (db, store)
    }

    #[tokio::test]
    async fn the_token_stays_until_it_is_revoked() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::open(root.path()).expect("it can be used");
        let (_db, store) = database().await;
        let again = async |store: &Store| {
            let token = ensure(&folder, store).await.expect("there is a token");
            assert_eq!(folder.read(FILE).expect("it can be read").as_deref(), Some(token.expose_secret()));
            token.expose_secret().to_owned()
        };
        let first = again(&store).await;
        assert_eq!(again(&store).await, first, "a restart");
        let (_other_db, other) = database().await;
        assert_eq!(again(&other).await, first, "another database");
        let hash = kit::auth::hash(&first);
        let known = store.principal_by_hash(&hash).await.expect("it answers").expect("it is valid");
        store.revoke_token(&Scope::All, known.token, None).await.expect("it can be revoked");
        assert_ne!(again(&store).await, first, "a revoked token");
    }
}
