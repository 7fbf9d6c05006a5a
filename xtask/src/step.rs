//! Runs steps one after another, each with its time, and sums up. It refuses to stop at the first failure: one run
//! shows all of them.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read},
    process::{Command, ExitCode, Stdio},
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It holds.
    Passed,
    /// It does not.
    Failed,
    /// It was not looked at, and why.
    Skipped(String),
}

struct Done {
    name: String,
    outcome: Outcome,
    time: Duration,
    tests: Tests,
}

/// Tests counted in the output of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tests {
    passed: u64,
    failed: u64,
    skipped: u64,
}

/// The steps of one run.
pub(crate) struct Steps {
    total: usize,
    verbose: bool,
    done: Vec<Done>,
}

const HEARTBEAT: Duration = Duration::from_secs(20);
const KEPT_LINES: usize = 4000;

impl Steps {
    /// A run of `total` steps; `verbose` shows all output as it comes.
    pub(crate) fn new(total: usize, verbose: bool) -> Self {
        Self { total, verbose, done: Vec::new() }
    }

    /// Runs a command; its output is shown where it fails.
    pub(crate) fn command(&mut self, name: &str, command: &mut Command) {
        self.passes(name, command);
    }

    /// Runs a command that later steps need.
    pub(crate) fn must(&mut self, name: &str, command: &mut Command) -> anyhow::Result<()> {
        if self.passes(name, command) { Ok(()) } else { Err(anyhow::anyhow!("{name} failed")) }
    }

    fn passes(&mut self, name: &str, command: &mut Command) -> bool {
        self.announce(name);
        let begun = Instant::now();
        let (outcome, output) = run(command, self.verbose);
        if outcome == Outcome::Failed && !self.verbose {
            output.iter().for_each(|line| eprintln!("    {line}"));
        }
        let passed = outcome == Outcome::Passed;
        self.finish(name, outcome, begun, count_tests(&output));
        passed
    }

    /// Runs work of our own whose result later steps need.
    pub(crate) fn work<T>(
        &mut self,
        name: &str,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.announce(name);
        let begun = Instant::now();
        let result = work();
        let outcome = if result.is_ok() { Outcome::Passed } else { Outcome::Failed };
        self.finish(name, outcome, begun, Tests::default());
        result
    }

    /// Runs work of our own: its findings are the failures.
    pub(crate) fn check(&mut self, name: &str, work: impl FnOnce() -> anyhow::Result<Vec<String>>) {
        self.announce(name);
        let begun = Instant::now();
        let findings = work().unwrap_or_else(|error| vec![format!("{error:#}")]);
        findings.iter().for_each(|finding| eprintln!("    {finding}"));
        let outcome = if findings.is_empty() { Outcome::Passed } else { Outcome::Failed };
        self.finish(name, outcome, begun, Tests::default());
    }

    /// Notes that something was not looked at.
    pub(crate) fn skip(&mut self, name: &str, why: String) {
        self.announce(name);
        self.finish(name, Outcome::Skipped(why), Instant::now(), Tests::default());
    }

    fn announce(&self, name: &str) {
        eprintln!("[{}/{}] {name}", self.done.len() + 1, self.total);
    }

    fn finish(&mut self, name: &str, outcome: Outcome, begun: Instant, tests: Tests) {
        let time = begun.elapsed();
        match &outcome {
            Outcome::Passed => eprintln!("    ok, {}", seconds(time)),
            Outcome::Failed => eprintln!("    FAILED, {}", seconds(time)),
            Outcome::Skipped(why) => eprintln!("    skipped: {why}"),
        }
        self.done.push(Done { name: name.to_owned(), outcome, time, tests });
    }

    /// Prints the table and the last line; the exit code of the whole.
    pub(crate) fn sum_up(self) -> ExitCode {
        let width = self.done.iter().map(|done| done.name.len()).max().unwrap_or(0);
        println!();
        let mut sum = Tests::default();
        for done in &self.done {
            let (word, of_step) = match &done.outcome {
                Outcome::Passed => ("ok".to_owned(), Tests { passed: 1, ..Tests::default() }),
                Outcome::Failed => ("FAILED".to_owned(), Tests { failed: 1, ..Tests::default() }),
                Outcome::Skipped(why) => {
                    (format!("skipped: {why}"), Tests { skipped: 1, ..Tests::default() })
                }
            };
            // A step with tests counts as its tests, and as a failure of its own where it failed without one.
            let counted = if done.tests == Tests::default() { of_step } else { done.tests };
            let unseen = u64::from(done.outcome == Outcome::Failed && counted.failed == 0);
            sum.passed += counted.passed;
            sum.failed += counted.failed + unseen;
            sum.skipped += counted.skipped;
            let tests = if done.tests == Tests::default() {
                String::new()
            } else {
                format!(" ({} tests)", done.tests.passed + done.tests.failed)
            };
            println!("{:width$}  {:>8}  {word}{tests}", done.name, seconds(done.time));
        }
        println!("\n{} passed, {} failed, {} skipped", sum.passed, sum.failed, sum.skipped);
        if sum.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Runs a command and keeps the end of what it wrote.
fn run(command: &mut Command, verbose: bool) -> (Outcome, VecDeque<String>) {
    let mut output = VecDeque::new();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            output.push_back(format!("{} could not be started: {error}", command.get_program().display()));
            return (Outcome::Failed, output);
        }
    };
    let (lines, heard) = channel();
    forward(child.stdout.take(), lines.clone());
    forward(child.stderr.take(), lines);
    let begun = Instant::now();
    loop {
        match heard.recv_timeout(HEARTBEAT) {
            Ok(line) => {
                if verbose {
                    eprintln!("    {line}");
                }
                output.push_back(line);
                if output.len() > KEPT_LINES {
                    output.pop_front();
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                let last = output.back().map_or("", |line| line.trim());
                eprintln!("    … {:.0} s: {last}", begun.elapsed().as_secs_f64());
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let passed = child.wait().is_ok_and(|status| status.success());
    (if passed { Outcome::Passed } else { Outcome::Failed }, output)
}

fn forward(from: Option<impl Read + Send + 'static>, to: Sender<String>) {
    let Some(from) = from else { return };
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                return;
            }
        }
    });
}

/// Adds up the lines in which test programs sum themselves up.
fn count_tests(output: &VecDeque<String>) -> Tests {
    let mut tests = Tests::default();
    for line in output.iter().filter_map(|line| line.trim().strip_prefix("test result: ")) {
        for part in line.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let number = words.next().and_then(|word| word.parse::<u64>().ok());
            match (number, words.next()) {
                (Some(number), Some("passed")) => tests.passed += number,
                (Some(number), Some("failed")) => tests.failed += number,
                (Some(number), Some("ignored")) => tests.skipped += number,
                _ => {}
            }
        }
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_counted() {
        let output = [
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
            "test a ... ok",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
        ];
        let output = output.iter().map(ToString::to_string).collect();
        assert_eq!(count_tests(&output), Tests { passed: 15, failed: 2, skipped: 1 });
    }

    #[test]
    fn a_failed_command_fails_its_step() {
        assert_eq!(run(&mut Command::new("false"), false).0, Outcome::Failed);
        assert_eq!(run(&mut Command::new("true"), false).0, Outcome::Passed);
        assert_eq!(run(&mut Command::new("no-such-program"), false).0, Outcome::Failed);
    }
}
