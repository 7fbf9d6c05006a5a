//! `--once`: passes until one writes nothing, then a verdict. It refuses to wait for others: what is not there yet
//! is named.

use std::{collections::BTreeSet, time::Duration};

use serde::Serialize;
use spanwire_engine::Class;
use tracing::Instrument as _;

use super::{Outcome, Reconciler, said::Said};
use crate::{cli::LogFormat, fault::Noted, ledger::Ledger, stop::Stop};

/// Passes at most: what one pass writes another may have to answer, but not for ever.
const PASSES: u32 = 10;

/// What is due within this is waited for.
const SOON: Duration = Duration::from_secs(2);

/// What a run of `--once` came to.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// In one word.
    pub result: Result,
    /// How many passes were made.
    pub passes: u32,
    /// All writes.
    pub writes: Ledger,
    /// What it waits for.
    pub waits_for: Vec<String>,
    /// What failed in the last pass.
    pub errors: Vec<Noted>,
}

/// The verdict in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Result {
    /// Nothing is left to do.
    Done,
    /// It waits for something.
    Waiting,
    /// Something failed.
    Failed,
}

impl Verdict {
    /// The exit code of the process: 0, 75 (EX_TEMPFAIL of sysexits.h) or 1.
    pub fn exit_code(&self) -> u8 {
        match self.result {
            Result::Done => 0,
            Result::Waiting => 75,
            Result::Failed => 1,
        }
    }

    /// The verdict as printed.
    pub fn render(&self, format: LogFormat) -> String {
        match format {
            LogFormat::Json => serde_json::to_string(self).unwrap_or_default(),
            LogFormat::Human => self.lines().join("\n"),
        }
    }

    fn lines(&self) -> Vec<String> {
        let Verdict { result, passes, writes, waits_for, errors } = self;
        let mut lines: Vec<String> = Vec::new();
        lines.extend(writes.entries().iter().map(|entry| format!("wrote {}: {}", entry.target, entry.what)));
        lines.extend(waits_for.iter().map(|wait| format!("waits for {wait}")));
        lines.extend(errors.iter().map(|error| format!("error: {error}")));
        let word = match result {
            Result::Done => "nothing is left to do",
            Result::Waiting => "waiting",
            Result::Failed => "failed",
        };
        lines.push(format!("{word}; {} writes in {passes} passes", writes.entries().len()));
        lines
    }
}

/// Makes passes until one writes nothing and meets no fault that a look at newer data could clear.
pub async fn once(reconciler: &mut impl Reconciler, stop: &Stop) -> Verdict {
    let (mut verdict, mut said) = (Verdict::nothing(), Said::default());
    while verdict.passes < PASSES {
        let span = tracing::info_span!("pass", number = verdict.passes + 1, cause = "once");
        let outcome = tokio::select! {
            biased;
            outcome = reconciler.pass().instrument(span) => outcome,
            () = stop.overdue() => return verdict,
        };
        said.log(&outcome, &BTreeSet::new());
        let soon = outcome.due.filter(|due| *due <= SOON);
        let further = verdict.learn(outcome);
        if stop.is_requested() || !(further || soon.is_some()) {
            break;
        }
        if let Some(soon) = soon.filter(|_| !further) {
            tokio::time::sleep(soon).await;
        }
    }
    verdict
}

impl Verdict {
    /// No pass yet.
    fn nothing() -> Self {
        Self {
            result: Result::Failed,
            passes: 0,
            writes: Ledger::default(),
            waits_for: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// The verdict of a run that could not begin.
    pub fn of(outcome: Outcome) -> Self {
        let mut verdict = Self::nothing();
        verdict.learn(outcome);
        verdict
    }

    /// Takes a pass in; `true`: another one could get further.
    fn learn(&mut self, outcome: Outcome) -> bool {
        let Outcome { ledger, waits, faults, due: _ } = outcome;
        self.passes += 1;
        let wrote = !ledger.is_empty();
        let stale = faults.iter().any(|fault| fault.class == Class::Retry) && self.errors != faults;
        self.result = match (faults.is_empty(), waits.is_empty()) {
            (false, _) => Result::Failed,
            (true, false) => Result::Waiting,
            (true, true) => Result::Done,
        };
        self.writes.extend(ledger);
        (self.waits_for, self.errors) = (waits, faults);
        wrote || stale
    }
}
