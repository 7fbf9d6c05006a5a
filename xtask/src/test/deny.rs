//! Licences, bans and advisories of all dependencies, by cargo-deny. It refuses another version than the pinned one:
//! its rules change between versions.

use std::process::Command;

use crate::{place, step::Steps};

const VERSION: &str = "0.20.2";
const FETCH_LIMIT_SECONDS: &str = "60";

/// Installs it where it is missing, then checks.
pub(crate) fn run(steps: &mut Steps) {
    if installed().as_deref() != Some(VERSION) {
        let package = format!("cargo-deny@{VERSION}");
        eprintln!("Installing {package} (once; some minutes).");
        let mut install = place::cargo(&["install", "--locked", "--quiet", "--force", &package]);
        steps.command("installing cargo-deny", &mut install);
    }
    steps.command(
        "licences, bans and sources",
        &mut place::cargo(&["deny", "--all-features", "check", "licenses", "bans", "sources"]),
    );
    match fetch_advisories() {
        Ok(()) => {
            let check = ["deny", "--all-features", "check", "--disable-fetch", "advisories"];
            steps.command("advisories", &mut place::cargo(&check));
        }
        Err(why) => steps.skip("advisories", why),
    }
}

fn installed() -> Option<String> {
    let output = place::cargo(&["deny", "--version"]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().nth(1).map(str::to_owned)
}

/// Fetches the database of advisories, within a minute.
fn fetch_advisories() -> Result<(), String> {
    let fetch = place::cargo(&["deny", "fetch", "db"]);
    let mut limited = Command::new("timeout");
    limited
        .arg(FETCH_LIMIT_SECONDS)
        .arg(fetch.get_program())
        .args(fetch.get_args())
        .current_dir(place::root());
    let output = limited.output().map_err(|error| format!("timeout could not be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let cause =
        said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no answer within a minute");
    Err(format!("the database of advisories can't be fetched from here ({cause})"))
}
