//! What every query has at hand.

use access::Person;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use store::Store;
use wire::Problem;

/// What every query has at hand. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App {
    /// The database.
    pub store: Store,
}

impl App {
    /// Queries of this database.
    #[must_use]
    pub const fn new(store: Store) -> Self {
        Self { store }
    }
}

/// Who asks: an extractor that refuses whoever is no person.
#[derive(Debug)]
pub(crate) struct Reader(pub(crate) Person);

impl FromRequestParts<App> for Reader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        access::person(&app.store, &parts.headers).await.map(Self)
    }
}
