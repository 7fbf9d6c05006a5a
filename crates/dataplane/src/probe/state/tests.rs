//! The state machine against simulated links. It refuses real time.

use super::*;

const STEP: Duration = Duration::from_millis(10);

/// A link with a round-trip time and random loss each way.
struct Simulation {
    probe: LinkProbe,
    now: Duration,
    loss: f64,
    seed: u64,
    round_trip: Duration,
    alive: bool,
    on_the_way: Vec<(Duration, u64)>,
    asked: u64,
    history: Vec<(Duration, Option<Evidence>)>,
}

impl Simulation {
    fn new(loss: f64, lost: bool) -> Self {
        Self {
            probe: LinkProbe::new(
                Timing::default(),
                Duration::from_millis(30),
                Duration::from_millis(370),
                1,
                lost,
            ),
            now: Duration::ZERO,
            loss,
            seed: 0x9e37_79b9_7f4a_7c15,
            round_trip: Duration::from_millis(20),
            alive: true,
            on_the_way: Vec::new(),
            asked: 0,
            history: Vec::new(),
        }
    }

    fn arrives(&mut self) -> bool {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.alive && (self.seed % 1_000_000) as f64 >= self.loss * 1e6
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += STEP;
            let now = self.now;
            let (arrived, rest) = self.on_the_way.iter().partition(|(at, _)| *at <= now);
            self.on_the_way = rest;
            for (_, round) in Vec::<(Duration, u64)>::from_iter(arrived) {
                self.probe.answer(now, round);
            }
            while self.probe.next() <= now {
                if self.probe.poll(now).ask {
                    self.asked += 1;
                    let round = self.probe.round();
                    if self.arrives() && self.arrives() {
                        self.on_the_way.push((now + self.round_trip, round));
                    }
                }
            }
            self.probe.settle(now);
            let evidence = self.probe.evidence(now, false);
            if self.history.last().is_none_or(|(_, last)| *last != evidence) {
                self.history.push((now, evidence));
            }
        }
    }

    fn last(&self) -> Option<Evidence> {
        self.history.last().and_then(|(_, evidence)| *evidence)
    }
}

const SETTLED: Option<Evidence> = Some(Evidence::Connected { settled: true });
const UNSETTLED: Option<Evidence> = Some(Evidence::Connected { settled: false });
const DOWN: Option<Evidence> = Some(Evidence::NotConnected { one_way: false });

#[test]
fn a_new_link_is_connected_within_a_few_hundred_milliseconds() {
    let mut link = Simulation::new(0.0, false);
    link.run(Duration::from_millis(400));
    assert_eq!(link.last(), SETTLED);
}

#[test]
fn s1_a_dead_link_is_noticed_within_two_and_a_half_seconds_wherever_it_dies() {
    for moment in 0..100 {
        let mut link = Simulation::new(0.0, false);
        link.run(Duration::from_secs(5) + STEP * moment);
        let died = link.now;
        link.alive = false;
        link.run(Duration::from_secs(4));
        let (noticed, evidence) = *link.history.last().unwrap();
        assert_eq!(evidence, DOWN);
        assert!(noticed - died <= Duration::from_millis(2550), "{:?}", noticed - died);
    }
}

#[test]
fn s1_a_link_that_never_answers_is_not_connected_and_is_not_asked_in_a_hurry_for_ever() {
    let mut link = Simulation::new(0.0, false);
    link.alive = false;
    link.run(Duration::from_secs(2));
    assert_eq!(link.history, [(STEP, None), (link.history[1].0, DOWN)]);
    assert!(link.history[1].0 <= Duration::from_secs(2));
    link.run(Duration::from_secs(60));
    let asked = link.asked;
    link.run(Duration::from_secs(60));
    assert!(link.asked - asked <= 200, "{}", link.asked - asked);
}

