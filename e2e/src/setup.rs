//! What is built and what is done to it. It refuses combinations that mean nothing.

use std::{fmt, path::PathBuf};

use anyhow::{Result, bail};
use clap::ValueEnum;
use spanwire_engine::Phase;

/// What happens while everything is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// `hub: hub-a` becomes `hub: hub-b`
    HubChange,
    /// The active hub's host is cut off; the standby takes over by the workers alone
    Failover,
    /// A hub change with every worker and the controller killed (-9) and started again in each phase
    Restart,
    /// `topology: mesh` becomes `hub-spoke`, and back
    MeshToHub,
    /// `tunnel.mode` becomes the other one, and back; needs a kernel with WireGuard
    ModeChange,
    /// A mesh whose every worker and controller is killed (-9) and started again
    FullMesh,
    /// A member joins, and leaves again
    Members,
    /// The private key of a spoke is deleted, and its worker killed and started again
    KeyLoss,
    /// The control cluster is away for two minutes, a worker restarts meanwhile, then the hub moves
    Outage,
    /// The control cluster is empty for a while, as if it were a wrong one
    Emptied,
    /// The hub moves, then the control cluster's etcd is restored from before
    Restored,
    /// Ten minutes in which nothing is edited, with every request counted
    Rest,
    /// Fifty hub changes, with the time from each edit to the first device
    Latency,
    /// A hub change without traffic, with every write of it counted
    Writes,
    /// The chart is upgraded, workers' pods are deleted, releases are uninstalled with their tunnels kept and installed again
    Chart,
}

impl Scenario {
    /// Whether it runs only where it is named: for its figures, which take some minutes, or because it needs a kernel with
    /// WireGuard.
    pub fn is_named_only(self) -> bool {
        matches!(self, Scenario::Rest | Scenario::Latency | Scenario::Writes | Scenario::ModeChange)
    }

    /// Whether it is about API servers.
    pub fn needs_servers(self) -> bool {
        match self {
            Scenario::Outage
            | Scenario::Emptied
            | Scenario::Restored
            | Scenario::Rest
            | Scenario::Latency
            | Scenario::Writes => true,
            Scenario::HubChange
            | Scenario::Failover
            | Scenario::Restart
            | Scenario::MeshToHub
            | Scenario::ModeChange
            | Scenario::FullMesh
            | Scenario::Members
            | Scenario::KeyLoss
            | Scenario::Chart => false,
        }
    }

    /// Whether it is about the chart on clusters.
    pub fn needs_clusters(self) -> bool {
        self == Scenario::Chart
    }
}

/// The declared shape at the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Topology {
    /// Every member has a link to every other
    Mesh,
    /// Every member has a link to the hub
    HubSpoke,
}

/// Whether spokes reach each other through the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transit {
    /// They do
    #[value(alias = "Routed")]
    Routed,
    /// They reach hubs only
    #[value(alias = "Isolated")]
    Isolated,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scenario::HubChange => "hub-change",
            Scenario::Failover => "failover",
            Scenario::Restart => "restart",
            Scenario::MeshToHub => "mesh-to-hub",
            Scenario::ModeChange => "mode-change",
            Scenario::FullMesh => "full-mesh",
            Scenario::Members => "members",
            Scenario::KeyLoss => "key-loss",
            Scenario::Outage => "outage",
            Scenario::Emptied => "emptied",
            Scenario::Restored => "restored",
            Scenario::Rest => "rest",
            Scenario::Latency => "latency",
            Scenario::Writes => "writes",
            Scenario::Chart => "chart",
        })
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Topology::Mesh => "mesh",
            Topology::HubSpoke => "hub-spoke",
        })
    }
}

impl fmt::Display for Transit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transit::Routed => "Routed",
            Transit::Isolated => "Isolated",
        })
    }
}

/// Which WireGuard carries the tunnels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// The processes `spanwire dataplane`
    Userspace,
    /// The kernel, which has to have it
    Kernel,
}

impl Mode {
    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Mode::Userspace => Mode::Kernel,
            Mode::Kernel => Mode::Userspace,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Userspace => "userspace",
            Mode::Kernel => "kernel",
        })
    }
}

/// Whose worker is stopped (SIGSTOP) for some seconds during a hub change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Laggard {
    /// A spoke, once its link to the new hub works and before it sends through it
    Spoke,
    /// The old hub, once it has confirmed that it is no longer the first one
    OldHub,
}

/// Where objects are and hosts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Provider {
    /// Network namespaces of this machine, one directory for all objects
    Files,
    /// Network namespaces of this machine, an API server for the controller and one for each worker
    Local,
    /// Clusters of kind, with the chart as users install it; traffic between pods
    Kind,
}

