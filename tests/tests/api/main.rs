//! What the descriptions of the API promise is what running services do.

mod bindings;
mod codes;
mod document;
mod doubt;
mod events;
mod replay;
mod routes;
mod schema;
mod sources;
mod story;
