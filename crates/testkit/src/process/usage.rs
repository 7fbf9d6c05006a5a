//! Memory and processor time of a process, from /proc. It refuses estimates: what the kernel counts or nothing.

use std::{fs, io, time::Duration};

/// What a process uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Resident memory in bytes; what several processes share, such as the pages of one program, is divided among them.
    pub resident: u64,
    /// Processor time so far, user and system together.
    pub processor: Duration,
    /// How often it gave up the processor by itself: its wake-ups, over all threads.
    pub wakeups: u64,
}

impl Usage {
    /// Reads them of a process that runs.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let mut wakeups = 0;
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            // A thread may end between the listing and the reading.
            if let Ok(status) = fs::read_to_string(task?.path().join("status")) {
                wakeups += field(&status, "voluntary_ctxt_switches:").unwrap_or(0);
            }
        }
        let memory = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
        let resident = field(&memory, "Pss:").ok_or_else(|| io::Error::other("no Pss"))? * 1024;
        Ok(Self { resident, processor: processor_time(pid)?, wakeups })
    }
}

fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn processor_time(pid: u32) -> io::Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is a name in parentheses that may hold anything.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    let second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    let second = u64::try_from(second).unwrap_or(100).max(1);
    Ok(Duration::from_millis((ticks(11) + ticks(12)) * 1000 / second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_itself() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.resident > 100_000, "{usage:?}");
    }
}
