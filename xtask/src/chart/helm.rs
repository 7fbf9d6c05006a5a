//! Where helm is: on the search path in the version that the chart is checked with, else built from `tools/helm/go.mod`
//! into the user's cache folder. It refuses a helm of another major version: its words and its output differ.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::{place, tools};

/// Tells the tests where it is.
pub(crate) const VARIABLE: &str = "SPANWIRE_HELM";
const MODULE: &str = "tools/helm";
const VERSION: &str = "v4.";

/// Helm, ready to run.
pub(crate) struct Helm(PathBuf);

/// What a run of it wrote.
pub(crate) struct Answer {
    pub(crate) succeeded: bool,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Helm {
    /// Finds it, or builds it: some minutes the first time.
    pub(crate) fn provide() -> Result<Self> {
        if let Some(program) = find() {
            return Ok(Self(program));
        }
        let program = cached()?;
        if !program.is_file() {
            build(&program)?;
        }
        Ok(Self(program))
    }

    /// Runs it in the workspace, without a cluster.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Answer> {
        let mut command = Command::new(&self.0);
        // A kubeconfig of the user's is none of this.
        command.args(arguments).current_dir(place::root()).env("KUBECONFIG", "/dev/null");
        let output = command.output().with_context(|| format!("starting {}", self.0.display()))?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Answer {
            succeeded: output.status.success(),
            output: text(output.stdout),
            errors: text(output.stderr),
        })
    }
}

/// Why there can be none here. `None`: it is there or can be built.
pub(crate) fn why_not() -> Option<String> {
    let there = find().is_some() || cached().is_ok_and(|program| program.is_file());
    (!there && !tools::is_there("go")).then(|| {
        "helm 4 and Go are missing: install helm, or Go, with which it is built (https://go.dev/dl); the chart is not \
         looked at"
            .to_owned()
    })
}

/// Where it is now, built or found.
pub(crate) fn present() -> Option<PathBuf> {
    find().or_else(|| cached().ok().filter(|program| program.is_file()))
}

fn find() -> Option<PathBuf> {
    let program = tools::find("helm")?;
    let output = Command::new(&program).args(["version", "--short"]).output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().starts_with(VERSION).then_some(program)
}

/// The file that the versions in the module's files name, built or not.
fn cached() -> Result<PathBuf> {
    let mut digest = Sha256::new();
    for name in ["go.mod", "go.sum"] {
        let path = place::root().join(MODULE).join(name);
        digest.update(fs::read(&path).with_context(|| format!("reading {}", place::short(&path)))?);
    }
    let digest: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(place::cache()?.join("helm").join(digest).join("helm"))
}

/// Beside its place first, so that a build that was cut short leaves no half program there.
fn build(program: &Path) -> Result<()> {
    let folder = program.parent().context("the program stands in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let lock = File::create(folder.join("lock")).context("making a lock")?;
    lock.lock().context("waiting for another build of helm")?;
    if program.is_file() {
        return Ok(());
    }
    let package = package()?;
    eprintln!("building helm from {MODULE}/go.mod, once for this version: some minutes");
    let temporary = folder.join("building");
    let status = Command::new("go")
        .args(["build", "-trimpath", "-buildvcs=false", "-ldflags", &link_flags(&package)?, "-o"])
        .args([temporary.as_os_str(), package.as_ref()])
        .current_dir(place::root().join(MODULE))
        .envs([("GOFLAGS", "-mod=readonly"), ("CGO_ENABLED", "0")])
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .context("starting go; it is at https://go.dev/dl")?;
    if !status.success() {
        bail!("building helm failed");
    }
    fs::rename(&temporary, program).with_context(|| format!("keeping {}", program.display()))
}

fn module_file() -> Result<String> {
    let path = place::root().join(MODULE).join("go.mod");
    fs::read_to_string(&path).with_context(|| format!("reading {}", place::short(&path)))
}

/// What the module file names as its tool.
fn package() -> Result<String> {
    let text = module_file()?;
    let named = text.lines().find_map(|line| line.trim().strip_prefix("tool "));
    named.map(str::to_owned).with_context(|| format!("{MODULE}/go.mod names no tool"))
}

/// Without these it calls itself by no version.
fn link_flags(package: &str) -> Result<String> {
    let module = package.trim_end_matches("/cmd/helm");
    let text = module_file()?;
    let mut words = text.split_whitespace().skip_while(|word| *word != module);
    let version = words.nth(1).with_context(|| format!("{MODULE}/go.mod names no version of {module}"))?;
    Ok(format!("-s -w -X {module}/internal/version.version={version}"))
}