#[test]
fn s3_five_percent_loss_for_an_hour_does_not_flap() {
    for seed in 1..=5u64 {
        let mut link = Simulation::new(0.05, false);
        link.seed = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
        link.run(Duration::from_secs(3600));
        assert_eq!(link.history.len(), 2, "{:?}", link.history);
        assert_eq!(link.last(), SETTLED);
    }
}

#[test]
fn a_link_that_came_back_takes_traffic_only_after_ten_quiet_seconds() {
    let mut link = Simulation::new(0.0, false);
    link.run(Duration::from_secs(5));
    link.alive = false;
    link.run(Duration::from_secs(10));
    link.alive = true;
    let back = link.now;
    link.run(Duration::from_secs(3));
    assert_eq!(link.last(), UNSETTLED);
    assert!(link.history.last().unwrap().0 - back <= Duration::from_millis(1600));
    link.run(Duration::from_secs(12));
    let (settled, evidence) = *link.history.last().unwrap();
    assert_eq!(evidence, SETTLED);
    assert!(settled - back >= Duration::from_millis(9500), "{:?}", settled - back);
}

#[test]
fn a_restarted_worker_does_not_trust_a_link_that_was_lost() {
    let mut link = Simulation::new(0.0, true);
    link.run(Duration::from_secs(1));
    assert_eq!(link.last(), UNSETTLED);
    link.run(Duration::from_secs(11));
    assert_eq!(link.last(), SETTLED);
}

#[test]
fn a_process_that_slept_does_not_blame_the_link() {
    let mut link = Simulation::new(0.0, false);
    link.run(Duration::from_secs(5));
    for _ in 0..10 {
        link.now += Duration::from_secs(2);
        link.run(Duration::from_millis(200));
    }
    assert_eq!(link.last(), SETTLED);
    assert_eq!(link.history.len(), 2);
}

#[test]
fn an_answer_to_an_old_question_is_no_answer() {
    let mut link = Simulation::new(0.0, false);
    link.run(Duration::from_secs(5));
    link.round_trip = Duration::from_millis(700);
    link.run(Duration::from_secs(5));
    assert_eq!(link.last(), DOWN);
}

#[test]
fn a_healthy_link_costs_one_question_a_second() {
    let mut link = Simulation::new(0.0, false);
    link.run(Duration::from_secs(10));
    let before = link.asked;
    link.run(Duration::from_secs(100));
    assert!((95..=105).contains(&(link.asked - before)), "{}", link.asked - before);
}

#[test]
fn a_peer_that_asks_and_hears_is_not_asked_back_and_missed_when_it_stops() {
    let mut link = Simulation::new(0.0, false);
    link.run(Duration::from_secs(5));
    let connected = Some(Evidence::Connected { settled: true });
    assert_eq!(link.probe.evidence(link.now, false), connected);
    let before = link.asked;
    for _ in 0..20 {
        link.probe.confirm(link.now, Some(Duration::from_secs(1)));
        link.run(Duration::from_secs(1));
    }
    assert!(link.asked <= before + 1, "{} questions more", link.asked - before);
    assert_eq!(link.probe.evidence(link.now, false), connected);
    link.alive = false;
    link.run(Duration::from_millis(1300));
    assert_eq!(link.probe.evidence(link.now, false), connected, "S3: one late question is no miss yet");
    link.run(Duration::from_millis(1200));
    assert_eq!(link.probe.evidence(link.now, false), Some(Evidence::NotConnected { one_way: false }));
}

#[test]
fn a_peer_that_asks_and_does_not_hear_is_asked_back() {
    let mut link = Simulation::new(0.0, false);
    link.run(Duration::from_secs(5));
    link.alive = false;
    for second in 1..=5 {
        link.probe.confirm(link.now, Some(Duration::from_secs(1 + second)));
        link.run(Duration::from_secs(1));
    }
    assert_eq!(link.probe.evidence(link.now, true), Some(Evidence::NotConnected { one_way: true }));
}
