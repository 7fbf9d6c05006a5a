//! The binary `spanwire`: reads the command line, sets logging up, becomes one of the processes. It refuses to decide.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use spanwire::{
    cli::{Cli, Command, Common},
    controller, dataplane, logging,
    traces::Traces,
    worker,
};
use tokio::runtime::{Builder, Runtime};

/// How long blocking calls (a look-up of a name) may hold up the end.
const LEAVE: std::time::Duration = std::time::Duration::from_millis(200);

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("spanwire: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let Cli { common, command } = cli;
    keep_large_buffers_lazy();
    let traces = common.collector().map(|url| Traces::to(url, command.service())).transpose()?;
    logging::init(common.log_format, &common.log_level, traces.as_ref())?;
    let code = start(common, command);
    if let Some(traces) = traces {
        traces.finish();
    }
    code
}

fn start(common: Common, command: Command) -> anyhow::Result<ExitCode> {
    let (output, listen) = (common.output(), common.metrics_listen);
    let runtime = runtime(&command).context("cannot start the runtime")?;
    let code = runtime.block_on(async {
        match command {
            Command::Controller(args) => controller::start::start(*args, output, listen).await,
            Command::Worker(args) => worker::start::start(*args, output, listen).await,
            Command::Dataplane(args) => dataplane::start(args, listen).await,
        }
    })?;
    runtime.shutdown_timeout(LEAVE);
    Ok(code)
}

/// Worker and controller are light: one thread. The dataplane moves packets: two.
fn runtime(command: &Command) -> std::io::Result<Runtime> {
    match command {
        Command::Controller(_) | Command::Worker(_) => Builder::new_current_thread().enable_all().build(),
        Command::Dataplane(_) => Builder::new_multi_thread().worker_threads(2).enable_all().build(),
    }
}

/// Each device has tens of megabytes of buffers and uses their first pages. The C library would take the second such
/// buffer from memory that it has to clear, which makes all of it resident: with a fixed limit large ones stay mappings.
#[cfg(target_env = "gnu")]
fn keep_large_buffers_lazy() {
    const LARGE: i32 = 1 << 20;
    // SAFETY: it changes a setting of the allocator and touches no memory of ours.
    unsafe { nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, LARGE) };
}

#[cfg(not(target_env = "gnu"))]
fn keep_large_buffers_lazy() {}
