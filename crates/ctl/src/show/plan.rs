//! `plan` for people: what is published, what it does, and who loses a path. It refuses to end without a verdict.

use std::collections::BTreeMap;

use crate::plan::{Forecast, LinkChange, Network, Pair, RoleChange, RouteChange, Step};

/// The whole forecast.
pub(crate) fn plan(forecast: &Forecast) -> String {
    let Forecast { networks, unreadable } = forecast;
    let mut text: Vec<String> = networks.iter().map(network).collect();
    if networks.is_empty() {
        text.push("Nothing changes.\n".to_owned());
    }
    text.extend(
        unreadable.iter().map(|cause| format!("Not in this forecast, because it can't be read: {cause}\n")),
    );
    text.join("\n")
}

fn network(network: &Network) -> String {
    let Network { name, invalid, steps, lost, gained, left_out, connect_timeout_seconds, on_timeout } =
        network;
    if let Some(reason) = invalid {
        return format!(
            "{name}: Invalid: {reason}\n Nothing would be published; what runs would be left alone.\n"
        );
    }
    let mut text = match steps.len() {
        0 => format!("{name}: nothing changes.\n"),
        1 => format!("{name}: one publication\n"),
        count => format!("{name}: {count} publications, each after everybody is ready for it\n"),
    };
    for (number, step) in (1..).zip(steps) {
        text += &self::step(number, step);
    }
    text += "\n";
    for line in left_out {
        text += &format!(" Left out: {line}\n");
    }
    if !lost.is_empty() {
        text += &format!(" LOSES its path for good: {}\n", pairs(lost));
    }
    if !gained.is_empty() {
        text += &format!(" Gains a path: {}\n", pairs(gained));
    }
    let cut: Vec<&Step> = steps.iter().filter(|step| !step.cut.is_empty()).collect();
    for step in &cut {
        text += &format!(" CUT during {}: {}\n", step.phase, pairs(&step.cut));
    }
    if lost.is_empty() && cut.is_empty() {
        text += " No pair loses its path.\n";
    }
    if steps.len() > 1 {
        text += &format!(
            " If a member does not answer: {connect_timeout_seconds} s a phase at most, then {on_timeout}.\n"
        );
    }
    text
}

fn step(number: usize, step: &Step) -> String {
    let Step { phase, intents, links, routes, roles, cut: _ } = step;
    let told = if intents.is_empty() { "nobody".to_owned() } else { intents.join(", ") };
    let mut text = format!("\n {number}. {phase} (tells {told})\n");
    for RoleChange { gateway, before, after } in roles {
        text += &format!("    ~ {gateway} is {} (was {})\n", after.unwrap_or("out"), before.unwrap_or("out"));
    }
    for LinkChange { change, link } in links {
        let sign = if *change == "made" { '+' } else { '-' };
        text += &format!("    {sign} {} {} - {}\n", link.role, link.from, link.to);
    }
    for line in routes_by_gateway(routes) {
        text += &format!("    > {line}\n");
    }
    text
}

/// Routes that change in the same way on one gateway stand on one line.
fn routes_by_gateway(routes: &[RouteChange]) -> Vec<String> {
    let mut lines: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for RouteChange { gateway, to, before, after } in routes {
        let say = |via: &Option<crate::plan::Via>| match (via, to) {
            (None, _) => "nowhere".to_owned(),
            (Some(via), None) => format!("to {} by {}", via.peer, via.role),
            (Some(via), Some(_)) => format!("by {}", via.role),
        };
        let how = format!("{} (was {})", say(after), say(before));
        let what = to.clone().unwrap_or_else(|| "everything else".to_owned());
        lines.entry((gateway.clone(), how)).or_default().push(what);
    }
    lines
        .into_iter()
        .map(|((gateway, how), what)| format!("{gateway} sends {} {how}", what.join(", ")))
        .collect()
}

/// Both directions of a pair are named once.
fn pairs(pairs: &[Pair]) -> String {
    let back = |pair: &Pair| pairs.iter().any(|other| other.from == pair.to && other.to == pair.from);
    let named = pairs.iter().filter_map(|pair| match (back(pair), pair.from < pair.to) {
        (true, true) => Some(format!("{} <-> {}", pair.from, pair.to)),
        (true, false) => None,
        (false, _) => Some(format!("{} -> {}", pair.from, pair.to)),
    });
    named.collect::<Vec<_>>().join(", ")
}
