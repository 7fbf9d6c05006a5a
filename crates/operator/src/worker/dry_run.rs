//! `--dry-run`: what a pass would do, in order. It refuses to write anything, anywhere.

use serde::Serialize;
use spanwire_engine::{
    port::{Devices, LocalStore, WorkerStore},
    worker::{Report, Step},
};

use super::{Probes, Worker, describe, observe, plan, validate};
use crate::{cli::LogFormat, fault::Noted};

/// What a pass would do.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Steps in order, in words.
    pub steps: Vec<String>,
    /// How many of them take something away.
    pub removals: usize,
    /// Links that stay until others are connected, and networks of which nothing is removed.
    pub kept: Vec<String>,
    /// What could not be read.
    pub unknown: Vec<Noted>,
}

/// Plans one pass and takes no step of it.
///
/// # Errors
/// Records or host can't be read.
pub async fn preview<C: WorkerStore, L: LocalStore, D: Devices, P: Probes>(
    worker: &mut Worker<C, L, D, P>,
) -> Result<Preview, Noted> {
    let fetched = observe::observe(&worker.me, &worker.ports).await?;
    let validated = validate::validate(&worker.me, &mut worker.identity, &worker.settings, fetched).await?;
    let plan::Plan { validated, steps, report } = plan::plan(validated);
    let Report { kept, held, strangers: _, next_due: _ } = report;
    let kept = kept.into_iter().map(|(network, why)| format!("{network}: nothing is removed: {why}"));
    let held = held.into_iter().map(|(link, others)| {
        let others: Vec<String> = others.iter().map(ToString::to_string).collect();
        format!("{link} stays until {} is connected", others.join(", "))
    });
    Ok(Preview {
        steps: steps.iter().map(describe::step).collect(),
        removals: steps.iter().filter(|step| Step::is_destructive(step)).count(),
        kept: kept.chain(held).collect(),
        unknown: validated.fetched.faults(),
    })
}

impl Preview {
    /// The preview as printed.
    pub fn render(&self, format: LogFormat) -> String {
        match format {
            LogFormat::Json => serde_json::to_string(self).unwrap_or_default(),
            LogFormat::Human => self.lines().join("\n"),
        }
    }

    fn lines(&self) -> Vec<String> {
        let Preview { steps, removals, kept, unknown } = self;
        let mut lines: Vec<String> =
            steps.iter().zip(1..).map(|(step, number)| format!("{number:>4}  {step}")).collect();
        lines.extend(kept.iter().map(|line| format!("kept: {line}")));
        lines.extend(unknown.iter().map(|fault| format!("unknown: {fault}")));
        lines.push(format!("{} steps, {removals} of them removals; nothing was written", steps.len()));
        lines
    }
}
