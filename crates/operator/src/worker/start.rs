//! Wires a worker from its command line: folders, lock, key, stores, host, events. It refuses to act beside another
//! worker, and to make a key before it has seen which generation is published.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, bail};
use spanwire_dataplane::{key::SecretKey, local::LocalDevices};
use spanwire_engine::{port::WorkerStore, worker::Settings};
use spanwire_store::dir;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::{
    Ports, Probes, Worker, dry_run,
    identity::Identity,
    local_host::{self, KeysOfDevices, NoProbes},
    own_key::{own_key, wait_for_key},
    probing::Probing,
    uninstall::WantsNothing,
};
use crate::{
    cli::{LogFormat, WorkerArgs},
    clock::Clock,
    driver::{self, Cadence, Outcome, Trigger, Verdict},
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
    let setting = Setting::new(args, output)?;
    let stop = Stop::on_signals().context("cannot listen for signals")?;
    if setting.args.dry_run {
        return setting.preview().await;
    }
    folder::make(&setting.local)?;
    let Some(_held) = setting.lock(&stop).await? else { return Ok(setting.stood_by()) };
    if setting.args.uninstall { setting.uninstall(&stop).await } else { setting.act(&stop).await }
}

/// The command line with its places resolved.
struct Setting {
    args: WorkerArgs,
    output: LogFormat,
    control: PathBuf,
    local: PathBuf,
    key_file: KeyFile,
}

impl Setting {
    fn new(args: WorkerArgs, output: LogFormat) -> anyhow::Result<Self> {
        let control = args.control.folder("--control")?.to_owned();
        let local = args.local.folder("--local")?.to_owned();
        let key_file = args.key_file.clone().unwrap_or_else(|| local.join("private.key"));
        Ok(Self { args, output, control, local, key_file: KeyFile::new(key_file) })
    }

    /// One worker acts. A loop waits for its turn, a single run does not: `None`.
    async fn lock(&self, stop: &Stop) -> anyhow::Result<Option<Held>> {
        let file = self.local.join(".worker.lock");
        let lock = Lock { file, namespace: Some(NAMESPACE_LOCK.to_owned()) };
        if self.args.uninstall {
            return match lock.try_take()? {
                Some(held) => Ok(Some(held)),
                None => bail!("a worker acts on this host: stop it before --uninstall"),
            };
        }
        if self.args.rhythm.once {
            return Ok(lock.try_take()?);
        }
        tokio::select! {
            held = lock.take() => Ok(Some(held?)),
            () = stop.requested() => Ok(None),
        }
    }

    fn stood_by(&self) -> ExitCode {
        if !self.args.rhythm.once {
            return ExitCode::SUCCESS;
        }
        self.say(&Verdict::of(Outcome::waiting("the other worker that acts on this host to end".to_owned())))
    }

    fn say(&self, verdict: &Verdict) -> ExitCode {
        println!("{}", verdict.render(self.output));
        verdict.exit_code().into()
    }

    /// The loop, or one run of it.
    async fn act(&self, stop: &Stop) -> anyhow::Result<ExitCode> {
        let control = dir::Worker::open(&self.control)?;
        let (trigger, mut tasks) = (Trigger::default(), JoinSet::new());
        trigger.watch(&mut tasks, "control store", control.watch()?);
        let key = match self.key(&control, &trigger, stop).await? {
            Ok(key) => key,
            Err(outcome) if self.args.rhythm.once => return Ok(self.say(&Verdict::of(outcome))),
            Err(_) => return Ok(ExitCode::SUCCESS),
        };
        let identity = Identity::new(&key, Some(self.key_file.clone()));
        let devices = local_host::open(&self.args, key.secret).await?;
        trigger.watch(&mut tasks, "host", devices.changes()?);
        let resolver = Resolver::start(&mut tasks, SystemLookup);
        trigger.watch(&mut tasks, "resolver", resolver.clone());
        let probes = Probing::start(&self.args);
        let mut worker = self.worker(control, identity, devices, probes, resolver)?;
        trigger.watch(&mut tasks, "local store", worker.ports.local.watch()?);
        if self.args.rhythm.once {
            let first = worker.ports.probes.first_evidence(&worker.ports.local).await;
            if let Err(fault) = first {
                return Ok(self.say(&Verdict::of(Outcome::failed(fault))));
            }
            return Ok(self.say(&driver::once(&mut worker, stop).await));
        }
        worker.ports.probes.watch(&trigger, &mut tasks);
        tracing::info!(gateway = %self.args.gateway, control = %self.args.control, "the worker acts");
        let span = tracing::info_span!("worker", gateway = %self.args.gateway);
        let cadence = Cadence { resync: self.args.rhythm.resync };
        driver::run(&mut worker, &trigger, cadence, stop).instrument(span).await;
        Ok(ExitCode::SUCCESS)
    }

    /// The key of the file, or a new one; a loop waits for it.
    async fn key(
        &self,
        control: &impl WorkerStore,
        trigger: &Trigger,
        stop: &Stop,
    ) -> anyhow::Result<Result<OwnKey, Outcome>> {
        let (file, gateway) = (&self.key_file, &self.args.gateway);
        let devices = KeysOfDevices(self.args.uapi_dir.clone());
        if self.args.rhythm.once {
            return Ok(own_key(file, gateway, control, &devices).await?.map_err(Outcome::from));
        }
        let key = wait_for_key(file, gateway, control, &devices, (trigger, stop)).await?;
        Ok(key.ok_or_else(Outcome::default))
    }

    fn worker<C: WorkerStore, P: Probes>(
        &self,
        control: C,
        identity: Identity,
        devices: LocalDevices,
        probes: P,
        resolver: Resolver,
    ) -> anyhow::Result<Worker<C, dir::Local, LocalDevices, P>> {
        let local = dir::Local::open(&self.local)?;
        let ports = Ports { control, local, devices, probes, resolver, clock: Clock::new()? };
        Ok(Worker {
            me: self.args.gateway.clone(),
            identity,
            settings: Settings::default(),
            ports,
            said: BTreeMap::new(),
        })
    }

    /// A key for runs that need none of their own: the one of the file where there is one.
    fn any_key(&self) -> anyhow::Result<OwnKey> {
        if let Some(key) = self.key_file.load()? {
            return Ok(key);
        }
        let secret = SecretKey::generate()?;
        Ok(OwnKey { public: secret.public(), secret, generation: None })
    }

    async fn preview(&self) -> anyhow::Result<ExitCode> {
        let key = self.any_key()?;
        let identity = Identity::new(&key, None);
        let host = local_host::open(&self.args, key.secret).await?;
        let control = dir::Worker::open(&self.control)?;
        let mut worker = self.worker(control, identity, host, NoProbes, Resolver::default())?;
        match dry_run::preview(&mut worker).await {
            Ok(preview) => println!("{}", preview.render(self.output)),
            Err(fault) => bail!("{fault}"),
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn uninstall(&self, stop: &Stop) -> anyhow::Result<ExitCode> {
        let key = self.any_key()?;
        let identity = Identity::new(&key, None);
        let host = local_host::open(&self.args, key.secret).await?;
        let mut worker = self.worker(WantsNothing, identity, host, NoProbes, Resolver::default())?;
        let verdict = driver::once(&mut worker, stop).await;
        for change in worker.ports.devices.undo_sysctls()? {
            tracing::info!("{change}");
        }
        Ok(self.say(&verdict))
    }
}
