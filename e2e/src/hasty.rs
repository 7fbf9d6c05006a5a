//! A controller that leaves one phase of a change out: what a hub change would be without it. It refuses to be the
//! product's: that has no such switch, and this one knows no retries.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context as _, Result};
use nix::time::{ClockId, clock_gettime};
use spanwire_engine::{
    BootTime, NetworkStatus, Now, Phase,
    controller::{self, Plan},
    port::ControllerStore as _,
};
use spanwire_store::dir::Controller;

const PAUSE: Duration = Duration::from_millis(50);

/// The controller, on a thread of its own. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Hasty {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hasty {
    /// Starts it on a control directory.
    pub(crate) fn start(control: &std::path::Path, without: Phase) -> Result<Self> {
        let store = Controller::open(control).context("opening the control directory")?;
        let boot_id =
            std::fs::read_to_string("/proc/sys/kernel/random/boot_id").context("reading the boot id")?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().context("making a runtime")?;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                while !stop.load(Ordering::Relaxed) {
                    // A conflict with a worker that writes at the same time is over in the next pass.
                    let _ = runtime.block_on(pass(&store, boot_id.trim(), without));
                    std::thread::park_timeout(PAUSE);
                }
            }
        });
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Hasty {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed where it happened.
            let _ = thread.join();
        }
    }
}

async fn pass(store: &Controller, boot_id: &str, without: Phase) -> Result<()> {
    let mut view = store.read().await?;
    let now = now(boot_id)?;
    let names: Vec<_> = view.networks.keys().cloned().collect();
    for name in names {
        let mut plan = controller::plan(&view, &now).networks.remove(&name).unwrap_or_default();
        let Some(network) = view.networks.get_mut(&name) else { continue };
        if let Some(status) = hurried(&plan, &network.status, without) {
            network.status = status.clone();
            let expected = network.meta.clone();
            plan = controller::plan(&view, &now).networks.remove(&name).unwrap_or_default();
            plan.status =
                Some(plan.status.map_or((status, expected.clone()), |(status, _)| (status, expected)));
        }
        write(store, plan).await?;
    }
    for (gateway, networks) in controller::plan(&view, &now).gateways {
        store.write_gateway_networks(&gateway, &networks).await?;
    }
    Ok(())
}

/// The status with the phase after the one that is left out, where a plan has come to that.
fn hurried(plan: &Plan, standing: &NetworkStatus, without: Phase) -> Option<NetworkStatus> {
    let mut status = plan.status.as_ref().map_or(standing, |(status, _)| status).clone();
    let change = status.change.as_mut().filter(|change| change.phase == without)?;
    change.phase = match without {
        Phase::Adding => Phase::Switching,
        Phase::Switching => Phase::Demoting,
        Phase::Demoting | Phase::Removing => Phase::Removing,
    };
    Some(status)
}

async fn write(store: &Controller, plan: Plan) -> Result<()> {
    let Plan { status, intents, deletes, report: _ } = plan;
    if let Some((status, expected)) = status {
        let name = super::fleet::NETWORK.parse().context("the name of the network")?;
        store.write_network_status(&name, &status, &expected).await?;
    }
    for write in intents {
        store.write_intent(&write.intent, write.expected.as_ref()).await?;
    }
    for delete in deletes {
        store.delete_intent(&delete.network, &delete.gateway, &delete.expected).await?;
    }
    Ok(())
}

fn now(boot_id: &str) -> Result<Now> {
    let since_boot = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).context("reading the clock")?);
    let since_boot = Duration::from_millis(u64::try_from(since_boot.as_millis()).unwrap_or(u64::MAX));
    Ok(Now {
        boot: BootTime { boot_id: boot_id.to_owned(), since_boot },
        wall: "1970-01-01T00:00:00Z".to_owned(),
    })
}
