//! The count of a run, as a whole or between two moments. It refuses to round anything away: what was sent and did not
//! come is lost.

use std::{collections::HashSet, time::Duration};

use super::{receiver::Arrival, sender::Sent};

/// All pairs of a run.
#[derive(Debug)]
pub struct Report {
    /// One entry a pair, in the order given.
    pub pairs: Vec<PairReport>,
    /// The longest time that the machine kept the sender from sending: a measure of overload.
    pub held_up: Duration,
}

/// One pair of a run.
#[derive(Debug)]
pub struct PairReport {
    /// `from>to`.
    pub label: String,
    /// How many the sender's own kernel refused; they count as sent.
    pub refused: u64,
    sent: Vec<u64>,
    arrivals: Vec<Arrival>,
}

/// Figures of one pair, or of several together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Datagrams sent.
    pub sent: u64,
    /// Of those, how many came at least once.
    pub received: u64,
    /// Of those, how many never came.
    pub lost: u64,
    /// How many came again.
    pub duplicated: u64,
    /// How many came after one with a higher number.
    pub reordered: u64,
    /// The longest time without an arrival.
    pub longest_gap: Duration,
}

impl Stats {
    /// Both together: sums, and the longer gap.
    pub fn and(self, other: Stats) -> Stats {
        Stats {
            sent: self.sent + other.sent,
            received: self.received + other.received,
            lost: self.lost + other.lost,
            duplicated: self.duplicated + other.duplicated,
            reordered: self.reordered + other.reordered,
            longest_gap: self.longest_gap.max(other.longest_gap),
        }
    }
}

impl Report {
    pub(crate) fn new(labels: Vec<String>, sent: Sent, arrivals: Vec<Vec<Arrival>>) -> Self {
        let held_up = sent.held_up;
        let pairs = labels
            .into_iter()
            .zip(sent.times)
            .zip(sent.refused)
            .zip(arrivals)
            .map(|(((label, sent), refused), arrivals)| PairReport { label, refused, sent, arrivals })
            .collect();
        Self { pairs, held_up }
    }

    /// Everything of all pairs.
    pub fn total(&self) -> Stats {
        self.pairs.iter().map(PairReport::total).fold(Stats::default(), Stats::and)
    }

    /// Of all pairs, what was sent between two moments of the run.
    pub fn window(&self, from: Duration, to: Duration) -> Stats {
        self.pairs.iter().map(|pair| pair.window(from, to)).fold(Stats::default(), Stats::and)
    }
}

impl PairReport {
    /// Everything of this pair.
    pub fn total(&self) -> Stats {
        self.window(Duration::ZERO, Duration::MAX)
    }

    /// What was sent from `from` until before `to`.
    pub fn window(&self, from: Duration, to: Duration) -> Stats {
        let nanos = |moment: Duration| u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX);
        let first = self.sent.partition_point(|sent| *sent < nanos(from));
        let end = self.sent.partition_point(|sent| *sent < nanos(to)).max(first);
        let sent = &self.sent[first..end];
        let numbers = first as u64..end as u64;
        let mut seen = HashSet::with_capacity(sent.len());
        let mut stats = Stats { sent: sent.len() as u64, ..Stats::default() };
        let (mut highest, mut last) = (None, sent.first().copied().unwrap_or(0));
        let mut longest = 0;
        for arrival in self.arrivals.iter().filter(|arrival| numbers.contains(&arrival.number)) {
            if !seen.insert(arrival.number) {
                stats.duplicated += 1;
                continue;
            }
            if highest.is_some_and(|highest| arrival.number < highest) {
                stats.reordered += 1;
            }
            highest = highest.max(Some(arrival.number));
            longest = longest.max(arrival.at.saturating_sub(last));
            last = last.max(arrival.at);
        }
        longest = longest.max(sent.last().map_or(0, |sent| sent.saturating_sub(last)));
        stats.received = seen.len() as u64;
        stats.lost = stats.sent - stats.received;
        stats.longest_gap = Duration::from_nanos(longest);
        stats
    }

    /// The moments between which datagrams that were sent never came, each as first and last sending time.
    pub fn outages(&self) -> Vec<(Duration, Duration)> {
        let came: HashSet<u64> = self.arrivals.iter().map(|arrival| arrival.number).collect();
        let mut outages: Vec<(Duration, Duration)> = Vec::new();
        let mut open = false;
        for (number, sent) in (0..).zip(&self.sent) {
            let missing = !came.contains(&number);
            let moment = Duration::from_nanos(*sent);
            match outages.last_mut() {
                Some(outage) if missing && open => outage.1 = moment,
                Some(_) | None if missing => outages.push((moment, moment)),
                Some(_) | None => {}
            }
            open = missing;
        }
        outages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn report(arrivals: &[(u64, u64)]) -> PairReport {
        let arrivals = arrivals.iter().map(|(number, at)| Arrival { number: *number, at: at * MS }).collect();
        PairReport { label: "a>b".into(), refused: 0, sent: (0..10).map(|i| i * MS).collect(), arrivals }
    }

    #[test]
    fn counts_lost_duplicated_and_reordered() {
        let pair = report(&[(0, 1), (2, 3), (1, 4), (1, 5), (9, 10)]);
        let stats = pair.total();
        assert_eq!((stats.sent, stats.received, stats.lost), (10, 4, 6));
        assert_eq!((stats.duplicated, stats.reordered), (1, 1));
        assert_eq!(stats.longest_gap, Duration::from_millis(6));
        assert_eq!(pair.outages(), [(Duration::from_millis(3), Duration::from_millis(8))]);
    }

    #[test]
    fn a_window_counts_what_was_sent_in_it() {
        let pair = report(&[(0, 1), (1, 2), (2, 30)]);
        let stats = pair.window(Duration::from_millis(1), Duration::from_millis(3));
        assert_eq!((stats.sent, stats.lost, stats.longest_gap), (2, 0, Duration::from_millis(28)));
        assert_eq!(pair.window(Duration::from_secs(1), Duration::MAX), Stats::default());
    }

    #[test]
    fn silence_is_a_gap() {
        assert_eq!(report(&[]).total().longest_gap, Duration::from_millis(9));
    }
}
