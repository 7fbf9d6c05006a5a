//! What every store owes the engine's ports, written once against the ports. It refuses to look at files: another
//! store runs the same functions with a [`Place`] of its own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail here")]

mod support;

mod intents;
mod local;
mod networks;
mod worker;

macro_rules! conform {
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        mod directory {
            use crate::support::dir::DirPlace;

            $($(
                #[tokio::test]
                async fn $case() {
                    crate::$module::$case(&DirPlace::new()).await;
                }
            )+)+
        }

        #[cfg(feature = "cluster")]
        mod cluster {
            use crate::support::cluster::ClusterPlace;

            $($(
                #[tokio::test]
                async fn $case() {
                    if let Some(place) = ClusterPlace::new().await {
                        crate::$module::$case(&place).await;
                    }
                }
            )+)+
        }
    };
}

conform! {
    networks:
        empty_store_is_empty,
        declared_objects_get_an_identity_once,
        edits_count_and_labels_do_not,
        status_round_trips_and_repeats_are_not_written,
        stale_status_is_a_conflict,
        recreated_network_is_another_one,
        gateway_networks_are_published,
        many_writers_lose_no_update;
    intents:
        intent_round_trips_in_every_form,
        intents_are_written_against_what_was_read,
        intents_are_deleted_against_their_uid,
        recreated_intent_has_no_status,
        intents_of_others_are_left_alone;
    worker:
        worker_sees_its_own_intents_alone,
        facts_are_seen_by_everybody,
        facts_of_an_unknown_gateway_are_refused,
        status_round_trips_and_is_joined,
        status_of_another_object_is_a_conflict,
        bare_intent_of_another_controller_is_read,
        deleted_intent_disappears,
        watches_wake;
    local:
        records_round_trip,
        repeated_steps_write_nothing,
        forgotten_records_are_gone,
        link_status_moves_alone;
}
