//! The text of a name, kept so that two of them are told apart by one comparison of numbers. It refuses to know what a
//! good name is.

use std::{cmp::Ordering, fmt, sync::Arc};

/// Bytes of a text that stand in place.
const HEAD: usize = 16;

/// A text without zero bytes. A short one needs no heap.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Label {
    /// Its first bytes, then zeros.
    head: [u8; HEAD],
    /// The whole text, where it is longer than that.
    long: Option<Arc<str>>,
}

impl Label {
    pub(super) fn new(text: &str) -> Self {
        let mut head = [0; HEAD];
        for (to, from) in head.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        Self { head, long: (text.len() > HEAD).then(|| text.into()) }
    }

    pub(super) fn as_str(&self) -> &str {
        if let Some(text) = &self.long {
            return text;
        }
        let zeros = self.number().trailing_zeros() as usize / 8;
        let text = self.head.get(..HEAD - zeros).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }

    /// The head as a number with the same order.
    fn number(&self) -> u128 {
        u128::from_be_bytes(self.head)
    }
}

/// The order of the texts: zeros come before all that a text has, as its end does.
impl Ord for Label {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number().cmp(&other.number()).then_with(|| self.long.cmp(&other.long))
    }
}

impl PartialOrd for Label {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_their_order_are_kept() {
        let ends = ["", "-", "0", "a", "ab", "b", "z9"];
        let texts: Vec<String> = [0, 1, 14, 15, 16, 17, 40]
            .into_iter()
            .flat_map(|length| ends.map(|end| "m".repeat(length) + end))
            .collect();
        for a in &texts {
            assert_eq!(Label::new(a).as_str(), a);
            assert_eq!(format!("{:?}", Label::new(a)), format!("{a:?}"));
            for b in &texts {
                assert_eq!(Label::new(a).cmp(&Label::new(b)), a.cmp(b), "{a} {b}");
                assert_eq!(Label::new(a) == Label::new(b), a == b, "{a} {b}");
            }
        }
    }
}
