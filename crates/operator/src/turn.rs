//! Whose turn it is to act: the locks of this host first, then the lease of the store where that is on an API server. It
//! refuses to let a single run wait for its turn.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::{
    driver::retry,
    health::Health,
    lease::{self, Lease},
    lock::{Held, Lock},
    stop::Stop,
    stores::Site,
};

/// How long an API server may take to give a lease that nobody holds.
const ONCE: Duration = Duration::from_secs(5);

/// The right to act.
#[derive(Debug)]
pub struct Turn {
    _held: Held,
    lease: Option<Lease>,
}

/// What has to be held.
#[derive(Debug)]
pub struct Claim<'a> {
    /// The locks of this host.
    pub lock: Lock,
    /// The store that is acted for.
    pub site: &'a Site,
    /// The name of its lease.
    pub lease: String,
    /// What is told of standing by.
    pub health: Health,
}

impl Claim<'_> {
    /// Takes what is free now; `None`: another process acts.
    ///
    /// # Errors
    /// Lock or lease can't even be tried.
    pub async fn try_take(&self) -> anyhow::Result<Option<Turn>> {
        let Some(held) = self.lock.try_take()? else { return Ok(None) };
        let mut turn = Turn { _held: held, lease: self.ask().await? };
        let free = match &mut turn.lease {
            Some(lease) => timeout(ONCE, lease.held()).await.is_ok(),
            None => true,
        };
        Ok(free.then_some(turn))
    }

    /// Waits for the turn; `None`: the end was asked for first.
    ///
    /// # Errors
    /// Lock or lease can't even be tried.
    pub async fn take(&self, stop: &Stop) -> anyhow::Result<Option<Turn>> {
        let wait = async {
            let held = match self.lock.try_take()? {
                Some(held) => held,
                None => {
                    self.health.stands_by();
                    self.lock.take().await?
                }
            };
            let mut turn = Turn { _held: held, lease: self.ask_until_answered().await? };
            if let Some(lease) = &mut turn.lease
                && timeout(ONCE, lease.held()).await.is_err()
            {
                tracing::warn!(
                    lease = self.lease,
                    "another process holds the lease: standing by until it ends"
                );
                self.health.stands_by();
                lease.held().await;
            }
            self.health.begins();
            anyhow::Ok(turn)
        };
        tokio::select! {
            turn = wait => turn.map(Some),
            () = stop.requested() => Ok(None),
        }
    }

    async fn ask(&self) -> anyhow::Result<Option<Lease>> {
        let Site::Cluster(connection) = self.site else { return Ok(None) };
        Ok(Some(Lease::ask(connection, &self.lease, &lease::identity()?).await?))
    }

    /// A server that does not answer, or refuses the account as yet, is asked again for ever.
    async fn ask_until_answered(&self) -> anyhow::Result<Option<Lease>> {
        let Site::Cluster(connection) = self.site else { return Ok(None) };
        let identity = lease::identity()?;
        let mut pauses = retry::pauses();
        let mut said = String::new();
        loop {
            let fault = match Lease::ask(connection, &self.lease, &identity).await {
                Ok(lease) => return Ok(Some(lease)),
                Err(fault) => fault.to_string(),
            };
            if said != fault {
                tracing::warn!("{fault}: asking again until it is given");
                said = fault;
            }
            sleep(pauses.next().unwrap_or(retry::LONGEST)).await;
        }
    }
}

impl Turn {
    /// Acts until the end is asked for. While another process is seen to hold the lease, nothing is done.
    pub async fn act(&mut self, stop: &Stop, mut acts: impl AsyncFnMut()) {
        let Some(lease) = &mut self.lease else { return acts().await };
        loop {
            tokio::select! {
                () = acts() => return,
                () = lease.lost() => tracing::warn!("another process holds the lease: standing by"),
            }
            tokio::select! {
                () = stop.requested() => return,
                () = lease.held() => tracing::info!("the lease is held again"),
            }
        }
    }

    /// Gives the turn back, so that another process need not wait.
    pub async fn give_back(self) {
        if let Some(lease) = self.lease {
            lease.give_back().await;
        }
    }
}
