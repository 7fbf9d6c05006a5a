//! Packet filters of the lab's hosts, by `nft` inside their namespaces. It refuses the product's own table.

use std::net::IpAddr;

use super::{Host, LabError, UPLINK};

impl Host {
    /// The firewall of case D30: a rule that masquerades everything that does not stay among pods, and a rule that
    /// drops forwarded packets of no known connection, as a common CNI and kube-proxy make them.
    ///
    /// # Errors
    /// `nft` is missing or refused.
    pub fn cni_firewall(&self) -> Result<(), LabError> {
        self.nft(concat!(
            "table inet cni {\n",
            "  chain forward { type filter hook forward priority filter; policy accept;\n",
            "    ct state invalid counter drop\n  }\n",
            "  chain postrouting { type nat hook postrouting priority srcnat; policy accept;\n",
            "    ip daddr != 10.244.0.0/16 counter masquerade\n",
            "    ip6 daddr != fd00:10:244::/48 counter masquerade\n  }\n}\n",
        ))
    }

    /// Loses everything that arrives from `peer` on the underlay, without a word to anybody. Both hosts have to do
    /// it to part a pair.
    ///
    /// # Errors
    /// `nft` is missing or refused.
    pub fn deafen(&self, peer: IpAddr) -> Result<(), LabError> {
        let family = if peer.is_ipv4() { "ip" } else { "ip6" };
        let chain = format!("type filter hook ingress device \"{UPLINK}\" priority 0; policy accept;");
        self.nft(&format!(
            "add table netdev lab\nadd chain netdev lab deaf {{ {chain} }}\nadd rule netdev lab deaf {family} saddr {peer} drop\n"
        ))
    }

    /// Hears everybody again.
    ///
    /// # Errors
    /// `nft` is missing or refused.
    pub fn hear_again(&self) -> Result<(), LabError> {
        self.nft("add table netdev lab\ndelete table netdev lab\n")
    }

    /// Replaces the source of what leaves by `device`.
    pub(crate) fn masquerade(&self, device: &str) -> Result<(), LabError> {
        self.nft(&format!(
            "table ip nat {{\n  chain postrouting {{ type nat hook postrouting priority srcnat; policy accept;\n    oifname \"{device}\" masquerade\n  }}\n}}\n"
        ))
    }

    /// Runs a script of `nft` inside the host.
    ///
    /// # Errors
    /// `nft` is missing or refused.
    pub fn nft(&self, script: &str) -> Result<(), LabError> {
        self.output("nft", &["-f", "-"], script).map(|_| ())
    }
}
