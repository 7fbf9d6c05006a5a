//! Builds and starts the end-to-end scenarios, with an image and clients where they run on clusters of kind. It refuses to
//! know them: the crate `e2e` does.

use std::{
    env,
    ffi::OsString,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::{demo, image, place, tools};

/// `cargo xtask e2e`
#[derive(Debug, clap::Args)]
pub(crate) struct E2eArgs {
    /// Flags of the scenarios; `cargo xtask e2e --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<String>,
}

const PROGRAM: &str = "e2e";
/// What clusters of kind are made and looked at with.
const CLIENTS: [&str; 3] = ["kind", "kubectl", "helm"];

/// Builds, then becomes the scenarios.
pub(crate) fn run(args: &E2eArgs) -> Result<ExitCode> {
    let flags = &args.flags;
    let is_kind = flags.windows(2).any(|pair| pair == ["--provider", "kind"])
        || flags.iter().any(|flag| flag == "--provider=kind");
    if !is_kind || demo::asks_for_help(flags) {
        return demo::start(PROGRAM, flags, &[], &[]);
    }
    let chart = place::root().join("charts/spanwire").into();
    let mut variables = vec![("PATH", path_with_clients()?), ("SPANWIRE_CHART", chart)];
    if !flags.iter().any(|flag| flag.starts_with("--image")) {
        variables.push(("SPANWIRE_IMAGE", image::provide()?.into()));
    }
    demo::start(PROGRAM, flags, &["spanwirectl"], &variables)
}

/// The search path, with what was built in front of it where something is missing.
fn path_with_clients() -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let missing: Vec<&str> = CLIENTS.into_iter().filter(|client| !tools::is_there(client)).collect();
    if missing.is_empty() {
        return Ok(path);
    }
    if !tools::is_there("go") {
        bail!(
            "{} are missing, and Go (https://go.dev/dl), with which they could be built",
            missing.join(", ")
        );
    }
    eprintln!("Building {} with Go; minutes the first time …", missing.join(", "));
    let script = place::root().join("tools/kind-node/build.sh");
    let status = Command::new(&script).arg("clients").stdin(Stdio::null()).stdout(std::io::stderr()).status();
    if !status.with_context(|| format!("starting {}", script.display()))?.success() {
        bail!("{} clients failed", script.display());
    }
    let folders = std::iter::once(clients()?).chain(env::split_paths(&path));
    env::join_paths(folders).context("putting a search path together")
}

/// Where the script puts them.
fn clients() -> Result<PathBuf> {
    let named = env::var_os("SPANWIRE_KIND_NODE").map(PathBuf::from);
    let folder = named.map_or_else(|| place::cache().map(|cache| cache.join("kind-node")), Ok)?;
    Ok(folder.join("bin"))
}
