//! One writer at a time, over all processes. It refuses to wait for ever.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::{Error, layout::LOCK};

/// How long a call waits for the lock.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// What is excluded while the lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exclude {
    /// Writers: a consistent look.
    Writers,
    /// Everybody.
    All,
}

/// Held until it is dropped, or until the process dies.
#[derive(Debug)]
pub(crate) struct Lock(#[allow(dead_code, reason = "held, not used")] Option<File>);

/// Takes the lock of a store. A look at a store that cannot be written does without.
pub(crate) fn take(root: &Path, exclude: Exclude) -> Result<Lock, Error> {
    let path = root.join(LOCK);
    // Opened for reading alone: closing a file that was open for writing would wake every watch.
    let opened = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(&path),
        opened => opened,
    };
    let file = match (opened, exclude) {
        (Ok(file), Exclude::Writers | Exclude::All) => file,
        (Err(_), Exclude::Writers) => return Ok(Lock(None)),
        (Err(source), Exclude::All) => return Err(Error::Lock { path, source }),
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let tried = match exclude {
            Exclude::Writers => file.try_lock_shared(),
            Exclude::All => file.try_lock(),
        };
        match tried {
            Ok(()) => return Ok(Lock(Some(file))),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err(Error::LockHeld { path, seconds: PATIENCE.as_secs() });
            }
            Err(TryLockError::Error(source)) => return Err(Error::Lock { path, source }),
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    File::open(path)
}
