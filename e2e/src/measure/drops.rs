//! What full queues of this machine dropped: the mark of overload. It refuses to count what a filter or a missing route
//! dropped.

use std::fmt;

use anyhow::{Context as _, Result};
use spanwire_testkit::{lab::Host, prober::Pair};

/// Counters of drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Drops {
    /// Datagrams that found a socket's buffer full, on all hosts.
    pub socket_buffers: u64,
    /// Packets that found a processor's queue full, on the whole machine.
    pub processor_queues: u64,
}

impl Drops {
    /// The counters of all hosts of the pairs.
    pub(crate) fn now(pairs: &[Pair]) -> Result<Self> {
        let mut hosts: Vec<&Host> = pairs.iter().flat_map(|pair| [&pair.from, &pair.to]).collect();
        hosts.sort_by_key(|host| host.name());
        hosts.dedup_by_key(|host| host.name());
        let mut socket_buffers = 0;
        for host in hosts {
            let read = || std::fs::read_to_string("/proc/thread-self/net/snmp");
            let text = host.run(read).with_context(|| format!("entering {}", host.name()))?;
            socket_buffers += udp_buffer_errors(&text.context("reading /proc/thread-self/net/snmp")?);
        }
        let queues = std::fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
        Ok(Self { socket_buffers, processor_queues: backlog_drops(&queues) })
    }

    /// What was added after `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            socket_buffers: self.socket_buffers.saturating_sub(earlier.socket_buffers),
            processor_queues: self.processor_queues.saturating_sub(earlier.processor_queues),
        }
    }

    /// All of them.
    pub fn total(self) -> u64 {
        self.socket_buffers + self.processor_queues
    }
}

impl fmt::Display for Drops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "dropped by full socket buffers {}, by full processor queues {}",
            self.socket_buffers, self.processor_queues
        )
    }
}

/// Both directions of UDP: a line of names, then a line of numbers.
fn udp_buffer_errors(text: &str) -> u64 {
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("Udp:")).collect();
    let [names, numbers] = lines[..] else { return 0 };
    names
        .split_whitespace()
        .zip(numbers.split_whitespace())
        .filter(|(name, _)| matches!(*name, "RcvbufErrors" | "SndbufErrors"))
        .filter_map(|(_, number)| number.parse::<u64>().ok())
        .sum()
}

/// The second column, in hexadecimal, one line a processor.
fn backlog_drops(text: &str) -> u64 {
    let column = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().filter_map(column).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read() {
        let text = "Tcp: a b\nTcp: 1 2\nUdp: InDatagrams NoPorts RcvbufErrors SndbufErrors\nUdp: 9 8 7 6\n";
        assert_eq!(udp_buffer_errors(text), 13);
        assert_eq!(backlog_drops("0000ffff 00000010 0\n00000001 00000001 0\n"), 17);
    }
}
