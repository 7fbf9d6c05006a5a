//! Ctrl-C and waiting. It refuses waits without a limit.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
const POLL: Duration = Duration::from_millis(5);

extern "C" fn note(_signal: i32) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// From here on Ctrl-C and SIGTERM end every wait with an error, so that everything is taken down in order. The second
/// one ends the program at once.
///
/// # Errors
/// The kernel refuses a handler.
pub fn watch() -> Result<()> {
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESETHAND, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { sigaction(signal, &action) }.with_context(|| format!("watching for {signal}"))?;
    }
    Ok(())
}

/// Waits.
///
/// # Errors
/// The wait was interrupted.
pub fn pause(time: Duration) -> Result<()> {
    let end = Instant::now() + time;
    wait_until(end, || Ok(None::<()>)).map(|_| ())
}

/// Looks again and again until there is an answer; `None`: `limit` was over first.
///
/// # Errors
/// The wait was interrupted, or a look failed.
pub fn wait_for<T>(limit: Duration, look: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
    wait_until(Instant::now() + limit, look)
}

fn wait_until<T>(end: Instant, mut look: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
    loop {
        if INTERRUPTED.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        if let Some(answer) = look()? {
            return Ok(Some(answer));
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        std::thread::park_timeout(POLL.min(left));
    }
}

/// Whether Ctrl-C was pressed.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_end_with_the_answer_or_the_limit() {
        let mut looks = 0;
        let answer = wait_for(Duration::from_secs(5), || {
            looks += 1;
            Ok((looks == 3).then_some(looks))
        });
        assert_eq!(answer.unwrap(), Some(3));
        assert_eq!(wait_for(Duration::from_millis(1), || Ok(None::<()>)).unwrap(), None);
    }
}
