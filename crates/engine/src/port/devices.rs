//! The host: devices, routes, rules and the packet filter. It refuses to touch what is not ours.

use std::future::Future;

use crate::worker::{Host, HostStep, PeerConfig};

use super::{Fault, Written};

/// Reads and writes of a host.
pub trait Devices: Send + Sync {
    /// Why a call failed.
    type Error: Fault;

    /// Reads everything that is ours, and what a plan has to know of the rest. `evidence` and `resolved` are left
    /// empty: they come from the probes and the resolver. An error means unknown.
    fn observe(&self) -> impl Future<Output = Result<Host, Self::Error>> + Send;

    /// Applies one step and reads back what it can get wrong. A step that finds everything as asked sends nothing and
    /// returns [`Written::Same`].
    fn apply(&self, step: &HostStep) -> impl Future<Output = Result<Written, Self::Error>> + Send;

    /// Applies the steps of several peers of one device, with one answer a peer, in order. One that fails does not hold
    /// up the others. A host that can do it with fewer calls than one a peer does so.
    fn apply_peers(
        &self,
        peers: &[PeerConfig],
    ) -> impl Future<Output = Vec<Result<Written, Self::Error>>> + Send {
        async move {
            let mut answers = Vec::with_capacity(peers.len());
            for peer in peers {
                answers.push(self.apply(&HostStep::Peer(peer.clone())).await);
            }
            answers
        }
    }
}
