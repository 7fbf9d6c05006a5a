//! An error in one line, where it leaves this process or becomes text. It refuses to drop a cause.

use std::error::Error;

/// The error and its causes, joined by colons.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
