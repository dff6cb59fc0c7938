//! Queries against a real database whose rows were made by the domain's own commands.

mod access;
mod dispatches;
mod events;
mod history;
mod pages;
mod questions;
mod world;
