//! What a worker says of its links. It refuses ages and counters: those are metrics.

use crate::{GatewayName, LinkRole, Role};

/// `WorkerSliceConfig.status`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct WorkerStatus {
    /// The generation of the intent that is applied.
    pub observed_generation: i64,
    /// The role that is applied; `None`: nothing applied yet.
    pub role: Option<Role>,
    /// One row a link that is wanted or still there, and one a peer that could not become a link.
    pub peers: Vec<PeerStatus>,
    /// Counts over the wanted rows.
    pub summary: Summary,
    /// Conditions of this network on this host.
    pub conditions: Vec<Condition>,
}

/// The condition of an intent whose generation went back.
pub(crate) const RESTORED: &str = "ControlClusterRestored";

impl WorkerStatus {
    /// Whether it says of the intent of this generation that the store was restored: that stays said until the next one.
    pub(crate) fn says_restored(&self, generation: i64) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|condition| condition.kind == RESTORED && condition.observed_generation == generation)
    }
}

/// `status.summary`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Summary {
    /// Wanted links.
    pub desired: u32,
    /// Wanted links that are connected.
    pub ready: u32,
    /// Wanted links that are not.
    pub failing: u32,
}

/// `status.peerStatuses[]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PeerStatus {
    /// The peer as the intent names it.
    pub peer: String,
    /// The role of the link; `None`: the peer could not become a link.
    pub role: Option<LinkRole>,
    /// Connected, NotConnected or Pending.
    pub state: LinkState,
    /// Whether traffic is routed over it.
    pub route: RouteState,
    /// Why.
    pub reason: Reason,
    /// Words for people.
    pub message: String,
    /// When state or reason last changed, RFC 3339.
    pub last_transition: String,
}

/// The state of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkState {
    /// A round trip was answered, or bytes were received since a handshake from a peer that does not probe.
    Connected,
    /// No evidence that it works.
    NotConnected,
    /// Not made yet, or made and not judged yet.
    Pending,
}

impl LinkState {
    /// The word used in objects.
    pub fn as_str(self) -> &'static str {
        match self {
            LinkState::Connected => "Connected",
            LinkState::NotConnected => "NotConnected",
            LinkState::Pending => "Pending",
        }
    }
}

/// What is routed over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouteState {
    /// It carries its exact routes or the wide route.
    Active,
    /// It could.
    Standby,
    /// Nothing.
    None,
}

impl RouteState {
    /// The word used in objects.
    pub fn as_str(self) -> &'static str {
        match self {
            RouteState::Active => "Active",
            RouteState::Standby => "Standby",
            RouteState::None => "None",
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Why a link is in its state. Each has one meaning and one next step, in docs/conditions.md.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[$doc])* $name),* }

        impl Reason {
            /// All reasons.
            pub const ALL: &'static [Reason] = &[$(Reason::$name),*];

            /// The word used in objects.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$name => stringify!($name)),* }
            }
        }
    };
}

reasons! {
    /// A round trip was answered.
    ProbeAnswered,
    /// The peer does not probe, but bytes arrive.
    BytesReceived,
    /// No probe was answered and nothing was received.
    NoEvidence,
    /// This side hears the peer and is not heard by it, or the reverse.
    OneWay,
    /// Made a moment ago; the first probe is out.
    Connecting,
    /// The peer has no key yet.
    WaitingForPeer,
    /// There is no gateway of that name.
    UnknownPeer,
    /// The list names the gateway itself.
    OwnName,
    /// The published key is no WireGuard key.
    UnusableKey,
    /// The peer has this gateway's own key.
    OwnKey,
    /// Another peer on the device has the key.
    DuplicateKey,
    /// Another peer has the prefix.
    PrefixConflict,
    /// A prefix of the peer is a route or an address of this host.
    HostPrefixConflict,
    /// The endpoint lies inside the overlay.
    EndpointInOverlay,
    /// The endpoint's name does not resolve.
    EndpointUnresolved,
    /// The network asks for a WireGuard that this host does not have.
    BackendUnavailable,
    /// A step for this link failed.
    StepFailed,
    /// No longer wanted; removed when what replaces it is connected.
    Unwanted,
    /// No longer wanted, and kept because `onTimeout` is `Hold`.
    Held,
}

/// A condition of an object, as Kubernetes writes them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Condition {
    /// CamelCase name.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: ConditionStatus,
    /// CamelCase reason.
    pub reason: String,
    /// Words for people.
    pub message: String,
    /// Generation that it speaks of.
    pub observed_generation: i64,
    /// When the status last changed, RFC 3339.
    pub last_transition: String,
}

impl Condition {
    /// A condition whose moment of transition is not known yet.
    pub(crate) fn new(
        kind: &str,
        status: ConditionStatus,
        reason: &str,
        message: String,
        observed_generation: i64,
    ) -> Self {
        let (kind, reason) = (kind.to_owned(), reason.to_owned());
        Self { kind, status, reason, message, observed_generation, last_transition: String::new() }
    }
}

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Not known.
    Unknown,
}

impl ConditionStatus {
    /// The word used in objects.
    pub fn as_str(self) -> &'static str {
        match self {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        }
    }
}

impl PeerStatus {
    /// Whether this row is about the link of `role` to `peer`.
    pub fn is_link(&self, peer: &GatewayName, role: LinkRole) -> bool {
        self.role == Some(role) && self.peer == peer.as_str()
    }
}
