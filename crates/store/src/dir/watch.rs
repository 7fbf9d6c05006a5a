//! Waits until something in a store may have changed. It refuses to say what: who is woken reads again.

use std::{collections::BTreeMap, ffi::OsString, io, path::PathBuf, sync::Arc};

use futures::{FutureExt as _, StreamExt as _};
use inotify::{EventOwned, EventStream, Inotify, WatchDescriptor, WatchMask};
use spanwire_api::{
    AppliedIntentSpec, GatewayNetworkSpec, GatewaySpec, Kind, TunnelLinkSpec, WorkerSliceConfigSpec,
};
use spanwire_engine::port::Changes;

use super::{
    Error,
    absence::Absences,
    layout::{LOCK, TEMPORARY},
    root::Root,
};

/// A watch on a store's directory and its folders.
#[derive(Debug)]
pub struct Watch {
    events: EventStream<[u8; 4096]>,
    /// The directory in which the store's own name stands.
    parent: PathBuf,
    /// The store's own name there.
    name: OsString,
    /// The store and a folder a kind.
    places: Vec<PathBuf>,
    watched: BTreeMap<PathBuf, WatchDescriptor>,
    absences: Arc<Absences>,
}

const FOLDERS: [&str; 5] = [
    GatewaySpec::PLURAL,
    GatewayNetworkSpec::PLURAL,
    WorkerSliceConfigSpec::PLURAL,
    TunnelLinkSpec::PLURAL,
    AppliedIntentSpec::PLURAL,
];

impl Watch {
    pub(crate) fn of(root: &Root) -> Result<Self, Error> {
        let fault = |source| Error::Watch { path: root.path().to_owned(), source };
        let events =
            Inotify::init().and_then(|inotify| inotify.into_event_stream([0; 4096])).map_err(fault)?;
        let path = std::path::absolute(root.path()).map_err(fault)?;
        let mut watch = Self {
            events,
            parent: path.parent().unwrap_or(&path).to_owned(),
            name: path.file_name().unwrap_or_default().to_owned(),
            places: FOLDERS.iter().map(|folder| path.join(folder)).chain([path.clone()]).collect(),
            watched: BTreeMap::new(),
            absences: Arc::clone(root.absences()),
        };
        watch.look_again().map_err(fault)?;
        Ok(watch)
    }

    /// Watches what is at the places now. Returns whether that is something else than before.
    fn look_again(&mut self) -> io::Result<bool> {
        let mut moved = false;
        for place in self.places.iter().chain([&self.parent]) {
            let mask = WatchMask::CREATE
                | WatchMask::DELETE
                | WatchMask::MOVED_FROM
                | WatchMask::MOVED_TO
                | WatchMask::CLOSE_WRITE
                | WatchMask::ATTRIB
                | WatchMask::DELETE_SELF
                | WatchMask::MOVE_SELF
                | WatchMask::ONLYDIR;
            match self.events.watches().add(place, mask) {
                // The kernel gives the same number for the same directory, and another for its replacement.
                Ok(number) => {
                    if self.watched.get(place) != Some(&number) {
                        moved = true;
                        if let Some(old) = self.watched.insert(place.clone(), number) {
                            // Fails if the old directory is gone, and its watch with it.
                            let _ = self.events.watches().remove(old);
                        }
                    }
                }
                Err(error) if error.raw_os_error() == Some(NO_SPACE) => return Err(error),
                // Missing or closed: its parent tells when that changes.
                Err(_) => moved |= self.watched.remove(place).is_some(),
            }
        }
        Ok(moved)
    }

    async fn event(&mut self) -> io::Result<()> {
        loop {
            if self.look_again()? {
                return Ok(());
            }
            let mut next = self.events.next().await;
            let mut changed = false;
            while let Some(event) = next {
                changed |= self.means_something(&event?);
                next = self.events.next().now_or_never().flatten();
            }
            if changed {
                // A directory that came or went with these events is watched from here on.
                return self.look_again().map(drop);
            }
        }
    }

    fn means_something(&self, event: &EventOwned) -> bool {
        let name = event.name.as_deref().unwrap_or_default();
        if self.watched.get(&self.parent) == Some(&event.wd) {
            // Neighbours of the store are nothing to it.
            return name == self.name;
        }
        let own = name == LOCK || name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes());
        !own
    }
}

/// No more watches for this account (`fs.inotify.max_user_watches`).
const NO_SPACE: i32 = 28;

impl Changes for Watch {
    async fn changed(&mut self) {
        let absences = Arc::clone(&self.absences);
        tokio::select! {
            event = self.event() => {
                if event.is_err() {
                    // A broken watch must not become a busy loop; the periodic resync is the net under it.
                    std::future::pending::<()>().await;
                }
            }
            () = absences.next() => {}
        }
    }
}
