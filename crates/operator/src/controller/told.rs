//! What people are told of a network as Events, from what its status said before and after. It refuses to tell what a
//! status has not recorded: so nothing is told twice.

use spanwire_api::{GatewayNetworkSpec, WorkerSliceConfigSpec};
use spanwire_engine::{
    Change, NetworkName, NetworkStatus, Published,
    controller::{IntentDelete, Plan, TEARDOWN_DEADLINE},
    port::NetworkView,
};

use crate::events::Happening;

/// What a status that was just written changed.
pub fn of_status(name: &NetworkName, network: &NetworkView, plan: &Plan) -> Vec<Happening> {
    let Some((after, _)) = &plan.status else { return Vec::new() };
    let before = &network.status;
    let on =
        |reason, note| Happening::on::<GatewayNetworkSpec>(name.as_str(), &*network.meta.uid.0, reason, note);
    let mut told = Vec::new();
    if let Some((valid, words)) = verdict(before, after) {
        told.push(if valid { on("Valid", words) } else { on("Invalid", words).warning() });
    }
    told.extend(plan.report.overrun.iter().map(|words| on("PhaseTimedOut", words.clone()).warning()));
    told.extend(change(before, after).map(|(reason, words)| on(reason, words)));
    told
}

/// The deadline of a teardown, told on its network, or on the intent itself where that is gone.
pub fn of_deadline(delete: &IntentDelete, network: Option<&NetworkView>) -> Happening {
    let IntentDelete { network: name, gateway, expected, overdue: _ } = delete;
    let note = format!(
        "{gateway} has not confirmed within {} minutes that its links of {name} are gone: its intent is deleted and its \
         address is free. See that its worker runs, or remove the host",
        TEARDOWN_DEADLINE.as_secs() / 60
    );
    let reason = "TeardownDeadlinePassed";
    let happening = match network {
        Some(network) => {
            Happening::on::<GatewayNetworkSpec>(name.as_str(), &*network.meta.uid.0, reason, note)
        }
        None => {
            let object = format!("{name}.{gateway}");
            Happening::on::<WorkerSliceConfigSpec>(object, &*expected.uid.0, reason, note)
        }
    };
    happening.warning()
}

/// The verdict, where it is another one than before: whether it is `Valid`, and words for it.
fn verdict(before: &NetworkStatus, after: &NetworkStatus) -> Option<(bool, String)> {
    if before.state == after.state || after.state.is_empty() {
        return None;
    }
    Some(match after.state.strip_prefix("Invalid: ") {
        Some(reason) => (false, format!("{reason}. Nothing is published and what runs is left alone")),
        None => (true, "the declaration can be carried out".to_owned()),
    })
}

/// How far the change of hubs or topology came.
fn change(before: &NetworkStatus, after: &NetworkStatus) -> Option<(&'static str, String)> {
    match (&before.change, &after.change) {
        (None, None) => None,
        (None, Some(now)) => Some(("ChangeStarted", of(now))),
        (Some(old), Some(now)) if (&old.from, &old.to) != (&now.from, &now.to) => {
            Some(("ChangeRestarted", of(now)))
        }
        (Some(old), Some(now)) if old.phase != now.phase => Some(("PhaseEntered", of(now))),
        (Some(_), Some(_)) => None,
        (Some(old), None) => Some(("ChangeEnded", format!("now {}", words(&old.to)))),
    }
}

fn of(change: &Change) -> String {
    format!("{}: from {} to {}", change.phase.as_str(), words(&change.from), words(&change.to))
}

fn words(published: &Published) -> String {
    let hubs: Vec<&str> = published.hubs.iter().map(|hub| hub.as_str()).collect();
    let topology = published.topology.as_str();
    if hubs.is_empty() { topology.to_owned() } else { format!("{topology} around {}", hubs.join(", ")) }
}
