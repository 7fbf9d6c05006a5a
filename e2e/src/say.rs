//! Where progress is written. It refuses the standard output where that belongs to a document.

use std::{io::Write as _, process::ExitCode};

/// Progress for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Say {
    /// To standard output.
    Out,
    /// To standard error.
    Err,
    /// Nowhere.
    Nothing,
}

impl Say {
    /// Writes a line.
    pub fn line(self, text: impl AsRef<str>) {
        let text = text.as_ref();
        // A reader that went away is told nothing more.
        let _ = match self {
            Say::Out => writeln!(std::io::stdout(), "{text}"),
            Say::Err => writeln!(std::io::stderr(), "{text}"),
            Say::Nothing => Ok(()),
        };
    }
}

/// How a program ends: an error is told with its causes on standard error.
pub fn end(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