/// How clusters of kind are made and what is put on them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clusters {
    /// The archive of the product's image.
    pub image: PathBuf,
    /// The chart's folder.
    pub chart: PathBuf,
    /// The chart that an upgrade begins with; `None`: the same.
    pub previous_chart: Option<PathBuf>,
    /// The image of the nodes; `None`: that of the installed kind.
    pub node_image: Option<String>,
    /// Whether clusters that are there already may be used.
    pub reuse: bool,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// Where it runs.
    pub provider: Provider,
    /// What happens.
    pub scenario: Scenario,
    /// Whether the API servers of all workers are away from the moment when all links work.
    pub own_clusters_away: bool,
    /// How many hosts there are: two hubs, the others spokes.
    pub members: u8,
    /// The shape at the beginning.
    pub topology: Topology,
    /// Whether spokes reach each other.
    pub transit: Transit,
    /// Which WireGuard carries the tunnels at the beginning.
    pub mode: Mode,
    /// Whether every host has a masquerading rule and an INVALID drop, with a TCP stream beside the datagrams.
    pub firewall: bool,
    /// Datagrams a second and pair.
    pub rate: u32,
    /// A phase that is left out by a controller of the tests' own, to show what it is for.
    pub leave_out: Option<Phase>,
    /// Whose worker stands still for a while, to show what the phases wait for.
    pub laggard: Option<Laggard>,
    /// Clusters of kind, where they are the provider.
    pub clusters: Clusters,
    /// Where objects, statuses and logs are kept; `None`: in a temporary folder that goes with the fleet.
    pub files: Option<PathBuf>,
}

impl Setup {
    /// The common setup of a scenario.
    pub fn for_scenario(scenario: Scenario) -> Self {
        let topology = match scenario {
            Scenario::MeshToHub | Scenario::FullMesh => Topology::Mesh,
            Scenario::HubChange
            | Scenario::Failover
            | Scenario::Restart
            | Scenario::ModeChange
            | Scenario::Members
            | Scenario::KeyLoss
            | Scenario::Outage
            | Scenario::Emptied
            | Scenario::Restored
            | Scenario::Rest
            | Scenario::Latency
            | Scenario::Writes
            | Scenario::Chart => Topology::HubSpoke,
        };
        let provider = if scenario.needs_clusters() {
            Provider::Kind
        } else if scenario.needs_servers() {
            Provider::Local
        } else {
            Provider::Files
        };
        Self {
            provider,
            own_clusters_away: false,
            scenario,
            members: 4,
            topology,
            transit: Transit::Routed,
            mode: Mode::Userspace,
            firewall: false,
            rate: 1000,
            leave_out: None,
            laggard: None,
            clusters: Clusters::default(),
            files: None,
        }
    }

    /// Whether it means something.
    ///
    /// # Errors
    /// The scenario needs another topology.
    pub fn check(&self) -> Result<()> {
        let needed = Self::for_scenario(self.scenario).topology;
        if self.topology != needed {
            bail!(
                "scenario {} begins with topology {needed}: leave --topology out, or choose another scenario",
                self.scenario
            );
        }
        if self.own_clusters_away && self.provider != Provider::Local {
            bail!(
                "--own-clusters-away needs --provider local: elsewhere the workers' API servers can't be ended"
            );
        }
        if self.scenario.needs_servers() && self.provider != Provider::Local {
            bail!(
                "scenario {} needs --provider local: it ends, restores or counts at API servers",
                self.scenario
            );
        }
        if self.scenario.needs_clusters() && self.provider != Provider::Kind {
            bail!("scenario {} needs --provider kind: it is about the chart", self.scenario);
        }
        if !(4..=120).contains(&self.members) {
            bail!("--members takes 4 to 120 hosts");
        }
        if self.members != 4 && self.scenario != Scenario::Writes {
            bail!("--members is for the scenario writes: the others measure every pair of four");
        }
        if self.rate == 0 || self.rate > 20_000 {
            bail!("--rate takes 1 to 20000 datagrams a second and pair");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_that_mean_nothing_are_refused() {
        for scenario in Scenario::value_variants() {
            assert!(Setup::for_scenario(*scenario).check().is_ok());
        }
        let mesh = Setup { topology: Topology::Mesh, ..Setup::for_scenario(Scenario::HubChange) };
        assert!(mesh.check().unwrap_err().to_string().contains("hub-spoke"));
        assert!(Setup { rate: 0, ..Setup::for_scenario(Scenario::Failover) }.check().is_err());
    }
}
