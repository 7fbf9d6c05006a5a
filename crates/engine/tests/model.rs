//! Every interleaving of small changes with the real engine (larger ones: `cargo xtask model`). It refuses sampling:
//! each search is complete, and each rule taken away gives a counter-example.
#![allow(clippy::panic, reason = "helpers of tests fail by panic")]

use spanwire_engine::{LinkRole, OnTimeout};
use spanwire_testkit::model::{Declaration, Outcome, Rule, Setup, explore};

fn complete(setup: &Setup) -> usize {
    match explore(setup) {
        Outcome::Complete { states, ends } => {
            assert!(ends > 0);
            states
        }
        Outcome::Stopped { states } => panic!("not complete after {states} states"),
        Outcome::Violation { what, trace, states } => {
            panic!("after {states} states: {what}\n{}", trace.join("\n"))
        }
    }
}

fn broken(without: Rule, setup: Setup) {
    let outcome = explore(&Setup { without: Some(without), ..setup });
    assert!(matches!(outcome, Outcome::Violation { .. }), "{without:?} is not needed: {outcome:?}");
}

fn members(hub: usize, members: &[usize]) -> Declaration {
    Declaration { topology: "hub-spoke", hubs: vec![hub], members: members.to_vec() }
}

const A_TO_B: [&[usize]; 2] = [&[0], &[1]];

#[test]
fn one_hub_for_another_with_two_spokes() {
    let states = complete(&Setup::hub_change(4, &A_TO_B));
    assert!(states > 500_000, "{states}");
}

#[test]
fn h5_h6_h8_a_second_edit_half_way() {
    complete(&Setup { edits: 2, ..Setup::hub_change(3, &A_TO_B) });
}

#[test]
fn h9_a_dead_spoke() {
    complete(&Setup { dead: Some(3), times: 4, ..Setup::hub_change(4, &A_TO_B) });
}

#[test]
fn h10_the_old_hub_is_dead() {
    complete(&Setup { dead: Some(0), times: 5, ..Setup::hub_change(4, &A_TO_B) });
}

#[test]
fn h2_the_new_hub_never_connects_to_a_spoke_and_the_change_proceeds() {
    complete(&Setup { blocked: Some((1, 2)), times: 5, ..Setup::hub_change(3, &A_TO_B) });
}

#[test]
fn h3_h16_hold_keeps_everything_that_works() {
    let on_timeout = OnTimeout::Hold;
    complete(&Setup { blocked: Some((1, 2)), times: 5, on_timeout, ..Setup::hub_change(3, &A_TO_B) });
    complete(&Setup { dead: Some(2), times: 5, on_timeout, ..Setup::hub_change(3, &A_TO_B) });
}

#[test]
fn a_trunk_that_never_connects_costs_time_and_no_packet() {
    let blocked_role = Some(LinkRole::Trunk);
    complete(&Setup { blocked: Some((0, 1)), blocked_role, times: 5, ..Setup::hub_change(4, &A_TO_B) });
}

#[test]
fn h4_h7_workers_restart_at_any_moment() {
    complete(&Setup { restarts: 1, ..Setup::hub_change(3, &A_TO_B) });
}

#[test]
fn h14_hub_and_standby_swap_and_a_standby_comes_and_goes() {
    complete(&Setup::hub_change(3, &[&[0, 1], &[1, 0]]));
    complete(&Setup::hub_change(4, &[&[0], &[0, 1]]));
    complete(&Setup::hub_change(3, &[&[0, 1], &[0]]));
}

#[test]
fn h18_a_spoke_joins_in_the_edit_that_moves_the_hub() {
    complete(&Setup::new(3, vec![members(0, &[0, 1]), members(1, &[0, 1, 2])]));
}

#[test]
fn h13_the_old_hub_leaves_in_the_same_edit() {
    complete(&Setup::new(4, vec![members(0, &[0, 1, 2, 3]), members(1, &[1, 2, 3])]));
}

#[test]
fn h18_a_spoke_leaves_in_the_edit_that_moves_the_hub() {
    complete(&Setup::new(3, vec![members(0, &[0, 1, 2]), members(1, &[0, 1])]));
}

#[test]
fn t7_mesh_to_hub_and_back() {
    complete(&Setup { edits: 2, ..Setup::topology(3, false) });
    complete(&Setup { edits: 2, ..Setup::topology(3, true) });
}

#[test]
fn mesh_to_hub_with_a_broken_link() {
    complete(&Setup { faults: 1, ..Setup::topology(3, false) });
}

#[test]
fn every_rule_of_a_hub_change_is_needed() {
    let small = || Setup::hub_change(3, &A_TO_B);
    let spokes = || Setup::hub_change(4, &A_TO_B);
    broken(Rule::AddingBarrier, small());
    broken(Rule::RoutesBeforeSwitching, spokes());
    broken(Rule::SwitchingBarrier, spokes());
    broken(Rule::Demoting, spokes());
    broken(Rule::DemotingBarrier, spokes());
    broken(Rule::FreshReports, Setup { edits: 2, ..small() });
    broken(Rule::EditWaits, Setup { edits: 2, ..small() });
    broken(Rule::Horizon, Setup { faults: 1, ..spokes() });
    broken(Rule::TrunkOnly, Setup { dead: Some(3), times: 1, ..spokes() });
    let (blocked, blocked_role) = (Some((0, 1)), Some(LinkRole::Trunk));
    broken(Rule::DemoteInOrder, Setup { blocked, blocked_role, times: 5, ..small() });
}

#[test]
fn every_rule_of_a_topology_change_is_needed() {
    broken(Rule::WideBeforeMesh, Setup::topology(3, false));
    broken(Rule::MeshBeforeWide, Setup::topology(3, true));
    broken(Rule::AddingBarrier, Setup::topology(3, false));
    broken(Rule::SwitchingBarrier, Setup::topology(3, true));
    broken(Rule::Demoting, Setup::topology(3, true));
    broken(Rule::DemotingBarrier, Setup::topology(3, true));
}
