//! Wires a worker from its command line: folders, lock, key, stores, host, events. It refuses to act beside another
//! worker, and to make a key before it has seen which generation is published.

use std::{collections::BTreeMap, net::SocketAddr, process::ExitCode};

use anyhow::{Context as _, bail};
use spanwire_api::rbac;
use spanwire_dataplane::{key::SecretKey, local::LocalDevices};
use spanwire_engine::port::WorkerStore;
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
    endpoint::{self, Endpoint},
    events::{self, Events},
    folder,
    key_file::{KeyFile, OwnKey},
    key_secret::KeySecret,
    keys::Keys,
    lock::Lock,
    metrics::{links::Measures, pass::Measured},
    resolver::{Resolver, SystemLookup},
    rights,
    stop::Stop,
    stores::{LocalPlace, Site, WorkerPlace},
    turn::{Claim, Turn},
};

/// The abstract socket name that stands for "a worker acts in this network namespace".
const NAMESPACE_LOCK: &str = "spanwire/worker";

/// Who writes Events.
const WORKER: &str = "worker";

/// Becomes a worker.
///
/// # Errors
/// Something that is needed at start is missing.
pub async fn start(
    args: WorkerArgs,
    output: LogFormat,
    listen: Option<SocketAddr>,
) -> anyhow::Result<ExitCode> {
    let setting = Setting::new(args, output).await?;
    rights::check("worker", "make devices, routes and rules, or the packet filter")?;
    let stop = Stop::on_signals().context("cannot listen for signals")?;
    if setting.args.dry_run {
        return setting.preview().await;
    }
    let _endpoint = setting.listen(listen).await?;
    if let Site::Folder(folder) = &setting.local {
        folder::make(folder)?;
    }
    let Some(mut turn) = setting.turn(&stop).await? else { return Ok(setting.stood_by()) };
    let code = if setting.args.uninstall {
        setting.uninstall(&stop).await
    } else {
        setting.act(&stop, &mut turn).await
    };
    turn.give_back().await;
    code
}

/// The command line with its places resolved.
struct Setting {
    args: WorkerArgs,
    output: LogFormat,
    control: Site,
    local: Site,
    keys: Keys,
    measures: Measures,
}

impl Setting {
    async fn new(args: WorkerArgs, output: LogFormat) -> anyhow::Result<Self> {
        let control = Site::of(&args.control, args.control_namespace.as_deref()).await?;
        let local = Site::of(&args.local, args.local_namespace.as_deref()).await?;
        let keys = match (&args.key_file, &local) {
            (Some(path), _) => Keys::File(KeyFile::new(path.clone())),
            (None, Site::Folder(folder)) => Keys::File(KeyFile::new(folder.join("private.key"))),
            (None, Site::Cluster(connection)) => {
                Keys::Secret(Box::new(KeySecret::new(connection, &args.gateway)))
            }
        };
        let measures = Measures::default();
        measures.metrics.show_requests("control", &control);
        measures.metrics.show_requests("local", &local);
        Ok(Self { args, output, control, local, keys, measures })
    }

    /// Answers probes and scrapers while the loop runs; a run that ends by itself has none.
    async fn listen(&self, address: Option<SocketAddr>) -> Result<Option<Endpoint>, endpoint::Error> {
        let address = address.filter(|_| !self.args.rhythm.once && !self.args.uninstall);
        endpoint::open(address, &self.measures.metrics, &self.measures.health).await
    }

