//! Scripts: what people declare and what happens to links, line by line, with what is to be seen in between. It refuses
//! a line that it does not know.
//!
//! A line that begins with `$ ` is a command, one that begins with `#` is for the reader, all others are the output of
//! the command above them.

mod declare;
mod show;

use std::collections::BTreeMap;

use spanwire_engine::{GatewayName, LinkRole};

use crate::world::{World, name, net, rebooted, restarted};

/// Words of a command: those in order, and `key=value`.
pub(crate) struct Args<'a> {
    words: Vec<&'a str>,
    named: BTreeMap<&'a str, &'a str>,
}

impl<'a> Args<'a> {
    fn new(text: &'a str) -> Self {
        let (named, words): (Vec<&str>, Vec<&str>) =
            text.split_whitespace().partition(|word| word.contains('='));
        Self { words, named: named.into_iter().filter_map(|word| word.split_once('=')).collect() }
    }

    fn word(&self, at: usize) -> &'a str {
        self.words.get(at).copied().unwrap_or_else(|| panic!("a word is missing after {:?}", self.words))
    }

    fn gateway(&self, at: usize) -> GatewayName {
        name(self.word(at))
    }

    fn named(&self, key: &str) -> Option<&'a str> {
        self.named.get(key).copied()
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }
}

/// The text of a script with the output that its commands have now.
pub(crate) fn run(text: &str) -> String {
    let mut world = World::default();
    let mut out = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            if out.last().is_some_and(|last: &String| !last.is_empty() && !last.starts_with(['#', '$'])) {
                out.push(String::new());
            }
            out.push(line.to_owned());
            out.extend(execute(&mut world, command).into_iter().map(|line| format!("  {line}")));
        } else if line.starts_with('#') {
            if out.last().is_some_and(|last: &String| !last.is_empty() && !last.starts_with('#')) {
                out.push(String::new());
            }
            out.push(line.to_owned());
        }
    }
    out.join("\n") + "\n"
}

fn execute(world: &mut World, command: &str) -> Vec<String> {
    let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
    let args = Args::new(rest);
    match verb {
        "gateway" => declare::gateway(world, &args),
        "network" => declare::network(world, &args),
        "intent" => declare::intent(world, &args),
        "delete" => declare::delete(world, &args),
        "break" => cut(world, &args, true),
        "connect" => cut(world, &args, false),
        "stop" => {
            world.dead.insert(args.gateway(0));
            Vec::new()
        }
        "start" => {
            world.dead.remove(&args.gateway(0));
            Vec::new()
        }
        "settled" => settled(world, &args),
        "restart" => change_host(world, &args, restarted),
        "reboot" => change_host(world, &args, rebooted),
        "time" => time(world, &args),
        "until" => until(world, &args),
        "controller" => {
            let pass = world.controller_pass();
            pass.writes.into_iter().map(|write| format!("writes {write}")).chain(waits(pass.waits)).collect()
        }
        "worker" => worker(world, &args),
        "plan" => plan(world, &args),
        "watch" => {
            world.watch();
            let pairs = world.watched.iter().map(|(network, from, to)| format!("{network}: {from} to {to}"));
            vec![format!("{} ordered pairs deliver", pairs.count())]
        }
        "show" => show::show(world, &args),
        other => panic!("the command {other:?} is not known"),
    }
}

fn waits(waits: Vec<String>) -> impl Iterator<Item = String> {
    waits.into_iter().map(|wait| format!("waits: {wait}"))
}

/// `break A B [ROLE]` and `connect A B [ROLE]`: the role is the one that A plays.
fn cut(world: &mut World, args: &Args<'_>, cuts: bool) -> Vec<String> {
    let role: Option<LinkRole> = args.words.get(2).and_then(|role| role.parse().ok());
    let (a, b) = (args.gateway(0), args.gateway(1));
    if cuts {
        world.cuts.insert((a, b, role));
    } else {
        if args.has("unsettled") {
            world.unsettled.extend([(a.clone(), b.clone()), (b.clone(), a.clone())]);
        }
        world.cuts.remove(&(a, b, role));
    }
    world.look_for_losses();
    Vec::new()
}

