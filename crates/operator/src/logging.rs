//! Logs: for people on a terminal, or one JSON object a line, always on stderr. It refuses to log keys: no type that
//! holds a secret can be formatted.

use std::io;

use tracing_subscriber::{
    EnvFilter, Layer as _, filter::LevelFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use crate::{cli::LogFormat, traces::Traces};

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

/// Sets the process up for logs of `level` and above in `format`, and for `traces`, which no level of logs affects.
///
/// # Errors
/// The level is not understood.
pub fn init(format: LogFormat, level: &str, traces: Option<&Traces>) -> Result<(), Error> {
    let filter = EnvFilter::try_new(directives(level))
        .map_err(|cause| Error::Level { level: level.to_owned(), cause })?;
    let lines = fmt::layer().with_writer(io::stderr);
    let lines = match format {
        LogFormat::Human => {
            lines.with_target(false).with_ansi(io::IsTerminal::is_terminal(&io::stderr())).boxed()
        }
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).with(traces.map(Traces::layer)).init();
    Ok(())
}

/// The WireGuard library calls it an error when a peer that nobody can dial yet is not dialled, and the libraries of API
/// servers repeat each refused call that a pass reports anyway: they are heard only by who looks closely.
fn directives(level: &str) -> String {
    let quiet = [LevelFilter::ERROR, LevelFilter::WARN, LevelFilter::INFO];
    match level.parse::<LevelFilter>() {
        Ok(plain) if quiet.contains(&plain) => {
            format!("{level},gotatun=off,kube_client=off,kube_runtime=off,kube_lease_manager=off")
        }
        Ok(_) | Err(_) => level.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_level_leaves_the_library_out_and_everything_else_is_taken_as_written() {
        assert_eq!(
            directives("info"),
            "info,gotatun=off,kube_client=off,kube_runtime=off,kube_lease_manager=off"
        );
        for written in ["debug", "trace", "info,gotatun=debug", "spanwire=trace", "!"] {
            assert_eq!(directives(written), written);
        }
        for understood in ["info", "WARN", "off", "debug,spanwire=trace"] {
            assert!(EnvFilter::try_new(directives(understood)).is_ok(), "{understood}");
        }
    }
}
