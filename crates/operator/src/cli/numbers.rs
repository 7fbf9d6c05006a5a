//! Numbers that a worker uses on its host, for hosts where the usual ones are taken: ports, tables, priorities, and the
//! rhythm of probes. It refuses ranges and rhythms that can't work.

use std::{ops::RangeInclusive, str::FromStr, time::Duration};

use clap::Args;
use spanwire_dataplane::{Options, probe::Timing};
use spanwire_engine::worker::Settings;

/// Numbers of a worker. What is in use already keeps its number when a range moves.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Numbers on this host")]
pub struct Numbers {
    /// UDP ports of devices
    #[arg(long, default_value = "51820-52819", value_parser = range::<u16>, env = "SPANWIRE_PORTS", value_name = "FIRST-LAST")]
    pub ports: RangeInclusive<u16>,
    /// Routing tables, one a network
    #[arg(long, default_value = "7400-8399", value_parser = range::<u32>, env = "SPANWIRE_TABLES", value_name = "FIRST-LAST")]
    pub tables: RangeInclusive<u32>,
    /// Routing table for probes over IPv6; outside of --tables
    #[arg(long, default_value_t = 5179, env = "SPANWIRE_PROBE_TABLE", value_name = "TABLE")]
    pub probe_table: u32,
    /// Priority of the rules for what arrives on our devices; those for the host's own traffic begin 1000 behind it
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..30_000), env = "SPANWIRE_RULE_PRIORITY", value_name = "PRIORITY")]
    pub rule_priority: u32,
    /// Milliseconds from one probe of a link to the next
    #[arg(long, default_value = "1000", value_parser = milliseconds::<500>, env = "SPANWIRE_PROBE_INTERVAL", value_name = "MS")]
    pub probe_interval: Duration,
    /// Missed probes in a row after which a link is down
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100), env = "SPANWIRE_PROBE_DOWN", value_name = "COUNT")]
    pub probe_down: u32,
    /// Answered probes in a row after which a link is up
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100), env = "SPANWIRE_PROBE_UP", value_name = "COUNT")]
    pub probe_up: u32,
    /// Milliseconds without a missed probe before a lost link to a preferred hub takes its traffic back
    #[arg(long, default_value = "10000", value_parser = milliseconds::<0>, env = "SPANWIRE_PROBE_SETTLE", value_name = "MS")]
    pub probe_settle: Duration,
}

impl Numbers {
    /// What plans give out.
    pub fn settings(&self) -> Settings {
        Settings { ports: self.ports.clone(), tables: self.tables.clone(), ..Settings::default() }
    }

    /// How links are probed.
    pub fn timing(&self) -> Timing {
        Timing {
            interval: self.probe_interval,
            down_after: self.probe_down,
            up_after: self.probe_up,
            settle: self.probe_settle,
            ..Timing::default()
        }
    }

    /// `options` with these numbers.
    pub fn options(&self, options: Options) -> Options {
        Options { rule_base: self.rule_priority, probe_table: self.probe_table, ..options }
    }
}

fn range<N: FromStr + PartialOrd + Default>(text: &str) -> Result<RangeInclusive<N>, String> {
    let ends = text.split_once('-').and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    match ends {
        Some((first, last)) if N::default() < first && first <= last => Ok(first..=last),
        Some(_) => Err("begin above 0 and end at or behind the beginning, such as 51820-52819".to_owned()),
        None => Err("write the first and the last number, such as 51820-52819".to_owned()),
    }
}

fn milliseconds<const LEAST: u64>(text: &str) -> Result<Duration, String> {
    match text.parse::<u32>().map(u64::from) {
        Ok(number) if number >= LEAST => Ok(Duration::from_millis(number)),
        Ok(_) => Err(format!("use at least {LEAST} milliseconds")),
        Err(_) => Err("use whole milliseconds, such as 1000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        numbers: Numbers,
    }

    fn parse(flags: &[&str]) -> Result<Numbers, String> {
        let line = std::iter::once("worker").chain(flags.iter().copied());
        Only::try_parse_from(line).map(|only| only.numbers).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_are_those_of_the_crates() {
        let numbers = parse(&[]).unwrap();
        assert_eq!(numbers.settings(), Settings::default());
        assert_eq!(numbers.timing(), Timing::default());
    }

    #[test]
    fn ranges_and_rhythms_are_taken_over() {
        let flags =
            ["--ports", "60000-60010", "--tables", "200-200", "--probe-interval", "500", "--probe-down", "5"];
        let numbers = parse(&flags).unwrap();
        assert_eq!((numbers.settings().ports, numbers.settings().tables), (60_000..=60_010, 200..=200));
        assert_eq!((numbers.timing().interval, numbers.timing().down_after), (Duration::from_millis(500), 5));
    }

    #[test]
    fn what_can_not_work_is_refused_with_an_example() {
        for (flags, words) in [
            (["--ports", "51820"], "such as 51820-52819"),
            (["--ports", "2000-1000"], "at or behind the beginning"),
            (["--ports", "0-1000"], "above 0"),
            (["--ports", "60000-70000"], "such as 51820-52819"),
            (["--probe-interval", "1"], "at least 500 milliseconds"),
            (["--probe-settle", "soon"], "such as 1000"),
            (["--probe-down", "0"], "1..=100"),
            (["--rule-priority", "32766"], "1..30000"),
        ] {
            let error = parse(&flags).unwrap_err();
            assert!(error.contains(words), "{flags:?}: {error}");
        }
    }
}
