//! What is printed on stdout: one JSON document, or plain aligned text.

use clap::ValueEnum;
use serde::Serialize;
use std::io::{self, Write};

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs: exactly one document.
    Json,
}

/// Where results go.
pub(crate) struct Output {
    format: Format,
    out: Box<dyn Write + Send>,
}

impl Output {
    /// Results on stdout.
    pub(crate) fn stdout(format: Format) -> Self {
        Self { format, out: Box::new(io::stdout()) }
    }

    /// Whether programs read it.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// The one result of a command: the document itself, or what `text` makes of it.
    pub(crate) fn show<T: Serialize>(
        &mut self,
        result: &T,
        text: impl FnOnce(&mut Self, &T) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.is_json() {
            serde_json::to_writer_pretty(&mut self.out, result)?;
            writeln!(self.out)?;
        } else {
            text(self, result)?;
        }
        self.out.flush()
    }

    /// One of many results that come one after the other: a document of its own on one line, or a line of text.
    pub(crate) fn item<T: Serialize>(&mut self, item: &T, text: &str) -> io::Result<()> {
        if self.is_json() {
            serde_json::to_writer(&mut self.out, item)?;
            writeln!(self.out)?;
        } else {
            writeln!(self.out, "{}", one_line(text))?;
        }
        self.out.flush()
    }

    /// Lines of text.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{}", plain(text))?;
        self.out.flush()
    }

    /// Names and values below each other.
    pub(crate) fn fields(&mut self, fields: &[(&str, String)]) -> io::Result<()> {
        let rows: Vec<Vec<String>> = fields.iter().map(|(name, value)| vec![(*name).into(), value.clone()]).collect();
        self.write_aligned(&rows)
    }

    /// A table with a head line; without rows, nothing.
    pub(crate) fn table(&mut self, head: &[&str], rows: Vec<Vec<String>>) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
        let all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
        self.write_aligned(&all)
    }

    fn write_aligned(&mut self, rows: &[Vec<String>]) -> io::Result<()> {
        for line in aligned(rows) {
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }
}

/// Lines whose columns stand below each other, two spaces apart.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Text without the control characters by which it could steer a terminal; line breaks and tabs stay.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|char| if char.is_control() && !matches!(char, '\n' | '\t') { char::REPLACEMENT_CHARACTER } else { char })
        .collect()
}

/// The same on one line.
fn one_line(text: &str) -> String {
    plain(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// At most `chars` characters, with an ellipsis if something is missing.
pub(crate) fn shortened(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(chars.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// A value that may be missing.
pub(crate) fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let rows = vec![vec!["ID".into(), "NAME".into()], vec!["1".into(), "Über\nuns".into()]];
        assert_eq!(aligned(&rows), ["ID  NAME", "1   Über uns"]);
    }

    #[test]
    fn text_cannot_steer_the_terminal() {
        assert_eq!(plain("a\u{1b}[31mb\nc\r"), "a\u{fffd}[31mb\nc\u{fffd}");
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("abcd", 4), "abcd");
    }
}