fn settled(world: &mut World, args: &Args<'_>) -> Vec<String> {
    let (a, b) = (args.gateway(0), args.gateway(1));
    world.unsettled.retain(|pair| *pair != (a.clone(), b.clone()) && *pair != (b.clone(), a.clone()));
    Vec::new()
}

fn change_host(
    world: &mut World,
    args: &Args<'_>,
    change: fn(&crate::world::Local) -> crate::world::Local,
) -> Vec<String> {
    let local = world.hosts.get_mut(&args.gateway(0)).unwrap_or_else(|| panic!("no such host"));
    *local = change(local);
    Vec::new()
}

/// `time SECONDS`: lets time pass with all passes; says when a network enters a phase or ends a change.
fn time(world: &mut World, args: &Args<'_>) -> Vec<String> {
    let seconds = args.word(0).trim_end_matches('s').parse().unwrap_or_else(|fault| panic!("{fault}"));
    let mut lines = Vec::new();
    let start = world.since_boot;
    let mut phases = show::phases(world);
    world.wait(seconds, |world| {
        let now = show::phases(world);
        for (network, phase) in now.iter().filter(|(network, phase)| phases.get(*network) != Some(*phase)) {
            lines.push(format!("after {}s {network}: {phase}", (world.since_boot - start).as_secs()));
        }
        phases = now;
    });
    lines
}

/// `until NETWORK PHASE`: passes, and seconds where nothing else happens, until the phase is published.
fn until(world: &mut World, args: &Args<'_>) -> Vec<String> {
    let (network, phase) = (net(args.word(0)), args.word(1));
    for _ in 0..500 {
        let before = (world.writes, world.steps);
        world.controller_pass();
        if show::phases(world).get(&network).is_some_and(|now| now == phase) {
            world.controller_pass();
            return Vec::new();
        }
        for me in world.hosts.keys().cloned().collect::<Vec<_>>() {
            if world.is_alive(&me) {
                world.worker_pass(&me);
            }
        }
        if (world.writes, world.steps) == before {
            world.since_boot += std::time::Duration::from_secs(1);
        }
    }
    panic!("{network} never comes to {phase}");
}

fn worker(world: &mut World, args: &Args<'_>) -> Vec<String> {
    let me = args.gateway(0);
    let view = world.worker_view(&me);
    let (_, plan) = world.planned(&me, Some(&view));
    let words = crate::world::Words::new(world, &me, &plan.steps);
    let pass = world.worker_pass(&me);
    let steps = pass.steps.iter().map(|step| words.step(step));
    let kept = pass.report.kept.iter().map(|(network, why)| format!("keeps all of {network}: {why}"));
    let published = pass.published.then(|| "publishes".to_owned());
    let lines: Vec<String> = steps.chain(kept).chain(waits(pass.statuses.waits)).chain(published).collect();
    if lines.is_empty() { vec!["nothing to do".to_owned()] } else { lines }
}

fn plan(world: &mut World, args: &Args<'_>) -> Vec<String> {
    let me = args.gateway(0);
    let view = world.worker_view(&me);
    let (_, plan) = world.planned(&me, Some(&view));
    let words = crate::world::Words::new(world, &me, &plan.steps);
    let steps = plan.steps.iter().map(|step| words.step(step));
    let held = plan.report.held.iter().map(|(link, others)| {
        let others: Vec<String> = others.iter().map(crate::world::link_words).collect();
        let until = if others.is_empty() { "its packets have arrived".to_owned() } else { others.join(", ") };
        format!("held: {} until {until}", crate::world::link_words(link))
    });
    let lines: Vec<String> = steps.chain(held).collect();
    if lines.is_empty() { vec!["no step".to_owned()] } else { lines }
}

/// The network that a command names, or the only one there is.
fn network_of(world: &World, word: Option<&&str>) -> spanwire_engine::NetworkName {
    match word {
        Some(word) => net(word),
        None => {
            let declared = world.view.networks.keys().next();
            let told = world.view.intents.keys().next().map(|(network, _)| network);
            declared.or(told).cloned().unwrap_or_else(|| panic!("there is no network"))
        }
    }
}
