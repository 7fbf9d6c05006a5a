//! Wires a worker from its command line: folders, lock, key, stores, host, events. It refuses to act beside another
//! worker, and to make a key before it has seen which generation is published.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, bail};
use spanwire_dataplane::{
    key::SecretKey,
    local::{LocalConfig, LocalDevices},
    probe::Prober,
};
use spanwire_engine::{port::WorkerStore, worker::Settings};
use spanwire_store::dir::{LocalDir, WorkerDir};
use tokio::task::JoinSet;

use super::{
    HostFacts, Ports, Worker, dry_run,
    identity::Identity,
    own_key::{own_key, wait_for_key},
    probing::{self, NoProbes, Probing},
    uninstall::WantsNothing,
};
use crate::{
    cli::{LogFormat, WorkerArgs},
    clock::Clock,
    driver::{self, Cadence, Trigger, Verdict},
    folder,
    key_file::{KeyFile, OwnKey},
    lock::{Held, Lock},
    resolver::{Resolver, SystemLookup},
    stop::Stop,
};

/// The abstract socket name that stands for "a worker acts in this network namespace".
const NAMESPACE_LOCK: &str = "spanwire/worker";

/// Becomes a worker.
///
/// # Errors
/// The command line asks for what this version does not have, or something that is needed at start is missing.
pub async fn start(args: WorkerArgs, output: LogFormat) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals().context("cannot listen for signals")?;
    let setting = Setting::new(args)?;
    if setting.args.dry_run {
        return preview(&setting, output).await;
    }
    folder::make(&setting.local)?;
    let Some(_held) = setting.lock(&stop).await? else { return Ok(setting.stood_by(output)) };
    if setting.args.uninstall {
        return uninstall(&setting, output, &stop).await;
    }
    act(&setting, output, &stop).await
}

/// The command line with its places resolved.
struct Setting {
    args: WorkerArgs,
    control: PathBuf,
    local: PathBuf,
    key_file: KeyFile,
}
