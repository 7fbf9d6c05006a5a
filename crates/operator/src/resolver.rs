//! Addresses of endpoints' host names: each name looked up on its own, with a time limit, again every 30 s. It refuses to
//! hold up a pass, and to forget an address because a look-up failed.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use spanwire_engine::port::Changes;
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

/// How long an answer counts before the name is looked up again.
pub const REFRESH: Duration = Duration::from_secs(30);
/// How long one look-up may take.
pub const LIMIT: Duration = Duration::from_secs(5);
/// The shortest time between two look-ups of a name whose link is down.
pub const EAGER: Duration = Duration::from_secs(5);

/// Looks one name up.
pub trait Lookup: Send + Sync + 'static {
    /// All addresses of `host`, in the order of preference.
    fn lookup(&self, host: String) -> impl Future<Output = io::Result<Vec<IpAddr>>> + Send;
}

/// The resolver of the system (files, DNS), as other programs of the host see names.
#[derive(Debug, Clone, Copy)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    async fn lookup(&self, host: String) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Keeps the addresses of a set of names.
#[derive(Debug, Default, Clone)]
pub struct Resolver(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    names: Mutex<BTreeMap<String, Name>>,
    work: Notify,
    news: Notify,
}

#[derive(Debug, Default)]
struct Name {
    address: Option<IpAddr>,
    asked: Option<Instant>,
    asking: bool,
    down: bool,
    failed: bool,
}

impl Resolver {
    /// Starts looking names up in the background, as long as `tasks` lives.
    pub fn start(tasks: &mut JoinSet<()>, lookup: impl Lookup) -> Self {
        let resolver = Self::default();
        tasks.spawn(resolver.clone().serve(Arc::new(lookup)));
        resolver
    }

    /// Says which names matter, and whether a link that dials the name is down. Literal addresses are left out.
    pub fn want(&self, wanted: &BTreeMap<String, bool>) {
        let mut names = self.lock();
        names.retain(|name, _| wanted.contains_key(name));
        for (name, down) in wanted.iter().filter(|(name, _)| name.parse::<IpAddr>().is_err()) {
            names.entry(name.clone()).or_default().down = *down;
        }
        drop(names);
        self.0.work.notify_one();
    }

    /// The addresses known now.
    pub fn resolved(&self) -> BTreeMap<String, IpAddr> {
        let names = self.lock();
        names.iter().filter_map(|(name, state)| state.address.map(|ip| (name.clone(), ip))).collect()
    }

    /// The names whose last look-up failed and that have no address from before.
    pub fn unresolved(&self) -> BTreeSet<String> {
        let names = self.lock();
        let failed = names.iter().filter(|(_, state)| state.failed && state.address.is_none());
        failed.map(|(name, _)| name.clone()).collect()
    }

    /// Resolves when an address changed, or a look-up failed for the first time, since the last call returned.
    pub async fn changed(&self) {
        self.0.news.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Name>> {
        self.0.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self, lookup: Arc<impl Lookup>) {
        let mut asking = JoinSet::new();
        loop {
            let next = self.start_due(&mut asking, &lookup);
            tokio::select! {
                () = self.0.work.notified() => {}
                Some(Ok((name, answer))) = asking.join_next() => self.learn(name, answer),
                () = sleep_until(next) => {}
            }
        }
    }

    /// Starts what is due and says when the next look-up is.
    fn start_due(
        &self,
        asking: &mut JoinSet<(String, io::Result<Vec<IpAddr>>)>,
        lookup: &Arc<impl Lookup>,
    ) -> Instant {
        let now = Instant::now();
        let mut next = now + REFRESH;
        for (name, state) in self.lock().iter_mut().filter(|(_, state)| !state.asking) {
            let pause = if state.down || state.address.is_none() { EAGER } else { REFRESH };
            let due = state.asked.map_or(now, |asked| asked + pause);
            if due > now {
                next = next.min(due);
                continue;
            }
            (state.asking, state.asked) = (true, Some(now));
            let (name, lookup) = (name.clone(), lookup.clone());
            asking.spawn(async move {
                let answer = timeout(LIMIT, lookup.lookup(name.clone())).await;
                (name, answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())))
            });
        }
        next
    }

    fn learn(&self, name: String, answer: io::Result<Vec<IpAddr>>) {
        let mut names = self.lock();
        let Some(state) = names.get_mut(&name) else { return };
        state.asking = false;
        let before = (state.address, state.failed);
        match answer.as_deref() {
            Ok([first, ..]) => {
                let stays = state.address.filter(|ip| answer.as_ref().is_ok_and(|all| all.contains(ip)));
                (state.address, state.failed) = (Some(stays.unwrap_or(*first)), false);
            }
            Ok([]) | Err(_) => state.failed = true,
        }
        if before != (state.address, state.failed) {
            tracing::debug!(name, address = ?state.address, failed = state.failed, "name looked up");
            self.0.news.notify_one();
        }
    }
}

