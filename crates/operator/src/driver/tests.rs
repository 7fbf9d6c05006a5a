//! The loop under paused time: no event is lost, passes never overlap, retries and resyncs come when they must. It
//! refuses real clocks.

use std::{collections::VecDeque, sync::Arc};

use spanwire_engine::Class;
use tokio::sync::{Mutex, Notify};

use super::*;
use crate::{cli::LogFormat, fault::Noted, ledger::Target};
use spanwire_engine::port::Written;

/// Counts passes and plays outcomes back; a pass lasts `length`.
#[derive(Default)]
struct Twin {
    outcomes: VecDeque<Outcome>,
    length: Duration,
    passes: Arc<Mutex<Vec<Instant>>>,
    began: Arc<Notify>,
}

impl Reconciler for Twin {
    async fn pass(&mut self) -> Outcome {
        self.passes.lock().await.push(Instant::now());
        self.began.notify_one();
        sleep(self.length).await;
        self.outcomes.pop_front().unwrap_or_default()
    }
}

fn fault() -> Outcome {
    Outcome::failed(Noted { class: Class::Retry, message: "no".into(), late: false })
}

fn due(seconds: u64) -> Outcome {
    Outcome { due: Some(Duration::from_secs(seconds)), ..Outcome::waiting("a link to go".into()) }
}

fn wrote() -> Outcome {
    let mut outcome = Outcome::default();
    outcome.ledger.note(Target::Device, Written::Changed, || "a thing".into());
    outcome
}

/// Runs the loop for `time`; what else happens meanwhile is `script`.
async fn during(
    twin: Twin,
    time: Duration,
    trigger: &Trigger,
    script: impl Future<Output = ()>,
) -> Vec<Duration> {
    let (passes, start) = (twin.passes.clone(), Instant::now());
    let (ask, stop) = Stop::by_hand();
    let mut twin = twin;
    let cadence = Cadence { resync: Duration::from_secs(300) };
    tokio::join!(run(&mut twin, trigger, cadence, &stop), async {
        script.await;
        sleep_until(start + time).await;
        ask.send(true).unwrap();
    });
    let passes = passes.lock().await;
    passes.iter().map(|at| *at - start).collect()
}

#[tokio::test(start_paused = true)]
async fn v12_a_change_during_a_pass_is_never_dropped() {
    let twin = Twin { length: Duration::from_secs(7), ..Twin::default() };
    let (trigger, began) = (Trigger::default(), twin.began.clone());
    let passes = during(twin, Duration::from_secs(60), &trigger, async {
        began.notified().await;
        trigger.fire("store");
        trigger.fire("store");
    })
    .await;
    assert_eq!(passes.len(), 2, "{passes:?}");
    assert_eq!(passes[1], Duration::from_secs(7) + SETTLE);
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_answered_by_one_pass() {
    let trigger = Trigger::default();
    let passes = during(Twin::default(), Duration::from_secs(10), &trigger, async {
        sleep(Duration::from_secs(1)).await;
        for _ in 0..100 {
            trigger.fire("store");
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(passes, [Duration::ZERO, Duration::from_secs(1) + SETTLE]);
}

#[tokio::test(start_paused = true)]
async fn a_healthy_status_never_holds_back_a_resync() {
    let passes = during(Twin::default(), Duration::from_secs(1000), &Trigger::default(), async {}).await;
    assert_eq!(passes, [0, 300, 600, 900].map(Duration::from_secs));
}

#[tokio::test(start_paused = true)]
async fn v6_faults_are_retried_with_no_new_event_until_they_are_gone() {
    let twin = Twin { outcomes: (0..20).map(|_| fault()).collect(), ..Twin::default() };
    let passes = during(twin, Duration::from_secs(1200), &Trigger::default(), async {}).await;
    let gaps: Vec<Duration> = passes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps[..20].iter().all(|gap| (retry::SHORTEST..=retry::LONGEST).contains(gap)), "{gaps:?}");
    assert!(gaps[20..].iter().all(|gap| *gap == Duration::from_secs(300)), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn v9_an_event_is_answered_at_once_also_while_a_retry_is_pending() {
    let twin = Twin { outcomes: [fault()].into(), ..Twin::default() };
    let trigger = Trigger::default();
    let passes = during(twin, Duration::from_secs(100), &trigger, async {
        sleep(Duration::from_millis(100)).await;
        trigger.fire("store");
    })
    .await;
    assert_eq!(passes, [Duration::ZERO, Duration::from_millis(100) + SETTLE]);
}

#[tokio::test(start_paused = true)]
async fn a_due_time_starts_a_pass() {
    let due = Outcome { due: Some(Duration::from_secs(1)), ..Outcome::default() };
    let twin = Twin { outcomes: [due.clone(), due].into(), ..Twin::default() };
    let passes = during(twin, Duration::from_secs(100), &Trigger::default(), async {}).await;
    assert_eq!(passes, [0, 1, 2].map(Duration::from_secs));
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_hangs_ends_within_the_grace() {
    let twin = Twin { length: Duration::from_secs(3600), ..Twin::default() };
    let start = Instant::now();
    during(twin, Duration::from_secs(1), &Trigger::default(), async {}).await;
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn once_repeats_only_as_needed() {
    let cases = [
        (vec![Outcome::default()], 1, 0),
        (vec![wrote(), Outcome::default()], 2, 0),
        (vec![wrote(), Outcome::waiting("b".into())], 2, 75),
        (vec![Outcome::waiting("b".into())], 1, 75),
        (vec![due(1), Outcome::default()], 2, 0),
        (vec![due(60)], 1, 75),
        (vec![fault(), Outcome::default()], 2, 0),
        (vec![fault(), fault()], 2, 1),
    ];
    for (outcomes, passes, code) in cases {
        let mut twin = Twin { outcomes: outcomes.clone().into(), ..Twin::default() };
        let (_ask, stop) = Stop::by_hand();
        let verdict = once(&mut twin, &stop).await;
        assert_eq!((verdict.passes, verdict.exit_code()), (passes, code), "{outcomes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_verdict_names_writes_and_waits() {
    let mut twin = Twin { outcomes: [wrote(), Outcome::waiting("hub-b".into())].into(), ..Twin::default() };
    let (_ask, stop) = Stop::by_hand();
    let verdict = once(&mut twin, &stop).await;
    assert_eq!(
        verdict.render(LogFormat::Human),
        "wrote device: a thing\nwaits for hub-b\nwaiting; 1 writes in 2 passes"
    );
    let json: serde_json::Value = serde_json::from_str(&verdict.render(LogFormat::Json)).unwrap();
    assert_eq!(json["writes"][0]["target"], "device");
    assert_eq!(json["waitsFor"][0], "hub-b");
    assert_eq!(json["result"], "waiting");
}
