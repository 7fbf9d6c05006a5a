//! Why a write against an expected version was refused. It refuses to say what to do about it: the pass ends and reads
//! again.

use std::fmt;

/// Why a write was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// It should not exist yet, and does.
    Exists,
    /// It should exist, and does not.
    Missing,
    /// It was deleted and made again.
    OtherUid,
    /// It was changed after it was read.
    Changed,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Conflict::Exists => "it exists already",
            Conflict::Missing => "it is gone",
            Conflict::OtherUid => "it was deleted and made again",
            Conflict::Changed => "it was changed after it was read",
        })
    }
}
