//! Words of rules, in the schema of the nftables crate. It refuses to know what they are used for.

use std::borrow::Cow;

use ipnet::IpNet;
use nftables::{
    expr::{CT, CTDir, Expression, Meta, MetaKey, NamedExpression, Payload, PayloadField, Prefix},
    stmt::{JumpTarget, Match, NAT, NATFamily, Operator, Statement},
};

use crate::netlink::rule::Family;

type Statement_ = Statement<'static>;

/// `iifname @set`.
pub(super) fn arrives_by(set: &str) -> Statement_ {
    matches(meta(MetaKey::Iifname), Operator::EQ, reference(set))
}

/// `oifname @set`.
pub(super) fn leaves_by(set: &str) -> Statement_ {
    matches(meta(MetaKey::Oifname), Operator::EQ, reference(set))
}

/// `oifname != @set`.
pub(super) fn leaves_not_by(set: &str) -> Statement_ {
    matches(meta(MetaKey::Oifname), Operator::NEQ, reference(set))
}

/// The side of a packet's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Destination,
}

impl Side {
    fn field(self) -> &'static str {
        match self {
            Side::Source => "saddr",
            Side::Destination => "daddr",
        }
    }
}

fn protocol(family: Family) -> &'static str {
    match family {
        Family::V4 => "ip",
        Family::V6 => "ip6",
    }
}

/// `ip saddr @set` and its relatives.
pub(super) fn address_in(family: Family, side: Side, set: &str) -> Statement_ {
    matches(payload(protocol(family), side.field()), Operator::EQ, reference(set))
}

/// `ip daddr != @set` and its relatives.
pub(super) fn address_not_in(family: Family, side: Side, set: &str) -> Statement_ {
    matches(payload(protocol(family), side.field()), Operator::NEQ, reference(set))
}

/// `ip daddr ADDRESS`.
pub(super) fn destination_is(family: Family, address: &str) -> Statement_ {
    matches(payload(protocol(family), "daddr"), Operator::EQ, text(address))
}

/// `udp dport PORT`.
pub(super) fn udp_port(port: u16) -> Statement_ {
    matches(payload("udp", "dport"), Operator::EQ, Expression::Number(port.into()))
}

/// `ct original ip daddr @set`: the destination before anybody rewrote it.
pub(super) fn first_destination_in(family: Family, set: &str) -> Statement_ {
    let key = format!("{} daddr", protocol(family)).into();
    let tracked = CT { key, family: None, dir: Some(CTDir::Original) };
    matches(Expression::Named(NamedExpression::CT(tracked)), Operator::EQ, reference(set))
}

/// `ct state established,related`.
pub(super) fn established() -> Statement_ {
    let state = CT { key: "state".into(), family: None, dir: None };
    let states = Expression::List(vec![text("established"), text("related")]);
    matches(Expression::Named(NamedExpression::CT(state)), Operator::IN, states)
}

/// `snat to` the source that the packet has already.
pub(super) fn keep_source(family: Family) -> Statement_ {
    source_nat(family, payload(protocol(family), "saddr"))
}

/// `snat to ADDRESS`.
pub(super) fn set_source(family: Family, address: &str) -> Statement_ {
    source_nat(family, text(address))
}

fn source_nat(family: Family, address: Expression<'static>) -> Statement_ {
    let family = match family {
        Family::V4 => NATFamily::IP,
        Family::V6 => NATFamily::IP6,
    };
    Statement::SNAT(Some(NAT { addr: Some(address), family: Some(family), port: None, flags: None }))
}

/// `jump CHAIN`.
pub(super) fn jump(chain: &str) -> Statement_ {
    Statement::Jump(JumpTarget { target: Cow::Owned(chain.to_owned()) })
}

/// `accept`.
pub(super) fn accept() -> Statement_ {
    Statement::Accept(None)
}

/// `drop`.
pub(super) fn refuse() -> Statement_ {
    Statement::Drop(None)
}

/// A prefix as an element of an interval set.
pub(super) fn element(prefix: &IpNet) -> Expression<'static> {
    if prefix.prefix_len() == prefix.max_prefix_len() {
        return text(&prefix.addr().to_string());
    }
    let address = Box::new(text(&prefix.network().to_string()));
    Expression::Named(NamedExpression::Prefix(Prefix { addr: address, len: prefix.prefix_len().into() }))
}

/// A string.
pub(super) fn text(text: &str) -> Expression<'static> {
    Expression::String(Cow::Owned(text.to_owned()))
}

fn reference(set: &str) -> Expression<'static> {
    text(&format!("@{set}"))
}

fn meta(key: MetaKey) -> Expression<'static> {
    Expression::Named(NamedExpression::Meta(Meta { key }))
}

fn payload(protocol: &'static str, field: &'static str) -> Expression<'static> {
    let field = PayloadField { protocol: protocol.into(), field: field.into() };
    Expression::Named(NamedExpression::Payload(Payload::PayloadField(field)))
}

fn matches(left: Expression<'static>, op: Operator, right: Expression<'static>) -> Statement_ {
    Statement::Match(Match { left, right, op })
}
