//! Evidence for links whose peer does not answer probes: bytes that were received, and the peer's own questions. It
//! refuses to take a handshake that never finished, or bytes that were sent, for a sign of life.

use std::time::Duration;

use spanwire_engine::worker::Evidence;

/// A peer that asks us was heard within this long: a few of its rounds.
const ASKING: Duration = Duration::from_secs(4);
/// Where a peer has no keepalive of its own, the common one is assumed for how often bytes must arrive.
const KEEPALIVE: Duration = Duration::from_secs(25);
/// Sessions older than this carry nothing (WireGuard's reject-after-time).
const SESSION: Duration = Duration::from_secs(180);

/// What a device shows of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) received: u64,
    pub(crate) keepalive: Duration,
    /// Age of the last finished handshake.
    pub(crate) handshake: Option<Duration>,
}

/// What is known of a peer that does not answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Silent {
    received: Option<u64>,
    grew: Option<Duration>,
    /// When the counters were read first.
    since: Option<Duration>,
    window: Duration,
    /// When the peer's last question arrived.
    heard: Option<Duration>,
    in_session: bool,
}

impl Silent {
    /// A reading of the device's counters at `now`.
    pub(crate) fn counters(&mut self, now: Duration, counters: Counters) {
        let Counters { received, keepalive, handshake } = counters;
        self.in_session = handshake.is_some_and(|age| age < SESSION);
        self.window = 2 * if keepalive.is_zero() { KEEPALIVE } else { keepalive };
        if self.received.is_some_and(|before| received > before) && self.in_session {
            self.grew = Some(now);
        }
        self.received = Some(received);
        self.since.get_or_insert(now);
    }

    /// The peer's last question arrived `age` before `now`.
    pub(crate) fn heard(&mut self, now: Duration, age: Duration) {
        self.heard = Some(now.saturating_sub(age));
    }

    /// The peer asks, so it hears neither our questions nor our answers.
    pub(crate) fn one_way(&self, now: Duration) -> bool {
        self.heard.is_some_and(|heard| now.saturating_sub(heard) < ASKING)
    }

    /// Of a peer that never answered and never asked: it does not probe, and what arrives from it is all there is.
    pub(crate) fn connected(&self, now: Duration, ever_answered: bool) -> Option<Evidence> {
        let grew = self.grew.is_some_and(|grew| now.saturating_sub(grew) < self.window);
        let probes = ever_answered || self.heard.is_some();
        (grew && self.in_session && !probes).then_some(Evidence::Receiving)
    }

    /// Of a link that can't be probed; `None`: it was not watched for long enough.
    pub(crate) fn judged(&self, now: Duration) -> Option<Evidence> {
        let silent = self.since.is_some_and(|since| now.saturating_sub(since) >= self.window);
        self.connected(now, false).or_else(|| silent.then_some(Evidence::NotConnected { one_way: false }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn counters(received: u64, handshake: Option<u64>) -> Counters {
        Counters { received, keepalive: at(25), handshake: handshake.map(at) }
    }

    #[test]
    fn bytes_that_arrive_in_a_session_are_evidence_for_two_keepalives() {
        let mut silent = Silent::default();
        silent.counters(at(0), counters(100, Some(1)));
        assert_eq!(silent.connected(at(0), false), None);
        silent.counters(at(20), counters(200, Some(21)));
        assert!(silent.connected(at(60), false).is_some());
        assert_eq!(silent.connected(at(71), false), None);
    }

    #[test]
    fn a_link_that_can_not_be_probed_is_judged_by_what_arrives() {
        let mut silent = Silent::default();
        silent.counters(at(0), counters(100, Some(1)));
        assert_eq!(silent.judged(at(49)), None);
        assert_eq!(silent.judged(at(50)), Some(Evidence::NotConnected { one_way: false }));
        silent.counters(at(52), counters(200, Some(2)));
        assert_eq!(silent.judged(at(101)), Some(Evidence::Receiving));
        assert_eq!(silent.judged(at(102)), Some(Evidence::NotConnected { one_way: false }));
    }

    #[test]
    fn s2_first_messages_that_nobody_answers_are_none() {
        let mut silent = Silent::default();
        for second in 0..60 {
            silent.counters(at(second), counters(second * 148, None));
        }
        assert_eq!(silent.connected(at(60), false), None);
    }

    #[test]
    fn s2_a_peer_that_asks_and_does_not_answer_is_one_way() {
        let mut silent = Silent::default();
        silent.counters(at(0), counters(100, Some(1)));
        silent.counters(at(1), counters(200, Some(2)));
        silent.heard(at(1), Duration::from_millis(300));
        assert!(silent.one_way(at(2)) && silent.connected(at(2), false).is_none());
        assert!(!silent.one_way(at(10)));
        assert_eq!(silent.connected(at(2), true), None);
    }
}
