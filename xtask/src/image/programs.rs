//! Our programs as they go into the image: built without a trace of the folder that they were built in. It refuses a
//! program that does not start with the image's own libraries.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::{
    Profile,
    architecture::Architecture,
    commit::Commit,
    root::Program,
    tree::{Node, Tree},
};
use crate::{
    place,
    step::Steps,
    tools::{self, Tool},
};

/// Packages and their programs.
const OURS: [(&str, &str); 2] = [("spanwire", "spanwire"), ("spanwire-ctl", "spanwirectl")];

/// Arguments that say which packages the programs are made of.
pub(crate) fn packages() -> impl Iterator<Item = &'static str> {
    OURS.into_iter().flat_map(|(package, _)| ["--package", package])
}

/// Builds them.
pub(crate) fn build(
    steps: &mut Steps,
    profile: Profile,
    architecture: Architecture,
    commit: &Commit,
) -> Result<Vec<Program>> {
    can_build(architecture)?;
    let target = place::target()?;
    let name = format!("build spanwire and spanwirectl, profile {}", profile.name());
    let mut command = match profile {
        Profile::Dev => dev(),
        Profile::Dist | Profile::Release => shipped(profile, architecture, &target, commit)?,
    };
    steps.must(&name, &mut command)?;
    let folder = match profile {
        Profile::Dev => target.join("debug"),
        Profile::Dist | Profile::Release => target.join(architecture.target()).join(profile.name()),
    };
    OURS.iter().map(|(_, name)| read(&folder.join(name), name, profile)).collect()
}

fn can_build(architecture: Architecture) -> Result<()> {
    if Architecture::here() == Some(architecture) {
        return Ok(());
    }
    let target = architecture.target();
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--print", "target-libdir", "--target", &target]).current_dir(place::root());
    let output = rustc.output().context("starting rustc")?;
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() || !Path::new(&folder).is_dir() {
        bail!("Rust's libraries for {} are missing: rustup target add {target}", architecture.name());
    }
    match architecture {
        Architecture::Amd64 => tools::ensure(&[Tool::new(
            "x86_64-linux-gnu-gcc",
            "gcc-x86-64-linux-gnu libc6-dev-amd64-cross",
            "linking programs for amd64",
        )]),
        Architecture::Arm64 => tools::ensure(&[Tool::new(
            "aarch64-linux-gnu-gcc",
            "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
            "linking programs for arm64",
        )]),
    }
}

/// What tests and the demo have built already.
fn dev() -> Command {
    let mut command = place::cargo(&["build", "--workspace", "--all-features"]);
    command.args(OURS.iter().flat_map(|(_, name)| ["--bin", name]));
    command
}

/// The same bytes from every folder: paths are replaced, and nothing for debuggers stays.
fn shipped(profile: Profile, architecture: Architecture, target: &Path, commit: &Commit) -> Result<Command> {
    let triple = architecture.target();
    let mut command = place::cargo(&["build", "--locked", "--profile", profile.name(), "--target", &triple]);
    command.args(packages()).args(OURS.iter().flat_map(|(_, name)| ["--bin", name]));
    let places = [(place::root(), "/spanwire"), (cargo_home()?, "/cargo"), (target.to_owned(), "/target")];
    // The image's loader reads addresses to be moved as a bitmap, which is a twentieth of their list.
    let small = ["-Clink-arg=-Wl,-z,pack-relative-relocs".to_owned()];
    let flags = places.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    let flags = flags.chain(small);
    let c_flags = places.iter().map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display()));
    let variable = triple.replace('-', "_");
    command
        .env("CARGO_ENCODED_RUSTFLAGS", flags.collect::<Vec<_>>().join("\x1f"))
        .env(format!("CFLAGS_{variable}"), c_flags.collect::<Vec<_>>().join(" "))
        .env(format!("CARGO_PROFILE_{}_STRIP", profile.name().to_uppercase()), "symbols")
        .env(format!("CARGO_PROFILE_{}_DEBUG", profile.name().to_uppercase()), "0")
        .env("SOURCE_DATE_EPOCH", commit.seconds.to_string());
    if Architecture::here() != Some(architecture) {
        let compiler = format!("{}-gcc", architecture.tuple());
        let linker = format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase());
        command.env(linker, &compiler).env(format!("CC_{variable}"), compiler);
    }
    Ok(command)
}

/// Where crates are unpacked.
fn cargo_home() -> Result<PathBuf> {
    let named = env::var_os("CARGO_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    named.or_else(home).context("neither CARGO_HOME nor HOME is set")
}

fn read(file: &Path, name: &str, profile: Profile) -> Result<Program> {
    let read = |file: &Path| fs::read(file).with_context(|| format!("reading {}", file.display()));
    let content = match profile {
        Profile::Dist | Profile::Release => read(file)?,
        // The tests' own build keeps what debuggers need.
        Profile::Dev => {
            let folder = tempfile::tempdir().context("making a folder for a stripped program")?;
            let stripped = folder.path().join(name);
            let status = Command::new("strip").arg("-o").args([&stripped, &file.to_owned()]).status();
            if !status.context("starting strip")?.success() {
                bail!("strip failed on {}", file.display());
            }
            read(&stripped)?
        }
    };
    Ok(Program { name: name.to_owned(), content })
}

/// Starts every program with the image's own loader and libraries, and nothing of this machine's. `None`: not on this
/// machine.
pub(crate) fn start(architecture: Architecture, tree: &Tree) -> Result<Option<Vec<String>>> {
    if Architecture::here() != Some(architecture) {
        return Ok(None);
    }
    let folder = tempfile::tempdir().context("making a folder for the image's files")?;
    write(tree, folder.path())?;
    let libraries = format!("usr/lib/{}", architecture.tuple());
    let loader = tree.below(&libraries).find(|(path, _)| path.contains("/ld-linux"));
    let (loader, _) = loader.context("the image has no loader")?;
    let programs = ["usr/local/bin/spanwire", "usr/local/bin/spanwirectl", "usr/sbin/nft"];
    let said = programs.iter().map(|program| {
        let mut command = Command::new(folder.path().join(loader));
        command.arg("--inhibit-cache").arg("--library-path").arg(folder.path().join(&libraries));
        command.arg(folder.path().join(program)).arg("--version").env_remove("LD_LIBRARY_PATH");
        let output = command.output().with_context(|| format!("starting {program} of the image"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!(
                "{program} does not start with the image's libraries: {}. A program that was linked on a system \
                 with a newer libc does not: build on the Debian release of the packages",
                said.trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    });
    said.collect::<Result<Vec<_>>>().map(Some)
}

/// Writes a tree to a folder.
fn write(tree: &Tree, folder: &Path) -> Result<()> {
    for (path, node) in tree.entries() {
        let to = folder.join(path);
        let made = match node {
            Node::Folder { .. } => fs::create_dir_all(&to),
            Node::File { mode, content } => fs::create_dir_all(to.parent().unwrap_or(folder))
                .and_then(|()| fs::write(&to, content))
                .and_then(|()| fs::set_permissions(&to, fs::Permissions::from_mode(*mode))),
            // The links of a root lead to this machine's files.
            Node::Link { .. } if path.contains('/') => match tree.content(path) {
                Some(content) => {
                    fs::create_dir_all(to.parent().unwrap_or(folder)).and_then(|()| fs::write(&to, content))
                }
                None => Ok(()),
            },
            Node::Link { .. } => Ok(()),
        };
        made.with_context(|| format!("writing {}", to.display()))?;
    }
    Ok(())
}
