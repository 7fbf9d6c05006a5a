//! Which pairs must keep a path, and how long. It refuses to excuse a loss afterwards: this is fixed before the
//! measurement begins.

use std::fmt;

use spanwire_api::Phase;

/// How long a pair has a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// From the beginning to the end.
    Always,
    /// Until a phase begins, and not afterwards: transit is Isolated, and what the pair went through is no hub then.
    Until(Phase),
    /// From the end of the change on: transit is Isolated, and one of the pair became a hub.
    Afterwards,
    /// At no time: transit is Isolated and both are spokes.
    Never,
}

impl fmt::Display for Keeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keeps::Always => f.write_str("always"),
            Keeps::Until(phase) => write!(f, "until {phase:?}"),
            Keeps::Afterwards => f.write_str("after the change"),
            Keeps::Never => f.write_str("not required"),
        }
    }
}
