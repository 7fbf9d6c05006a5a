//! Logs: for people on a terminal, or one JSON object a line, always on stderr. It refuses to log keys: no type that
//! holds a secret can be formatted.

use std::io;

use tracing_subscriber::{EnvFilter, fmt};

use crate::cli::LogFormat;

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The level is neither a level nor a list of directives.
    #[error(
        "--log-level {level:?} is not understood: use error, warn, info, debug, trace, or module=level lists"
    )]
    Level {
        /// As given.
        level: String,
        /// What is wrong with it.
        #[source]
        cause: tracing_subscriber::filter::ParseError,
    },
}

/// Sets the process up for logs of `level` and above in `format`.
///
/// # Errors
/// The level is not understood.
pub fn init(format: LogFormat, level: &str) -> Result<(), Error> {
    let filter =
        EnvFilter::try_new(level).map_err(|cause| Error::Level { level: level.to_owned(), cause })?;
    let builder = fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        LogFormat::Human => {
            builder.with_target(false).with_ansi(io::IsTerminal::is_terminal(&io::stderr())).init();
        }
        LogFormat::Json => builder.json().flatten_event(true).with_current_span(false).init(),
    }
    Ok(())
}
