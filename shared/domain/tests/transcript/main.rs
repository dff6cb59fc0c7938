//! The transcript: whatever happens in a session, what the model is told is what its provider takes.

mod controls;
mod figures;
mod import;
mod judge;
mod lines;
mod scripts;
mod world;
