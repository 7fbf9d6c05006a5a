//! What the programs under test got of the processor, sampled through a run: a program that waited for one lost packets
//! because the machine is busy, one that neither ran nor waited lost them by itself. It refuses to excuse anything: it
//! only says.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};

const EVERY: Duration = Duration::from_millis(100);

/// The sampler, on a thread of its own. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Sampler {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Sample>>>,
}

/// One moment.
#[derive(Debug, Clone)]
struct Sample {
    at: Duration,
    /// One entry a program: how long its threads have run and waited since they began.
    programs: Vec<Times>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Times {
    ran: Duration,
    waited: Duration,
}

/// All moments of a run.
#[derive(Debug, Clone, Default)]
pub struct Load {
    names: Vec<String>,
    samples: Vec<Sample>,
}

impl Sampler {
    /// Begins; the clock of the samples starts at `begun`.
    pub(crate) fn start(pids: Vec<u32>, begun: Instant) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let mut samples = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let programs = pids.iter().map(|pid| times(*pid)).collect();
                    samples.push(Sample { at: begun.elapsed(), programs });
                    std::thread::park_timeout(EVERY);
                }
                samples
            }
        });
        Self { stop, thread: Some(thread) }
    }

    /// Ends it.
    pub(crate) fn finish(mut self, names: Vec<String>) -> Result<Load> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or_else(|| anyhow!("the sampler is gone"))?;
        let samples = thread.join().map_err(|_| anyhow!("the sampler panicked"))?;
        Ok(Load { names, samples })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Load {
    /// What each program got between two moments: `name ran 30 ms, waited 2 ms`.
    pub fn between(&self, from: Duration, to: Duration) -> String {
        let first = self.samples.iter().rev().find(|sample| sample.at <= from).or(self.samples.first());
        let last = self.samples.iter().find(|sample| sample.at >= to).or(self.samples.last());
        let Some((first, last)) = first.zip(last) else { return String::new() };
        let programs = self.names.iter().zip(first.programs.iter().zip(&last.programs));
        let words = programs.map(|(name, (before, after))| {
            let ran = after.ran.saturating_sub(before.ran).as_millis();
            let waited = after.waited.saturating_sub(before.waited).as_millis();
            format!("{name} ran {ran} ms and waited {waited} ms")
        });
        let span = last.at.saturating_sub(first.at).as_millis();
        format!("in these {span} ms {}", words.collect::<Vec<_>>().join(", "))
    }
}

/// Over all threads: time on a processor and time waiting for one, in nanoseconds.
fn times(pid: u32) -> Times {
    let mut times = Times::default();
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        // A thread that ended meanwhile has nothing to add.
        let Ok(text) = fs::read_to_string(task.path().join("schedstat")) else { continue };
        let mut numbers =
            text.split_whitespace().filter_map(|word| word.parse().ok()).map(Duration::from_nanos);
        times.ran += numbers.next().unwrap_or_default();
        times.waited += numbers.next().unwrap_or_default();
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_told_from_the_samples_around_it() {
        let sample = |at: u64, ran: u64| Sample {
            at: Duration::from_millis(at),
            programs: vec![Times { ran: Duration::from_millis(ran), waited: Duration::from_millis(2 * ran) }],
        };
        let load =
            Load { names: vec!["a".into()], samples: vec![sample(0, 0), sample(100, 7), sample(200, 9)] };
        let told = load.between(Duration::from_millis(120), Duration::from_millis(180));
        assert_eq!(told, "in these 100 ms a ran 2 ms and waited 4 ms");
    }
}
