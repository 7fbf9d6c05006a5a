//! One test a script: the script's output is what stands in its file. It refuses a script without a test; `UPDATE=1`
//! rewrites the files.

use std::path::PathBuf;

use crate::script;

fn folder() -> PathBuf {
    spanwire_testkit::folder::workspace().join("crates/engine/tests/cases")
}

fn golden(name: &str) {
    let path = folder().join(format!("{name}.txt"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
    let now = script::run(&text);
    if now == text {
        return;
    }
    if std::env::var_os("UPDATE").is_some() {
        return std::fs::write(&path, now).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
    }
    let (mut expected, mut seen) = (text.lines(), now.lines());
    let line = (1..).find(|_| expected.next() != seen.next()).unwrap_or_default();
    panic!("{}:{line} is not what is seen now (UPDATE=1 rewrites it):\n{now}", path.display());
}

macro_rules! scripts {
    ($($name:ident),* $(,)?) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { golden(stringify!($name)); })*
    };
}

scripts! {
    a1_an_address_is_free_when_the_leaver_is_gone,
    a2_members_keep_their_addresses,
    a3_no_free_address,
    a4_the_same_address_again,
    a5_both_families,
    a6_overlapping_subnets,
    a7_cidr_and_subnet_overlap,
    a8_host_bits,
    failover_and_the_way_back,
    h10_the_old_hub_is_dead,
    h11_a_hub_that_is_no_member,
    h12_the_old_hubs_own_subnets_isolated,
    h12_the_old_hubs_own_subnets_routed,
    h13_the_old_hub_leaves_in_the_same_edit,
    h14_a_standby_is_kept,
    h14_a_standby_is_removed,
    h14_hub_and_standby_are_swapped,
    h15_a_third_hub_half_way,
    h16_hold_with_a_dead_member,
    h16_hold_with_a_laggard,
    h17_a_flap_in_the_moment_of_the_change,
    h18_members_join_and_leave_in_every_phase,
    h1_the_new_link_first,
    h2_proceed_after_the_time_out,
    h3_hold_keeps_the_old_link,
    h5_a_third_hub_before_the_second_is_up,
    h6_back_half_way,
    h7_each_phase_is_published_once,
    h8_the_hub_is_edited_during_switching,
    h9_one_of_ten_spokes_is_dead,
    n6_one_bad_key_and_nine_good_ones,
    p1_absent_is_full_mesh,
    p2_empty_without_topology_is_full_mesh,
    p3_empty_with_topology_tears_all_down,
    p4_the_list_and_nobody_else,
    p5_another_order_writes_no_link,
    p6_bad_entries_are_named_and_hold_nothing_up,
    p7_null_is_absent,
    p8_the_list_alone_decides_which_peers,
    p9_peers_and_nothing_else,
    s5_an_unrelated_edit,
    s6_a_removed_peer,
    s8_the_first_failing_peer,
    t2_the_hub_moves,
    t3_two_hubs,
    t5_nothing_to_connect,
    t6_hub_here_and_spoke_there,
    t7_mesh_to_hub_and_back,
    t8_a_standby_is_added,
    v11_a_deleted_network,
    v15_one_broken_network,
    v1_v5_verdicts,
    v9_v10_the_hub_comes_and_goes,
    w11_the_own_gateway_is_gone,
    w15_any_order_and_no_keys_yet,
    w16_a_worker_with_a_new_key,
    w6_the_intent_is_deleted,
}

#[test]
fn every_script_is_run() {
    let entries = std::fs::read_dir(folder()).unwrap_or_else(|fault| panic!("{fault}"));
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            entry.ok()?.file_name().into_string().ok()?.strip_suffix(".txt").map(str::to_owned)
        })
        .collect();
    names.sort();
    let mut known: Vec<&str> = NAMES.to_vec();
    known.sort_unstable();
    assert_eq!(names, known);
}
