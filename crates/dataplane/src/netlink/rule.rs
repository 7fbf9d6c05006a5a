//! Policy rules: list, add, delete. It refuses rules with selectors beyond an interface: those are never ours.

use std::path::Path;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    route::RouteProtocol,
    rule::{RuleAction, RuleAttribute, RuleMessage},
};

use super::{Error, Netlink};

/// The two address families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) const BOTH: [Family; 2] = [Family::V4, Family::V6];

    /// Those that the kernel has: IPv6 can be left out of it, or switched off at boot.
    pub(crate) fn present() -> &'static [Family] {
        if Path::new("/proc/sys/net/ipv6").is_dir() { &Self::BOTH } else { &[Family::V4] }
    }
}

/// A rule that leads to a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    pub(crate) family: Family,
    pub(crate) priority: u32,
    pub(crate) table: u32,
    /// Only packets that arrived on this interface.
    pub(crate) from: Option<String>,
    /// Only packets of sockets bound to this interface.
    pub(crate) out: Option<String>,
}

impl Netlink {
    /// All rules of one protocol number.
    pub(crate) async fn rules(&self, protocol: u8) -> Result<Vec<Rule>, Error> {
        let mut rules = Vec::new();
        for &family in Family::present() {
            let mut message = RuleMessage::default();
            message.header.family = address_family(family);
            let found = self.dump("rules", &RouteNetlinkMessage::GetRule(message)).await?;
            rules.extend(found.into_iter().filter_map(|message| read(message, family, protocol)));
        }
        Ok(rules)
    }

    pub(crate) async fn add_rule(&self, rule: &Rule, protocol: u8) -> Result<(), Error> {
        let what = format!("add a rule to table {} ({rule:?})", rule.table);
        let message = RouteNetlinkMessage::NewRule(write(rule, protocol));
        match self.write(what, NLM_F_CREATE | NLM_F_EXCL, message).await {
            Err(error) if error.errno() == Some(nix::libc::EEXIST) => Ok(()),
            other => other,
        }
    }

    pub(crate) async fn delete_rule(&self, rule: &Rule, protocol: u8) -> Result<(), Error> {
        let what = format!("delete a rule to table {} ({rule:?})", rule.table);
        self.write(what, 0, RouteNetlinkMessage::DelRule(write(rule, protocol))).await
    }
}

pub(super) fn address_family(family: Family) -> AddressFamily {
    match family {
        Family::V4 => AddressFamily::Inet,
        Family::V6 => AddressFamily::Inet6,
    }
}

fn write(rule: &Rule, protocol: u8) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = address_family(rule.family);
    message.header.action = RuleAction::ToTable;
    message.attributes = vec![
        RuleAttribute::Table(rule.table),
        RuleAttribute::Priority(rule.priority),
        RuleAttribute::Protocol(RouteProtocol::from(protocol)),
    ];
    message.attributes.extend(rule.from.clone().map(RuleAttribute::Iifname));
    message.attributes.extend(rule.out.clone().map(RuleAttribute::Oifname));
    message
}

fn read(message: RouteNetlinkMessage, family: Family, protocol: u8) -> Option<Rule> {
    let RouteNetlinkMessage::NewRule(message) = message else { return None };
    let mut rule = Rule { family, priority: 0, table: message.header.table.into(), from: None, out: None };
    let mut owner = 0;
    for attribute in message.attributes {
        match attribute {
            RuleAttribute::Table(table) => rule.table = table,
            RuleAttribute::Priority(priority) => rule.priority = priority,
            RuleAttribute::Protocol(number) => owner = u8::from(number),
            RuleAttribute::Iifname(name) => rule.from = Some(name),
            RuleAttribute::Oifname(name) => rule.out = Some(name),
            _ => {}
        }
    }
    (owner == protocol && message.header.action == RuleAction::ToTable).then_some(rule)
}
