//! Evidence from probes that leave by the links' own devices. It refuses to hold up a run for links that do not answer.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use spanwire_dataplane::probe::{Prober, ProberConfig, Target};
use spanwire_engine::{
    LinkId,
    port::{Changes, LocalStore},
    worker::Evidence,
};
use tokio::{task::JoinSet, time::timeout};

use super::{Probes, STORE_LIMIT, targets};
use crate::{
    cli::WorkerArgs,
    driver::Trigger,
    fault::{Noted, limited},
};

/// How long a single run waits for the first judgement of its links: longer than a dead one takes to be missed.
const FIRST: Duration = Duration::from_secs(5);

/// The prober of this worker.
pub struct Probing(Arc<Prober>);

impl Probing {
    /// Starts probing, nothing yet.
    pub fn start(args: &WorkerArgs) -> Self {
        Self(Arc::new(Prober::start(ProberConfig {
            control_socket: args.dataplane_socket.clone(),
            uapi_dir: args.uapi_dir.clone(),
            timing: args.numbers.timing(),
        })))
    }

    /// Starts a pass whenever the evidence changes.
    pub fn watch(&self, trigger: &Trigger, tasks: &mut JoinSet<()>) {
        trigger.watch(tasks, "evidence", News(self.0.clone()));
    }

    /// Probes the links that are recorded, until each is judged or the time is over.
    ///
    /// # Errors
    /// The records can't be read.
    pub async fn first_evidence(&self, local: &impl LocalStore) -> Result<(), Noted> {
        let recorded = limited("cannot read the records of this worker", STORE_LIMIT, local.read()).await?;
        let wanted = targets::recorded_targets(&recorded);
        let links: Vec<LinkId> = wanted.iter().map(|target| target.link.clone()).collect();
        self.0.set_targets(wanted);
        let judged = async {
            loop {
                let evidence = self.0.evidence();
                if links.iter().all(|link| evidence.contains_key(link)) {
                    return;
                }
                self.0.changed().await;
            }
        };
        if timeout(FIRST, judged).await.is_err() {
            tracing::debug!("not every link was judged in time");
        }
        Ok(())
    }
}

impl Probes for Probing {
    fn set_targets(&self, targets: Vec<Target>) {
        self.0.set_targets(targets);
    }

    fn evidence(&self) -> BTreeMap<LinkId, Evidence> {
        self.0.evidence()
    }
}

/// The same prober, to wait for its news.
struct News(Arc<Prober>);

impl Changes for News {
    async fn changed(&mut self) {
        self.0.changed().await;
    }
}
