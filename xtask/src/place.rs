//! Where things are: the workspace, its build directory, its files, and what the user keeps for it. It refuses to
//! change any of it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    here.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// A `cargo` command in the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    // The variables that describe this crate would make build scripts of others run again.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
    command
}

/// What `cargo metadata` says of the workspace.
pub(crate) fn metadata() -> Result<serde_json::Value> {
    metadata_with(&["--no-deps"])
}

/// The same of every crate that anything in the workspace may need.
pub(crate) fn metadata_of_all() -> Result<serde_json::Value> {
    metadata_with(&["--locked", "--all-features"])
}

fn metadata_with(flags: &[&str]) -> Result<serde_json::Value> {
    let output = cargo(&["metadata", "--format-version", "1"])
        .args(flags)
        .output()
        .context("starting cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("reading the answer of cargo metadata")
}

/// The folder of everything that is built.
pub(crate) fn target() -> Result<PathBuf> {
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(target))
}

/// The folder of built programs of the dev profile.
pub(crate) fn binaries() -> Result<PathBuf> {
    Ok(target()?.join("debug"))
}

/// Version and repository of the product.
pub(crate) fn product() -> Result<[String; 2]> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let product = packages.iter().find(|package| package["name"] == "spanwire");
    let product = product.context("the workspace has no package spanwire")?;
    let text = |key: &str| {
        let text = product[key].as_str().map(str::to_owned);
        text.with_context(|| format!("the package spanwire names no {key}"))
    };
    Ok([text("version")?, text("repository")?])
}

/// This project's part of the user's cache folder.
pub(crate) fn cache() -> Result<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let base = base.or_else(home).context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(base.join("spanwire"))
}

/// All files of the workspace, sorted, without what git ignores by rule: the build directory.
pub(crate) fn files() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    walk(&root(), &mut files)?;
    files.sort();
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let listed = std::fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    for entry in listed {
        let entry = entry.with_context(|| format!("listing {}", folder.display()))?;
        let name = entry.file_name();
        let kind = entry.file_type().with_context(|| format!("looking at {}", entry.path().display()))?;
        if kind.is_dir() && name != "target" && name != ".git" {
            walk(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// A path as people write it: from the root of the workspace.
pub(crate) fn short(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
