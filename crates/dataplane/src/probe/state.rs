//! What one link's probes say, as a state machine: rounds, misses, hysteresis. It refuses to read a clock: time is an
//! argument.

use std::time::Duration;

use spanwire_engine::worker::Evidence;

/// How often a link is probed and what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From the start of one answered round to the start of the next.
    pub interval: Duration,
    /// From the start of one round to the start of the next while the link was never answered.
    pub first_interval: Duration,
    /// A question that is not answered is asked again after this, and once more after twice this.
    pub resend: Duration,
    /// A round without an answer is missed after this, and the next one starts at once.
    pub window: Duration,
    /// Missed rounds in a row after which the link is down.
    pub down_after: u32,
    /// Answered rounds in a row after which it is up.
    pub up_after: u32,
    /// How long a link that was lost has to be without a miss before it is settled.
    pub settle: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            first_interval: Duration::from_millis(200),
            resend: Duration::from_millis(150),
            window: Duration::from_millis(500),
            down_after: 3,
            up_after: 2,
            settle: Duration::from_secs(10),
        }
    }
}

impl Timing {
    /// With another interval between rounds; the rest stays.
    pub fn every(interval: Duration) -> Self {
        Self { interval: interval.max(Duration::from_millis(500)), ..Self::default() }
    }
}

/// Times that a question is asked in one round.
const ASKED: u32 = 3;
/// A link that was never answered is asked this often in a hurry, then at the common interval.
const HURRIED_ROUNDS: u32 = 300;
/// A round whose end was noticed this late counts for nothing: the process slept, not the link.
const LATE: Duration = Duration::from_millis(250);

/// How late it may be known here that a question arrived, and how late a peer may ask.
const HEARD_LATE: Duration = Duration::from_millis(200);

/// What to do at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// Send the question of this round.
    pub(crate) ask: bool,
    /// A round was missed just now.
    pub(crate) missed: bool,
}

/// The probes of one link.
#[derive(Debug, Clone)]
pub(crate) struct LinkProbe {
    timing: Timing,
    /// Where in each interval this link's rounds start, so that many links do not ask at once.
    phase: Duration,
    /// Number of the round that is open or was last.
    round: u64,
    /// Start of that round.
    started: Duration,
    /// Questions sent in it.
    asked: u32,
    answered: bool,
    misses: u32,
    answers: u32,
    rounds: u32,
    ever_answered: bool,
    /// `None`: not judged yet.
    up: Option<bool>,
    /// Connected once, and lost since.
    lost: bool,
    /// The last round counted for nothing.
    forgiven: bool,
    last_miss: Option<Duration>,
    last_answer: Option<Duration>,
    /// When the peer last said that it had heard us.
    confirmed: Option<Duration>,
}

impl LinkProbe {
    /// The first round starts at `start`; `round` is its number, which no other round of the peer may have had. `lost`:
    /// the link worked once, and did not when it was last judged.
    pub(crate) fn new(timing: Timing, start: Duration, phase: Duration, round: u64, lost: bool) -> Self {
        Self {
            timing,
            phase,
            round,
            started: start,
            asked: 0,
            answered: false,
            misses: 0,
            answers: 0,
            rounds: 0,
            ever_answered: false,
            up: None,
            lost,
            forgiven: false,
            last_miss: lost.then_some(start),
            last_answer: None,
            confirmed: None,
        }
    }

    pub(crate) fn round(&self) -> u64 {
        self.round
    }

    /// Whether the peer ever answered.
    pub(crate) fn is_answered(&self) -> bool {
        self.ever_answered
    }

    pub(crate) fn last_answer(&self) -> Option<Duration> {
        self.last_answer
    }

    /// Consecutive rounds without an answer.
    pub(crate) fn misses(&self) -> u32 {
        self.misses
    }

    /// When [`LinkProbe::poll`] has something to do.
    pub(crate) fn next(&self) -> Duration {
        if self.answered {
            return self.confirmed_at().map_or_else(|| self.next_start(), |at| at + self.overdue());
        }
        let end = self.started + self.window();
        if self.asked < self.questions() {
            end.min(self.started + self.timing.resend * self.asked)
        } else {
            end
        }
    }

    /// The first moment of this link's phase after the start of the round.
    fn next_start(&self) -> Duration {
        let interval = self.timing.interval.as_millis().max(1);
        let since = self.started.as_millis() + interval - self.phase.as_millis() % interval;
        let ahead = interval - since % interval;
        self.started + Duration::from_millis(u64::try_from(ahead).unwrap_or(u64::MAX))
    }

    fn hurried(&self) -> bool {
        !self.ever_answered && self.rounds < HURRIED_ROUNDS
    }

