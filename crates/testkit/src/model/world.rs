//! One state of everything, small enough to keep millions. It refuses to hold a value: only numbers of values.

use spanwire_engine::LinkRole;

use super::setup::MOST;

/// A state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct World {
    /// The declaration that stands.
    pub(super) declaration: u8,
    /// The network's status.
    pub(super) control: u32,
    /// The intent of each gateway in the store; 0: none.
    pub(super) intents: [u32; MOST],
    /// The intent that each worker has seen; 0: none.
    pub(super) seen: [u32; MOST],
    /// Records and host of each worker.
    pub(super) local: [u32; MOST],
    /// What each worker has reported.
    pub(super) reports: [u32; MOST],
    /// Connected pairs of link ends.
    pub(super) sessions: u64,
    /// Workers that were restarted and have no evidence yet, as bits.
    pub(super) amnesia: u8,
    /// How often connectTimeout passed.
    pub(super) clock: u8,
    pub(super) edits: u8,
    pub(super) faults: u8,
    pub(super) restarts: u8,
    pub(super) times: u8,
}

/// The bit of the session that a link of `role` from `me` to `peer` belongs to, among `count` gateways.
pub(super) fn session(me: usize, peer: usize, role: LinkRole) -> u64 {
    let (low, high) = (me.min(peer), me.max(peer));
    let position = match role {
        LinkRole::Uplink => me * MOST + peer,
        LinkRole::Downlink => peer * MOST + me,
        LinkRole::Trunk => MOST * MOST + triangle(low, high),
        LinkRole::Mesh => MOST * MOST + MOST * (MOST - 1) / 2 + triangle(low, high),
    };
    1 << position
}

fn triangle(low: usize, high: usize) -> usize {
    high * (high - 1) / 2 + low
}
