//! Glossary.
pub mod ids;
pub mod time;
