//! Modes besides the loop: dry runs, uninstalling, the first key, names that are dialled. They refuse real devices.

use std::{collections::BTreeMap, time::Duration};

use spanwire::{
    cli::LogFormat,
    driver::{self, Reconciler as _, Trigger},
    key_file::KeyFile,
    keys::Keys,
    stop::Stop,
    worker::{
        Worker, dry_run,
        own_key::{LostKeys, NotYet, own_key, wait_for_key},
        uninstall::WantsNothing,
    },
};
use spanwire_dataplane::key::SecretKey;
use spanwire_engine::{LinkRole, PublicKey};

use crate::world::{World, gateway, intent, link};

/// No device has a key.
struct Nowhere;

impl LostKeys for Nowhere {
    async fn secret_of(&self, _: &PublicKey) -> Option<SecretKey> {
        None
    }
}

/// One device has this key.
struct Somewhere(SecretKey);

impl LostKeys for Somewhere {
    async fn secret_of(&self, public: &PublicKey) -> Option<SecretKey> {
        (self.0.public() == *public).then(|| self.0.clone())
    }
}

async fn connected() -> World {
    let world = World::new();
    world.intend(Some(intent(&["hub-a", "hub-b"])), 1);
    world.connect(&[link("hub-a", LinkRole::Uplink), link("hub-b", LinkRole::Uplink)]);
    world.settle().await;
    world
}

#[tokio::test]
async fn a_dry_run_names_every_step_and_writes_nothing() {
    let world = World::new();
    world.intend(Some(intent(&["hub-a"])), 1);
    let before = (world.host(), world.recorded(), world.control.0.lock().unwrap().clone());
    let preview = dry_run::preview(&mut world.worker()).await.unwrap();
    assert_eq!((world.host(), world.recorded(), world.control.0.lock().unwrap().clone()), before);
    let text = preview.render(LogFormat::Human);
    for words in ["record intent demo", "set the packet filter", "set device swu-", "nothing was written"] {
        assert!(text.contains(words), "{text}");
    }
    let _ = world.worker().pass().await;
    assert!(preview.steps.len() > 5 && !text.contains("removals; nothing") || preview.removals == 0);
}

#[tokio::test]
async fn a_dry_run_says_what_stays_and_why() {
    let world = connected().await;
    world.connect(&[link("hub-a", LinkRole::Uplink)]);
    world.intend(Some(intent(&["hub-b"])), 2);
    let preview = dry_run::preview(&mut world.worker()).await.unwrap();
    assert_eq!(preview.removals, 0, "{preview:?}");
    assert!(preview.kept[0].contains("demo.hub-a.uplink stays until demo.hub-b.uplink"), "{preview:?}");
}

#[tokio::test]
async fn d22_uninstall_takes_everything_of_ours_and_nothing_of_the_control_store() {
    let world = connected().await;
    let control = world.control.0.lock().unwrap().clone();
    let worker = world.worker();
    let ports = spanwire::worker::Ports {
        control: WantsNothing,
        local: worker.ports.local,
        devices: worker.ports.devices,
        probes: worker.ports.probes,
        resolver: worker.ports.resolver,
        clock: worker.ports.clock,
    };
    let mut uninstaller = Worker {
        me: worker.me,
        identity: worker.identity,
        settings: worker.settings,
        ports,
        events: worker.events,
        measures: worker.measures,
        said: BTreeMap::new(),
    };
    let (_ask, stop) = Stop::by_hand();
    let verdict = driver::once(&mut uninstaller, &stop).await;
    assert_eq!(verdict.exit_code(), 0, "{verdict:?}");
    let host = world.host();
    assert!(host.devices.is_empty() && host.tables.is_empty() && host.firewall.is_none(), "{host:?}");
    assert!(world.recorded().links.is_empty() && world.recorded().intents.is_empty());
    assert_eq!(*world.control.0.lock().unwrap(), control);
}

#[tokio::test]
async fn a_key_counts_from_the_published_generation_and_is_not_made_before_that_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let file = Keys::File(KeyFile::new(folder.path().join("private.key")));
    let world = World::new();
    let me = gateway("spoke-1");
    let view = world.control.0.lock().unwrap().take();
    assert!(matches!(own_key(&file, &me, &world.control, &Nowhere).await.unwrap(), Err(NotYet::Failed(_))));
    *world.control.0.lock().unwrap() = Some(spanwire_engine::port::WorkerView::default());
    assert!(matches!(own_key(&file, &me, &world.control, &Nowhere).await.unwrap(), Err(NotYet::Waiting(_))));
    assert!(file.load().await.unwrap().is_none());
    *world.control.0.lock().unwrap() = view;
    {
        let mut view = world.control.0.lock().unwrap();
        view.as_mut().unwrap().gateways.get_mut(&me).unwrap().facts.key_generation = 4;
    }
    let Ok(key) = own_key(&file, &me, &world.control, &Nowhere).await.unwrap() else { panic!("no key") };
    assert_eq!(key.generation, Some(5));
}

#[tokio::test]
async fn a_lost_key_is_restored_from_a_device_if_it_is_the_published_one() {
    let folder = tempfile::tempdir().unwrap();
    let (world, me, secret) = (World::new(), gateway("spoke-1"), SecretKey::generate().unwrap());
    for (published, generation) in [(secret.public(), 3), (PublicKey([9; 32]), 4)] {
        {
            let mut view = world.control.0.lock().unwrap();
            let own = view.as_mut().unwrap().gateways.get_mut(&me).unwrap();
            (own.facts.public_key, own.facts.key_generation) = (Some(published.to_string()), 3);
        }
        let file = Keys::File(KeyFile::new(folder.path().join(generation.to_string())));
        let device = Somewhere(secret.clone());
        let Ok(key) = own_key(&file, &me, &world.control, &device).await.unwrap() else { panic!("no key") };
        assert_eq!((key.generation, key.public == secret.public()), (Some(generation), generation == 3));
        assert_eq!(file.load().await.unwrap().unwrap().public, key.public);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_key_ends_with_the_gateway_or_with_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = Keys::File(KeyFile::new(folder.path().join("private.key")));
    let (world, me, trigger) = (World::new(), gateway("spoke-1"), Trigger::default());
    let view = world.control.0.lock().unwrap().replace(spanwire_engine::port::WorkerView::default());
    let (ask, stop) = Stop::by_hand();
    let appears = async {
        tokio::time::sleep(Duration::from_secs(40)).await;
        *world.control.0.lock().unwrap() = view;
        trigger.fire("control store");
    };
    let start = tokio::time::Instant::now();
    let (key, ()) =
        tokio::join!(wait_for_key(&file, &me, &world.control, &Nowhere, (&trigger, &stop)), appears);
    assert!(key.unwrap().is_some());
    assert_eq!(start.elapsed(), Duration::from_secs(40));
    let elsewhere = Keys::File(KeyFile::new(folder.path().join("other.key")));
    *world.control.0.lock().unwrap() = None;
    ask.send(true).unwrap();
    let none = wait_for_key(&elsewhere, &me, &world.control, &Nowhere, (&trigger, &stop)).await.unwrap();
    assert!(none.is_none());
}
