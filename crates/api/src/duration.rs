//! Durations as people write them: `60s`, `1m30s`, `500ms`. It refuses fractions of a millisecond and bare numbers.

use std::{borrow::Cow, fmt, str::FromStr, time};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time, a string in objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(pub time::Duration);

/// Why a string is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration: write whole numbers with h, m, s or ms, as in 60s or 1m30s")]
pub struct DurationError(pub String);

/// What a schema can say of it.
const PATTERN: &str = "^([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,12}s)?([0-9]{1,15}ms)?$";
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

impl FromStr for Duration {
    type Err = DurationError;
    fn from_str(text: &str) -> Result<Self, DurationError> {
        parse(text)
            .map(|millis| Self(time::Duration::from_millis(millis)))
            .ok_or_else(|| DurationError(text.to_owned()))
    }
}

/// Milliseconds. Units stand in falling order, each at most once.
fn parse(text: &str) -> Option<u64> {
    let (mut rest, mut total, mut units) = (text, 0u64, UNITS.iter());
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let (_, millis) = units.find(|(name, _)| *name == unit)?;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(*millis)?)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        if millis.is_multiple_of(1000) { write!(f, "{}s", millis / 1000) } else { write!(f, "{millis}ms") }
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": PATTERN, "minLength": 1, "maxLength": 64})
    }
}

impl From<time::Duration> for Duration {
    fn from(duration: time::Duration) -> Self {
        Self(duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_forms() {
        for (text, millis, canonical) in [
            ("60s", 60_000, "60s"),
            ("1m30s", 90_000, "90s"),
            ("1h", 3_600_000, "3600s"),
            ("1500ms", 1500, "1500ms"),
            ("1s500ms", 1500, "1500ms"),
            ("0s", 0, "0s"),
        ] {
            let parsed: Duration = text.parse().unwrap();
            assert_eq!(parsed.0.as_millis(), millis, "{text}");
            assert_eq!(parsed.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(parsed));
        }
    }

    #[test]
    fn refused_forms() {
        for bad in
            ["", "60", "s", "-1s", "1.5s", "1s1m", "1s1s", "1d", " 1s", "99999999999999999999s", "1e3s"]
        {
            assert_eq!(bad.parse::<Duration>(), Err(DurationError(bad.to_owned())), "{bad}");
        }
    }
}
