//! What the image is made from: the commit, its time, and whether files differ from it. It refuses the clock of this
//! machine.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::place;

/// A commit of this repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    /// Its full hash.
    pub(crate) id: String,
    /// When it was made, in seconds since 1970.
    pub(crate) seconds: u64,
    /// Whether the files are as committed.
    pub(crate) clean: bool,
}

impl Commit {
    /// The one that is checked out.
    pub(crate) fn current() -> Result<Self> {
        let log = git(&["log", "-1", "--format=%H %ct"])?;
        let (id, seconds) = log.trim().split_once(' ').context("git log gave no commit")?;
        let clean = git(&["status", "--porcelain"])?.trim().is_empty();
        let seconds = seconds.parse().context("git log gave no time")?;
        Ok(Self { id: id.to_owned(), seconds, clean })
    }

    /// The hash, marked where files differ from the commit.
    pub(crate) fn revision(&self) -> String {
        if self.clean { self.id.clone() } else { format!("{}-modified", self.id) }
    }

    /// Its time as RFC 3339.
    pub(crate) fn moment(&self) -> Result<String> {
        let seconds = i64::try_from(self.seconds).context("the commit is too far in the future")?;
        let moment = jiff::Timestamp::from_second(seconds).context("the commit is too far in the future")?;
        Ok(moment.to_string())
    }
}

fn git(arguments: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(place::root());
    let output = git.output().context("starting git, which says what the image is made from")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!(
            "the image carries the commit that it was made from, so it is made in a clone: {}",
            said.trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
