//! Spans of time on the command line: `500ms`, `90s`, `10m`, `2h`.

use std::time::Duration;

/// Reads a span; a bare number is seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "a span is a number and ms, s, m or h, such as 90s".to_owned())?;
    let millis_each = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("the unit {unit:?} is none of ms, s, m, h")),
    };
    number.checked_mul(millis_each).map(Duration::from_millis).ok_or_else(|| "the span is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_with_their_unit() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(parse("2h"), Ok(Duration::from_secs(7_200)));
        for bad in ["", "m", "1d", "-1s", "1.5s", "99999999999999999999h", "18446744073709551615h"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
