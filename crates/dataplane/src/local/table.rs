//! Routing tables: their fixed part, routes over devices, and the rules that lead to them. It refuses to delete a route or
//! rule without our protocol number.

use std::{collections::BTreeSet, net::IpAddr};

use ipnet::IpNet;
use spanwire_engine::{
    DeviceName,
    worker::{RouteKind, TableConfig},
};

use crate::netlink::{
    route::{Route, Target},
    rule::{Family, Rule},
};

use super::{Error, LocalDevices, layout};

impl LocalDevices {
    /// First what refuses and what is left to others, then the rule that leads here, then what is too much.
    pub(super) async fn apply_table(&self, config: &TableConfig) -> Result<(), Error> {
        let TableConfig { table, order, unreachable, throw } = config;
        let wanted: Vec<Route> = unreachable
            .iter()
            .map(|prefix| self.fixed(*table, *prefix, layout::UNREACHABLE, Target::Unreachable))
            .chain(throw.iter().map(|prefix| self.fixed(*table, *prefix, layout::THROW, Target::Throw)))
            .collect();
        self.allow_forwarding(wanted.iter().map(|route| route.prefix))?;
        let there = self.own_routes(*table).await?;
        for route in wanted.iter().filter(|route| !there.contains(route)) {
            self.netlink.put_route(route).await.map_err(Error::Netlink)?;
            self.wrote();
        }
        self.make_rules(*table, self.options.host_priority(*order), None).await?;
        let fixed = |route: &&Route| matches!(route.target, Target::Unreachable | Target::Throw);
        for route in there.iter().filter(fixed).filter(|route| !wanted.contains(route)) {
            self.netlink.delete_route(route).await.map_err(Error::Netlink)?;
            self.wrote();
        }
        Ok(())
    }

    fn fixed(&self, table: u32, prefix: IpNet, metric: u32, target: Target) -> Route {
        Route { table, prefix: prefix.trunc(), metric, protocol: self.options.protocol, target, source: None }
    }

    /// Our routes in one table.
    async fn own_routes(&self, table: u32) -> Result<Vec<Route>, Error> {
        let mut routes = self.own_routes_like(table, true).await?;
        routes.append(&mut self.own_routes_like(table, false).await?);
        Ok(routes)
    }

    async fn own_routes_like(&self, table: u32, v4: bool) -> Result<Vec<Route>, Error> {
        self.netlink.routes_of(table, self.options.protocol, v4).await.map_err(Error::Netlink)
    }

    async fn own_rules(&self) -> Result<Vec<Rule>, Error> {
        self.netlink.rules(self.options.protocol).await.map_err(Error::Netlink)
    }

    /// One rule a family for `from` (`None`: the host's own traffic), at this priority and no other.
    async fn make_rules(&self, table: u32, priority: u32, from: Option<&DeviceName>) -> Result<(), Error> {
        let from = from.map(DeviceName::to_string);
        let there = self.own_rules().await?;
        let same = |rule: &&Rule| rule.table == table && rule.from == from && rule.out.is_none();
        let wanted: BTreeSet<Rule> = Family::present()
            .iter()
            .map(|&family| Rule { family, priority, table, from: from.clone(), out: None })
            .collect();
        for rule in wanted.iter().filter(|rule| !there.contains(rule)) {
            self.netlink.add_rule(rule, self.options.protocol).await.map_err(Error::Netlink)?;
            self.wrote();
        }
        for rule in there.iter().filter(same).filter(|rule| !wanted.contains(*rule)) {
            self.delete_rule(rule).await?;
        }
        Ok(())
    }

    pub(super) async fn delete_rule(&self, rule: &Rule) -> Result<(), Error> {
        self.netlink.delete_rule(rule, self.options.protocol).await.map_err(Error::Netlink)?;
        self.wrote();
        Ok(())
    }

    pub(super) async fn add_rule(&self, table: u32, device: &DeviceName) -> Result<(), Error> {
        self.make_rules(table, self.options.rule_base, Some(device)).await
    }

    pub(super) async fn remove_rule(&self, table: u32, device: &DeviceName) -> Result<(), Error> {
        let of_device = |rule: &&Rule| rule.table == table && rule.from.as_deref() == Some(device.as_str());
        for rule in self.own_rules().await?.iter().filter(of_device) {
            self.delete_rule(rule).await?;
        }
        Ok(())
    }

    /// Replaces what stands for the same prefix and kind in one step.
    pub(super) async fn put_route(
        &self,
        table: u32,
        kind: RouteKind,
        prefix: IpNet,
        device: &DeviceName,
        source: Option<IpAddr>,
    ) -> Result<(), Error> {
        let link = self.own_link(device).await?;
        let route = Route {
            table,
            prefix: prefix.trunc(),
            metric: layout::metric(kind),
            protocol: self.options.protocol,
            target: Target::Device(link.index),
            source,
        };
        let v4 = prefix.addr().is_ipv4();
        if !self.own_routes_like(table, v4).await?.contains(&route) {
            self.netlink.put_route(&route).await.map_err(Error::Netlink)?;
            self.wrote();
            if !self.own_routes_like(table, v4).await?.contains(&route) {
                return Err(Error::ReadBack { device: device.clone(), what: "a route" });
            }
        }
        Ok(())
    }

    pub(super) async fn remove_route(&self, table: u32, kind: RouteKind, prefix: IpNet) -> Result<(), Error> {
        for route in self.own_routes_like(table, prefix.addr().is_ipv4()).await? {
            let over_device = matches!(route.target, Target::Device(_));
            if over_device && route.metric == layout::metric(kind) && route.prefix == prefix.trunc() {
                self.netlink.delete_route(&route).await.map_err(Error::Netlink)?;
                self.wrote();
            }
        }
        Ok(())
    }

    /// Rules first, so that nothing is led into a table that is being emptied.
    pub(super) async fn remove_table(&self, table: u32) -> Result<(), Error> {
        for rule in self.own_rules().await?.iter().filter(|rule| rule.table == table) {
            self.delete_rule(rule).await?;
        }
        for route in self.own_routes(table).await? {
            self.netlink.delete_route(&route).await.map_err(Error::Netlink)?;
            self.wrote();
        }
        Ok(())
    }
}
