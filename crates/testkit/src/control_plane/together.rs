//! One control plane for all tests of a program, and what is left when a program ends. It refuses to leave folders
//! behind: its own goes when the program ends, those of killed programs when the next one starts.

use std::{
    fs::{self, File},
    path::Path,
    sync::OnceLock,
};

use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

use super::{ControlPlane, ControlPlaneError, Options, assets};

const PREFIX: &str = "spanwire-control-plane-";
const LOCK: &str = "lock";
/// Held as long as this program lives.
static LOCKS: std::sync::Mutex<Vec<Flock<File>>> = std::sync::Mutex::new(Vec::new());
static SHARED: OnceLock<ControlPlane> = OnceLock::new();
static SECOND: OnceLock<ControlPlane> = OnceLock::new();

impl ControlPlane {
    /// The one of this program, started by the first who asks. Tests that share it keep to namespaces of their own.
    /// `None`: the programs are not there, the reason is on standard error, and the test returns.
    ///
    /// # Panics
    /// It could not be started; or the programs are not there and the variable `CI` is set.
    pub fn shared() -> Option<&'static Self> {
        Self::in_place(&SHARED, "shared")
    }

    /// The one of this program, and a second one for tests that are about two clusters. `None` and panics: as in
    /// [`ControlPlane::shared`].
    ///
    /// # Panics
    /// As in [`ControlPlane::shared`].
    pub fn shared_pair() -> Option<[&'static Self; 2]> {
        std::thread::scope(|scope| {
            let second = scope.spawn(|| Self::in_place(&SECOND, "second"));
            Some([Self::shared()?, second.join().ok()??])
        })
    }

    #[allow(clippy::panic, reason = "it fails the test that asks")]
    fn in_place(place: &'static OnceLock<Self>, name: &str) -> Option<&'static Self> {
        if let Some(why) = assets::why_not() {
            eprintln!("skipped: {why}");
            return None;
        }
        Some(place.get_or_init(|| {
            let plane = Self::start(Options::named(name));
            let plane = plane.unwrap_or_else(|error| panic!("no control plane: {}", chain(&error)));
            // SAFETY: the function is a plain one that ends processes and deletes folders.
            unsafe { libc::atexit(end_shared) };
            plane
        }))
    }

    /// One of its own for a test that stops it, needs several, or counts every request. `None` and panics: as in
    /// [`ControlPlane::shared`].
    ///
    /// # Panics
    /// As in [`ControlPlane::shared`].
    #[allow(clippy::panic, reason = "it fails the test that asks")]
    pub fn own(options: Options) -> Option<Self> {
        if let Some(why) = assets::why_not() {
            eprintln!("skipped: {why}");
            return None;
        }
        let plane = Self::start(options);
        Some(plane.unwrap_or_else(|error| panic!("no control plane: {}", chain(&error))))
    }
}

/// Nothing drops a static.
extern "C" fn end_shared() {
    for plane in [&SHARED, &SECOND].into_iter().filter_map(OnceLock::get) {
        plane.running().kill();
        // A folder that stays is found by the next program.
        let _ = fs::remove_dir_all(plane.folder());
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}

/// A temporary folder that is known as ours while this program lives.
pub(super) fn folder() -> Result<TempDir, ControlPlaneError> {
    let above = std::env::temp_dir();
    sweep(&above);
    let failed = |source| ControlPlaneError::File { path: above.clone(), source };
    let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&above).map_err(failed)?;
    let file = File::create(folder.path().join(LOCK)).map_err(failed)?;
    if let Ok(lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        LOCKS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(lock);
    }
    Ok(folder)
}

/// Removes the folders of programs that were killed: their locks are free. One without a lock is being made.
fn sweep(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let Some(lock) = ours.then(|| File::open(entry.path().join(LOCK)).ok()).flatten() else { continue };
        if Flock::lock(lock, FlockArg::LockExclusiveNonblock).is_ok() {
            // Another program may sweep at the same time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_dead_are_swept_and_those_of_the_living_stay() {
        let above = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let folder = above.path().join(format!("{PREFIX}{name}"));
            fs::create_dir(&folder).unwrap();
            folder
        };
        let (dead, living, new) = (make("dead"), make("living"), make("new"));
        File::create(dead.join(LOCK)).unwrap();
        let lock = File::create(living.join(LOCK)).unwrap();
        let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock).unwrap();
        sweep(above.path());
        assert_eq!([dead, living, new].map(|folder| folder.exists()), [false, true, true]);
        drop(lock);
    }
}