    /// One worker acts. A loop waits for its turn, a single run does not: `None`.
    async fn turn(&self, stop: &Stop) -> anyhow::Result<Option<Turn>> {
        let file = match &self.local {
            Site::Folder(folder) => Some(folder.join(".worker.lock")),
            Site::Cluster(_) => None,
        };
        let lock = Lock { file, namespace: Some(NAMESPACE_LOCK.to_owned()) };
        let lease = rbac::worker_lease_name(self.args.gateway.as_str());
        let health = self.measures.health.clone();
        let claim = Claim { lock, site: &self.local, lease, health };
        if self.args.uninstall {
            return match claim.try_take().await? {
                Some(turn) => Ok(Some(turn)),
                None => bail!("a worker acts on this host: stop it before --uninstall"),
            };
        }
        if self.args.rhythm.once { claim.try_take().await } else { claim.take(stop).await }
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
    async fn act(&self, stop: &Stop, turn: &mut Turn) -> anyhow::Result<ExitCode> {
        let control = WorkerPlace::open(&self.control)?;
        let (trigger, mut tasks) = (Trigger::default(), JoinSet::new());
        trigger.watch(&mut tasks, "control store", control.watch()?);
        let key = match self.key(&control, &trigger, stop).await? {
            Ok(key) => key,
            Err(outcome) if self.args.rhythm.once => return Ok(self.say(&Verdict::of(outcome))),
            Err(_) => return Ok(ExitCode::SUCCESS),
        };
        let identity = Identity::new(&key, Some(self.keys.clone()));
        let devices = local_host::open(&self.args, key.secret).await?;
        trigger.watch(&mut tasks, "host", devices.changes()?);
        self.measures.watch(&devices)?;
        let resolver = Resolver::start(&mut tasks, SystemLookup);
        trigger.watch(&mut tasks, "resolver", resolver.clone());
        let probes = Probing::start(&self.args);
        let (events, writing) = events::begin(self.local.events(WORKER));
        let mut worker = self.worker(control, identity, devices, probes, resolver)?;
        worker.events = events;
        trigger.watch(&mut tasks, "local store", worker.ports.local.watch()?);
        if self.args.rhythm.once {
            let first = worker.ports.probes.first_evidence(&worker.ports.local).await;
            if let Err(fault) = first {
                return Ok(self.say(&Verdict::of(Outcome::failed(fault))));
            }
            let verdict = driver::once(&mut worker, stop).await;
            writing.finish(worker.events).await;
            return Ok(self.say(&verdict));
        }
        worker.ports.probes.watch(&trigger, &mut tasks);
        tracing::info!(gateway = %self.args.gateway, control = %self.args.control, "the worker acts");
        let span = tracing::info_span!("worker", gateway = %self.args.gateway);
        let cadence = Cadence { resync: self.args.rhythm.resync };
        let (metrics, health) = (&self.measures.metrics, &self.measures.health);
        let acts = async || {
            let _acting = health.acts(cadence.resync);
            let mut measured = Measured::new(&mut worker, metrics, health);
            driver::run(&mut measured, &trigger, cadence, stop).await;
        };
        turn.act(stop, acts).instrument(span).await;
        writing.finish(worker.events).await;
        Ok(ExitCode::SUCCESS)
    }

    /// The key of the file, or a new one; a loop waits for it.
    async fn key(
        &self,
        control: &impl WorkerStore,
        trigger: &Trigger,
        stop: &Stop,
    ) -> anyhow::Result<Result<OwnKey, Outcome>> {
        let (keys, gateway) = (&self.keys, &self.args.gateway);
        let devices = KeysOfDevices(self.args.uapi_dir.clone());
        if self.args.rhythm.once {
            return Ok(own_key(keys, gateway, control, &devices).await?.map_err(Outcome::from));
        }
        let key = wait_for_key(keys, gateway, control, &devices, (trigger, stop)).await?;
        Ok(key.ok_or_else(Outcome::default))
    }

    fn worker<C: WorkerStore, P: Probes>(
        &self,
        control: C,
        identity: Identity,
        devices: LocalDevices,
        probes: P,
        resolver: Resolver,
    ) -> anyhow::Result<Worker<C, LocalPlace, LocalDevices, P>> {
        let local = LocalPlace::open(&self.local)?;
        let ports = Ports { control, local, devices, probes, resolver, clock: Clock::new()? };
        Ok(Worker {
            me: self.args.gateway.clone(),
            identity,
            settings: self.args.numbers.settings(),
            ports,
            events: Events::none(),
            measures: self.measures.clone(),
            said: BTreeMap::new(),
        })
    }

    /// A key for runs that need none of their own: the one that is kept where there is one.
    async fn any_key(&self) -> anyhow::Result<OwnKey> {
        if let Some(key) = self.keys.load().await? {
            return Ok(key);
        }
        let secret = SecretKey::generate()?;
        Ok(OwnKey { public: secret.public(), secret, generation: None })
    }

    async fn preview(&self) -> anyhow::Result<ExitCode> {
        let key = self.any_key().await?;
        let identity = Identity::new(&key, None);
        let host = local_host::open(&self.args, key.secret).await?;
        let control = WorkerPlace::open(&self.control)?;
        let mut worker = self.worker(control, identity, host, NoProbes, Resolver::default())?;
        match dry_run::preview(&mut worker).await {
            Ok(preview) => println!("{}", preview.render(self.output)),
            Err(fault) => bail!("{fault}"),
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn uninstall(&self, stop: &Stop) -> anyhow::Result<ExitCode> {
        let key = self.any_key().await?;
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
