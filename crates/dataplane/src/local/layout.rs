//! The numbers that give our routes and rules their order. It refuses to know where they come from.

use spanwire_engine::worker::RouteKind;

use super::Options;

/// Metric of throw routes: own prefixes win over everything in their table.
pub(super) const THROW: u32 = 10;
/// Metric of unreachable routes: they lose to everything in their table.
pub(super) const UNREACHABLE: u32 = 9999;
/// How far the rules for the host's own traffic stand behind the `iif` rules.
const HOST_RULES: u32 = 1000;

/// The metric that makes a route of its kind.
pub(super) fn metric(kind: RouteKind) -> u32 {
    match kind {
        RouteKind::Exact => 100,
        RouteKind::Wide => 200,
    }
}

/// The kind that a metric makes.
pub(super) fn kind(metric: u32) -> Option<RouteKind> {
    [RouteKind::Exact, RouteKind::Wide].into_iter().find(|kind| self::metric(*kind) == metric)
}

impl Options {
    /// Priority of the rule for the host's own traffic of the network at `order`.
    pub(super) fn host_priority(&self, order: u32) -> u32 {
        self.rule_base.saturating_add(HOST_RULES).saturating_add(order)
    }

    /// Priority of the rules that let probes leave by their device.
    pub(super) fn probe_priority(&self) -> u32 {
        self.rule_base.saturating_sub(1)
    }
}
