//! Moments and spans. The domain never reads a clock: every moment it knows was handed to it.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;
use time::format_description::FormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

const MICROS: &[FormatItem<'static>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");

/// A moment in UTC, to the microsecond: what Postgres keeps and what the outside reads (RFC 3339).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// A moment by microseconds since 1970.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The later of this moment and one microsecond after `last`: stamps of a session never stand still or go back,
    /// whatever the database's clock does.
    #[must_use]
    pub fn after(self, last: Self) -> Self {
        Self(self.0.max(last.0 + 1))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl Sub for Timestamp {
    type Output = Duration;
    /// The span since `earlier`; zero if that is later.
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl From<OffsetDateTime> for Timestamp {
    fn from(moment: OffsetDateTime) -> Self {
        Self(i64::try_from(moment.unix_timestamp_nanos() / 1_000).unwrap_or(i64::MAX))
    }
}

impl From<Timestamp> for OffsetDateTime {
    fn from(moment: Timestamp) -> Self {
        Self::from_unix_timestamp_nanos(i128::from(moment.0) * 1_000).unwrap_or(Self::UNIX_EPOCH)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = OffsetDateTime::from(*self).format(&MICROS).map_err(|_| fmt::Error)?;
        f.write_str(&text)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let moment = OffsetDateTime::parse(&text, &Rfc3339).map_err(de::Error::custom)?;
        Ok(Self::from(moment.to_offset(UtcOffset::UTC)))
    }
}

#[cfg(feature = "openapi")]
impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_and_writes_as_rfc_3339_with_microseconds() {
        let moment: Timestamp = serde_json::from_str("\"2026-11-30T10:00:00.5+02:00\"").expect("the text is RFC 3339");
        assert_eq!(moment.to_string(), "2026-11-30T08:00:00.500000Z");
        assert_eq!(serde_json::to_string(&moment).expect("a moment is a string"), "\"2026-11-30T08:00:00.500000Z\"");
    }

    #[test]
    fn stamps_are_monotone_though_the_clock_is_not() {
        let last = Timestamp::from_micros(10);
        assert_eq!(Timestamp::from_micros(5).after(last), Timestamp::from_micros(11));
        assert_eq!(Timestamp::from_micros(50).after(last), Timestamp::from_micros(50));
    }
}