impl Changes for Resolver {
    async fn changed(&mut self) {
        Resolver::changed(self).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `slow` never answers, `gone` has no address, `moves` answers what is set.
    #[derive(Clone, Default)]
    struct Twin(Arc<Mutex<(Vec<IpAddr>, u32)>>);

    impl Lookup for Twin {
        async fn lookup(&self, host: String) -> io::Result<Vec<IpAddr>> {
            match host.as_str() {
                "slow" => std::future::pending().await,
                "moves" => {
                    let mut state = self.0.lock().unwrap();
                    state.1 += 1;
                    Ok(state.0.clone())
                }
                _ => Err(io::ErrorKind::NotFound.into()),
            }
        }
    }

    fn start() -> (JoinSet<()>, Twin, Resolver) {
        let (mut tasks, twin) = (JoinSet::new(), Twin::default());
        twin.0.lock().unwrap().0 = vec!["192.0.2.1".parse().unwrap()];
        let resolver = Resolver::start(&mut tasks, twin.clone());
        (tasks, twin, resolver)
    }

    fn wanted(names: &[(&str, bool)]) -> BTreeMap<String, bool> {
        names.iter().map(|(name, down)| ((*name).to_owned(), *down)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn d16_a_name_that_does_not_answer_holds_up_no_other() {
        let (_tasks, _twin, resolver) = start();
        resolver.want(&wanted(&[("slow", false), ("gone", false), ("moves", false), ("192.0.2.9", false)]));
        let start = Instant::now();
        while resolver.resolved().is_empty() {
            resolver.changed().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(resolver.resolved().len(), 1);
        while resolver.unresolved().len() < 2 {
            resolver.changed().await;
        }
        assert_eq!(start.elapsed(), LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn d16_an_address_that_changes_is_followed_within_30_seconds_and_sooner_when_the_link_is_down() {
        for (down, within) in [(false, REFRESH), (true, EAGER)] {
            let (_tasks, twin, resolver) = start();
            resolver.want(&wanted(&[("moves", down)]));
            resolver.changed().await;
            let start = Instant::now();
            twin.0.lock().unwrap().0 = vec!["192.0.2.2".parse().unwrap()];
            resolver.changed().await;
            assert_eq!(resolver.resolved()["moves"], "192.0.2.2".parse::<IpAddr>().unwrap());
            assert!(start.elapsed() <= within, "{:?}", start.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_look_up_forgets_nothing_and_an_unchanged_answer_is_no_news() {
        let (_tasks, twin, resolver) = start();
        resolver.want(&wanted(&[("moves", false)]));
        resolver.changed().await;
        let both = vec!["192.0.2.7".parse().unwrap(), "192.0.2.1".parse().unwrap()];
        twin.0.lock().unwrap().0 = both;
        assert!(timeout(REFRESH * 3, resolver.changed()).await.is_err(), "the address in use is kept");
        twin.0.lock().unwrap().0 = Vec::new();
        resolver.changed().await;
        assert_eq!(resolver.resolved()["moves"], "192.0.2.1".parse::<IpAddr>().unwrap());
        assert!(twin.0.lock().unwrap().1 >= 4);
        resolver.want(&BTreeMap::new());
        assert!(resolver.resolved().is_empty());
    }
}
