//! The rules of this repository that a machine can check. It refuses what clippy and rustfmt see already.

mod edges;
mod files;
mod lexer;
mod orphans;
mod words;

use std::process::ExitCode;

use anyhow::Result;

/// Prints all findings.
pub(crate) fn run() -> Result<ExitCode> {
    let findings = findings()?;
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} findings", findings.len());
    Ok(ExitCode::FAILURE)
}

/// All findings, as `path:line: what is wrong`.
pub(crate) fn findings() -> Result<Vec<String>> {
    let mut findings = edges::findings()?;
    findings.extend(files::findings()?);
    findings.extend(orphans::findings()?);
    findings.extend(words::findings()?);
    Ok(findings)
}
