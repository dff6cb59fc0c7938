//! Glossary.
pub mod answer;
pub mod ask;
pub mod field_error;
pub mod ids;
pub mod object;
pub mod prompt;
pub mod time;
