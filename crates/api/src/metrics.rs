//! Every metric that the processes show, with its words: what dashboards and alerts are written against. It refuses a
//! metric without words, and values: the processes count.

mod page;

pub use page::page;

/// How a metric is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows while the process lives.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts of values below bounds, their sum and their number.
    Histogram,
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// As it is scraped.
    pub name: &'static str,
    /// How it is counted.
    pub kind: Kind,
    /// Labels, in order.
    pub labels: &'static [&'static str],
    /// The processes that show it.
    pub of: &'static [&'static str],
    /// What it says, without a full stop.
    pub help: &'static str,
}

/// The process `spanwire controller`.
pub const CONTROLLER: &str = "controller";
/// The process `spanwire worker`.
pub const WORKER: &str = "worker";
/// The process `spanwire dataplane`.
pub const DATAPLANE: &str = "dataplane";

/// What a label says and which values it takes.
pub const LABELS: &[(&str, &str)] = &[
    ("version", "of the program"),
    (
        "outcome",
        "of a pass: `done` nothing is left to do, `waiting` for something outside, `failed` at least one fault. Of a step: `changed`, `same` (it stood so already), `failed`, `left` (not tried, because others failed)",
    ),
    ("class", "what a fault asks for: `Retry`, `WaitForChange`, `NeedsHuman`"),
    ("target", "where a write went: `device`, `record`, `intent`, `status`, `rights`"),
    (
        "kind",
        "of a step: `record_intent`, `record_link`, `forget_link`, `forget_intent`, `firewall`, `table`, `device`, `add_rule`, `peer`, `take_over`, `route`, `remove_route`, `remove_peer`, `remove_rule`, `remove_device`, `remove_table`",
    ),
    ("network", "name of the GatewayNetwork"),
    ("role", "of this end of the link: `uplink`, `downlink`, `trunk`, `mesh`"),
    ("peer", "name of the Gateway at the other end"),
    (
        "state",
        "of a link: `Connected`, `NotConnected`, `Pending`, as in statuses. Of the links of a network: `desired`, `ready` (connected at both ends), `failing`",
    ),
    ("phase", "of a change of hubs or topology: `Adding`, `Switching`, `Demoting`, `Removing`"),
    ("side", "which connection: `control`, `local`"),
    (
        "verb",
        "as in a Role: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`; `other` for what has none",
    ),
    ("resource", "the plural, with a subresource behind a slash; `other` for what is no object"),
    (
        "answer",
        "of the server: `done`, `not_found`, `conflict`, `refused` (other 4xx), `failed` (5xx), `missing` (no answer in time, or no connection)",
    ),
];

macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal [$($label:literal),*] of [$($of:ident),*] $help:literal;)*) => {
        $(#[doc = $help]
        pub const $constant: Metric = Metric {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            of: &[$($of),*],
            help: $help,
        };)*

        /// All of them, in the order in which they are shown.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    BUILD_INFO: Gauge "spanwire_build_info" ["version"] of [CONTROLLER, WORKER, DATAPLANE]
        "Always 1";
    PASSES: Counter "spanwire_passes_total" ["outcome"] of [CONTROLLER, WORKER]
        "Passes over everything that the process owns";
    PASS_DURATION: Histogram "spanwire_pass_duration_seconds" [] of [CONTROLLER, WORKER]
        "How long passes took";
    ERRORS: Counter "spanwire_errors_total" ["class"] of [CONTROLLER, WORKER]
        "Faults of passes; one that lasts is counted by each pass that meets it";
    WRITES: Counter "spanwire_writes_total" ["target"] of [CONTROLLER, WORKER]
        "Writes that changed something";
    STEPS: Counter "spanwire_steps_total" ["kind", "outcome"] of [WORKER]
        "Steps of plans";
    DEVICE_WRITES: Counter "spanwire_device_writes_total" [] of [WORKER]
        "Changes sent to this host: devices, peers, addresses, routes, rules, switches, the packet filter";
    LINK_STATE: Gauge "spanwire_link_state" ["network", "role", "peer", "state"] of [WORKER]
        "1 for the state that a link is in, 0 for the others";
    LINK_HANDSHAKE_AGE: Gauge "spanwire_link_handshake_age_seconds" ["network", "role", "peer"] of [WORKER]
        "Time since the last handshake of a link that had one; up to 180 s in a session that works";
    LINK_RECEIVED: Counter "spanwire_link_received_bytes_total" ["network", "role", "peer"] of [WORKER]
        "Bytes that the device received from the peer; begins at 0 where the peer or its device is made again";
    LINK_SENT: Counter "spanwire_link_sent_bytes_total" ["network", "role", "peer"] of [WORKER]
        "Bytes that the device sent to the peer; they grow on a dead link too";
    NETWORK_LINKS: Gauge "spanwire_network_links" ["network", "state"] of [CONTROLLER]
        "Links of a network with both ends joined, as in its status";
    CHANGE_PHASE: Gauge "spanwire_change_phase" ["network", "phase"] of [CONTROLLER]
        "While hubs or topology of a network change: 1 for the running phase, 0 for the others";
    CHANGE_PHASE_AGE: Gauge "spanwire_change_phase_age_seconds" ["network"] of [CONTROLLER]
        "Time since the running phase of a change began";
    API_REQUESTS: Counter "spanwire_api_requests_total" ["side", "verb", "resource", "answer"] of [CONTROLLER, WORKER]
        "Requests to API servers, leases included; a watch is counted when it begins";
    DATAPLANE_DEVICES: Gauge "spanwire_dataplane_devices" [] of [DATAPLANE]
        "Userspace devices that are held";
    DATAPLANE_CHANGES: Counter "spanwire_dataplane_changes_total" [] of [DATAPLANE]
        "Requests that changed the configuration of a userspace device";
    DATAPLANE_PROBING_PEERS: Gauge "spanwire_dataplane_probing_peers" [] of [DATAPLANE]
        "Peers whose probes arrived within the last 4 s, on devices of either kind";
}
