//! One thread that sends at a steady pace. It refuses to catch up with bursts: where the machine held it up, it goes on
//! from there, and says how long that was.

use std::{
    net::{SocketAddr, UdpSocket},
    sync::atomic::Ordering,
    time::Duration,
};

use nix::{
    sys::time::TimeSpec,
    time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep},
};

use super::{Rate, Shared, wire::Numbered};

/// What was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Per pair and number: when, in nanoseconds of the run.
    pub(crate) times: Vec<Vec<u64>>,
    /// Per pair: how many the kernel of the sender refused (they count as sent).
    pub(crate) refused: Vec<u64>,
    /// The longest time that the machine kept the sender from sending.
    pub(crate) held_up: Duration,
}

const LARGEST_DELAY_TO_CATCH_UP: i64 = 5_000_000;

pub(crate) fn run(shared: &Shared, pairs: &[(UdpSocket, SocketAddr)], rate: Rate, run: u32) -> Sent {
    super::prefer_this_thread();
    let mut sent =
        Sent { times: vec![Vec::new(); pairs.len()], refused: vec![0; pairs.len()], held_up: Duration::ZERO };
    let mut buffer = vec![0; rate.payload.max(Rate::SMALLEST)];
    let period = 1_000_000_000 / i64::from(rate.per_second.max(1));
    let mut due = clock() + period;
    let mut number = 0;
    while !shared.stop_sending.load(Ordering::Relaxed) {
        wait_until(due);
        for (at, (socket, target)) in pairs.iter().enumerate() {
            let now = shared.now();
            let pair = u32::try_from(at).unwrap_or(u32::MAX);
            Numbered { run, pair, number, sent: now }.write(&mut buffer);
            sent.times[at].push(now);
            if socket.send_to(&buffer, target).is_err() {
                sent.refused[at] += 1;
            }
        }
        shared.sent.fetch_add(pairs.len() as u64, Ordering::Relaxed);
        number += 1;
        due += period;
        let late = clock() - due;
        if late > LARGEST_DELAY_TO_CATCH_UP {
            let late_by = Duration::from_nanos(u64::try_from(late).unwrap_or(0));
            sent.held_up = sent.held_up.max(late_by);
            due += late;
        }
    }
    sent
}

fn clock() -> i64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| time.tv_sec() * 1_000_000_000 + time.tv_nsec())
}

fn wait_until(moment: i64) {
    let moment = TimeSpec::new(moment / 1_000_000_000, moment % 1_000_000_000);
    // Only a signal ends it early, and the next turn is paced again.
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &moment);
}
