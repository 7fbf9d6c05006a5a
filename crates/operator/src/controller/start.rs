//! Wires a controller from its command line: folder, lock, store, events. It refuses to act beside another controller.

use std::process::ExitCode;

use anyhow::Context as _;
use spanwire_store::dir;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::Controller;
use crate::{
    cli::{ControllerArgs, LogFormat},
    clock::Clock,
    driver::{self, Cadence, Outcome, Trigger, Verdict},
    lock::{Held, Lock},
    stop::Stop,
};

/// Becomes a controller.
///
/// # Errors
/// The command line asks for what this version does not have, or the store is not there.
pub async fn start(args: ControllerArgs, output: LogFormat) -> anyhow::Result<ExitCode> {
    let folder = args.control.folder("--control")?;
    let stop = Stop::on_signals().context("cannot listen for signals")?;
    let store = dir::Controller::open(folder)?;
    let lock = Lock { file: folder.join(".controller.lock"), namespace: None };
    let Some(_held) = turn(&lock, args.rhythm.once, &stop).await? else {
        return Ok(if args.rhythm.once { stands_by(output) } else { ExitCode::SUCCESS });
    };
    let (trigger, mut tasks) = (Trigger::default(), JoinSet::new());
    trigger.watch(&mut tasks, "control store", store.watch()?);
    let mut controller = Controller { store, clock: Clock::new()? };
    if args.rhythm.once {
        return Ok(say(&driver::once(&mut controller, &stop).await, output));
    }
    tracing::info!(control = %args.control, "the controller acts");
    let cadence = Cadence { resync: args.rhythm.resync };
    driver::run(&mut controller, &trigger, cadence, &stop)
        .instrument(tracing::info_span!("controller"))
        .await;
    Ok(ExitCode::SUCCESS)
}

/// A loop waits for its turn, a single run does not.
async fn turn(lock: &Lock, once: bool, stop: &Stop) -> anyhow::Result<Option<Held>> {
    if once {
        return Ok(lock.try_take()?);
    }
    tokio::select! {
        held = lock.take() => Ok(Some(held?)),
        () = stop.requested() => Ok(None),
    }
}

fn stands_by(output: LogFormat) -> ExitCode {
    let wait = "the other controller that acts on this store to end".to_owned();
    say(&Verdict::of(Outcome::waiting(wait)), output)
}

fn say(verdict: &Verdict, output: LogFormat) -> ExitCode {
    println!("{}", verdict.render(output));
    verdict.exit_code().into()
}
