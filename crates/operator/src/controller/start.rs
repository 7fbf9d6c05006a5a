//! Wires a controller from its command line: store, turn, events. It refuses to act beside another controller.

use std::{net::SocketAddr, process::ExitCode};

use anyhow::Context as _;
use spanwire_api::rbac::CONTROLLER_LEASE;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::{Controller, backends::Backends, heard};
use crate::{
    cli::{ControllerArgs, LogFormat},
    clock::Clock,
    driver::{self, Cadence, Outcome, Trigger, Verdict},
    endpoint, events,
    health::Health,
    lock::Lock,
    metrics::{
        Metrics,
        changes::{Networks, Shown},
        pass::Measured,
    },
    stop::Stop,
    stores::{ControllerPlace, Site},
    turn::{Claim, Turn},
};

/// Who writes Events.
const CONTROLLER: &str = "controller";

/// Becomes a controller.
///
/// # Errors
/// The store is not there, or how to reach it is not known.
pub async fn start(
    args: ControllerArgs,
    output: LogFormat,
    listen: Option<SocketAddr>,
) -> anyhow::Result<ExitCode> {
    let site = Site::of(&args.control, args.control_namespace.as_deref()).await?;
    let stop = Stop::on_signals().context("cannot listen for signals")?;
    let (metrics, health) = (Metrics::of_controller(), Health::of_controller());
    metrics.show_requests("control", &site);
    let endpoint = endpoint::open(listen.filter(|_| !args.rhythm.once), &metrics, &health).await?;
    let store = ControllerPlace::open(&site)?;
    let (trigger, mut tasks) = (Trigger::default(), JoinSet::new());
    if endpoint.is_some() {
        tasks.spawn(heard::wait(store.clone(), health.clone()));
    }
    let Some(mut turn) = turn(&site, args.rhythm.once, &stop, &health).await? else {
        return Ok(if args.rhythm.once { stands_by(output) } else { ExitCode::SUCCESS });
    };
    trigger.watch(&mut tasks, "control store", store.watch()?);
    let (events, writing) = events::begin(site.events(CONTROLLER));
    let (clock, networks) = (Clock::new()?, Networks::default());
    metrics.show(Shown { networks: networks.clone(), clock: clock.clone(), health: health.clone() });
    let mut controller =
        Controller { store, clock, events, health: health.clone(), networks, backends: Backends::default() };
    if args.rhythm.once {
        let verdict = driver::once(&mut controller, &stop).await;
        tokio::join!(turn.give_back(), writing.finish(controller.events));
        return Ok(say(&verdict, output));
    }
    tracing::info!(control = %args.control, "the controller acts");
    let cadence = Cadence { resync: args.rhythm.resync };
    let acts = async || {
        let _acting = health.acts(cadence.resync);
        let mut measured = Measured::new(&mut controller, &metrics, &health);
        driver::run(&mut measured, &trigger, cadence, &stop).await;
    };
    turn.act(&stop, acts).instrument(tracing::info_span!("controller")).await;
    tokio::join!(turn.give_back(), writing.finish(controller.events));
    Ok(ExitCode::SUCCESS)
}

/// A loop waits for its turn, a single run does not.
async fn turn(site: &Site, once: bool, stop: &Stop, health: &Health) -> anyhow::Result<Option<Turn>> {
    let lock = match site {
        Site::Folder(folder) => Lock { file: Some(folder.join(".controller.lock")), namespace: None },
        Site::Cluster(connection) => Lock { file: None, namespace: Some(connection.lock_name()) },
    };
    let claim = Claim { lock, site, lease: CONTROLLER_LEASE.to_owned(), health: health.clone() };
    if once { claim.try_take().await } else { claim.take(stop).await }
}

fn stands_by(output: LogFormat) -> ExitCode {
    let wait = "the other controller that acts on this store to end".to_owned();
    say(&Verdict::of(Outcome::waiting(wait)), output)
}

fn say(verdict: &Verdict, output: LogFormat) -> ExitCode {
    println!("{}", verdict.render(output));
    verdict.exit_code().into()
}
