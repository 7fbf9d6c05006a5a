//! How faults are classed and how an unreadable object is named. It refuses to decide what to do about them: the
//! driver does, from the class.

/// What a fault asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Try again after a pause; the world may be different then.
    Retry,
    /// Nothing to do before something else changes.
    WaitForChange,
    /// A person has to act; trying again is still harmless.
    NeedsHuman,
}

impl Class {
    /// The word used in metrics, events and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Retry => "Retry",
            Class::WaitForChange => "WaitForChange",
            Class::NeedsHuman => "NeedsHuman",
        }
    }
}

/// An object that is there but could not be read: it counts as unknown, never as absent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unreadable {
    /// Kind in the plural, lower case, as in `gateways`.
    pub kind: String,
    /// Name of the object, as far as it is known.
    pub name: String,
    /// Where and why, for people: path, line, and what was expected.
    pub cause: String,
}