    /// In a hurry one question a round, and rounds follow each other.
    fn questions(&self) -> u32 {
        if self.hurried() { 1 } else { ASKED }
    }

    fn window(&self) -> Duration {
        if self.hurried() { self.timing.first_interval } else { self.timing.window }
    }

    /// Does what is due at `now`.
    pub(crate) fn poll(&mut self, now: Duration) -> Due {
        let mut due = Due { ask: false, missed: false };
        if now < self.next() {
            return due;
        }
        // The peer asked and does not any more: that is a round without an answer.
        if self.confirmed_at().is_some() {
            self.confirmed = None;
            self.miss(now);
            due.missed = true;
        }
        if self.answered {
            self.open(now);
        } else if now >= self.started + self.window() {
            // Once only: a process that is always late would never notice anything.
            let slept = !self.forgiven && now > self.started + self.window() + LATE;
            self.forgiven = slept;
            if !slept {
                self.miss(now);
                due.missed = true;
            }
            // A link that is down is asked at the common interval: there is nothing to lose by waiting.
            let pause = self.up == Some(false)
                && !self.hurried()
                && !slept
                && self.timing.interval > self.timing.window;
            self.open(if pause { now + self.timing.interval - self.timing.window } else { now });
        }
        if now >= self.next() {
            self.asked += 1;
            due.ask = true;
        }
        due
    }

    fn open(&mut self, at: Duration) {
        self.round = self.round.wrapping_add(1);
        self.rounds = self.rounds.saturating_add(1);
        self.started = at;
        self.asked = 0;
        self.answered = false;
    }

    fn miss(&mut self, now: Duration) {
        self.answers = 0;
        self.misses = self.misses.saturating_add(1);
        self.last_miss = Some(now);
        // Short rounds of a link that was never answered count by their length.
        let enough = if self.hurried() {
            self.timing.first_interval * self.misses >= self.timing.window * self.timing.down_after
        } else {
            self.misses >= self.timing.down_after
        };
        if enough {
            self.lost |= self.up == Some(true);
            self.up = Some(false);
        }
    }

    /// An answer to the question of `round` arrived.
    pub(crate) fn answer(&mut self, now: Duration, round: u64) {
        // An answer that is late by a round or two still shows that the link works, but not in this round's time.
        let behind = self.round.wrapping_sub(round);
        let late = if self.ever_answered { 0 } else { 10 };
        if behind > late || self.answered || self.asked == 0 && behind == 0 {
            return;
        }
        let first_since_down = self.up != Some(true);
        self.ever_answered = true;
        self.answered = true;
        self.forgiven = false;
        self.misses = 0;
        self.answers = self.answers.saturating_add(1);
        self.last_answer = Some(now);
        if self.answers >= self.timing.up_after {
            self.up = Some(true);
        } else if first_since_down {
            // The next question is asked at once, so that a link that came back is known soon.
            self.open(now);
        }
    }

    /// A question of the peer arrived at `at` and said that it had heard an answer of ours so long before: a round trip
    /// that nobody has to ask for.
    pub(crate) fn confirm(&mut self, at: Duration, answered: Option<Duration>) {
        let fresh = answered.is_some_and(|before| before < self.timing.interval * 3 / 2);
        if fresh && self.confirmed.is_none_or(|last| last < at) {
            self.confirmed = Some(at);
        }
    }

    /// When the peer's last question came that says all there is to know, so that the peer need not be asked.
    fn confirmed_at(&self) -> Option<Duration> {
        self.confirmed.filter(|_| self.up == Some(true) && self.answered)
    }

    /// How long after one question of the peer the next one is missing: its interval, one question lost, and the time
    /// until it is known here.
    fn overdue(&self) -> Duration {
        self.timing.interval + self.timing.resend + HEARD_LATE
    }

    /// What is known; `None`: nothing yet. `one_way`: the peer's own questions arrive.
    pub(crate) fn evidence(&self, now: Duration, one_way: bool) -> Option<Evidence> {
        Some(match self.up? {
            true => Evidence::Connected { settled: !self.lost || self.is_calm(now) },
            false => Evidence::NotConnected { one_way },
        })
    }

    fn is_calm(&self, now: Duration) -> bool {
        self.last_miss.is_none_or(|miss| now.saturating_sub(miss) >= self.timing.settle)
    }

    /// When evidence changes by time alone.
    pub(crate) fn settles_at(&self) -> Option<Duration> {
        let waiting = self.lost && self.up == Some(true);
        self.last_miss.filter(|_| waiting).map(|miss| miss + self.timing.settle)
    }

    /// Settled: as if never lost.
    pub(crate) fn settle(&mut self, now: Duration) {
        if self.up == Some(true) && self.is_calm(now) {
            self.lost = false;
        }
    }
}

#[cfg(test)]
mod tests;
