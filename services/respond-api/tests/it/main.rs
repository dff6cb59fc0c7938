//! Commands against a real database, and against an owner whose every reply is the test's to choose.

mod access;
mod answers;
mod cancels;
mod commands;
mod keys;
mod membership;
mod owner;
mod queue;
mod races;
mod refusals;
mod settles;
mod world;
