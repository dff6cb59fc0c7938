//! The rules, proven without a database: every pair of the table, random histories, and a model that is walked whole.

mod authority;
mod collect;
mod model;
mod nothing_lost;
mod outcomes;
mod properties;
mod queue;
mod reservations;
mod stage;
mod table;
