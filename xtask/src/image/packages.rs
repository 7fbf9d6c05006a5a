//! Debian packages that the image takes files from: each of the version and content that the list names. It refuses any
//! other, so that a commit gives one image.

use std::{
    collections::BTreeSet,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use super::{apt::Apt, architecture::Architecture, layer, tree::Tree};
use crate::place;

/// The Debian release whose packages they are.
pub(crate) const RELEASE: &str = "bookworm";
/// Its number.
pub(crate) const NUMBER: &str = "12";

const LIST: &str = "xtask/src/image/packages.txt";
const HEAD: &str = "\
# Packages of Debian 12 (bookworm) in the image: architecture, package, version, SHA-256 of the file.
# `cargo xtask image --update-packages` writes this list anew from what Debian has today.
";

/// One line of the list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pinned {
    /// As Debian calls it.
    pub(crate) architecture: String,
    /// Name of the package.
    pub(crate) name: String,
    /// Version with epoch and revision.
    pub(crate) version: String,
    /// SHA-256 of the package's file, in hexadecimal digits.
    pub(crate) sha256: String,
}

/// A package with what it holds.
#[derive(Debug)]
pub(crate) struct Package {
    /// Which it is.
    pub(crate) pinned: Pinned,
    /// Its fields, as dpkg keeps them.
    pub(crate) control: String,
    /// Its files.
    pub(crate) files: Tree,
}

/// The packages for an architecture. `newest`: what Debian has today, where that is another version.
pub(crate) fn provide(architecture: Architecture, newest: bool) -> Result<Vec<Package>> {
    let list = pinned()?;
    let wanted: Vec<Pinned> =
        list.into_iter().filter(|pinned| pinned.architecture == architecture.name()).collect();
    let mut apt = None;
    wanted
        .into_iter()
        .map(|pinned| {
            let (pinned, file) = fetched(pinned, architecture, &mut apt, newest)?;
            unpacked(pinned, &file)
        })
        .collect()
}

/// Writes the list anew, with the same packages in the versions of today.
pub(crate) fn update() -> Result<Vec<Pinned>> {
    let list = pinned()?;
    let names: BTreeSet<&str> = list.iter().map(|pinned| pinned.name.as_str()).collect();
    let mut new = Vec::new();
    for architecture in Architecture::ALL {
        let apt = Apt::new(architecture)?;
        for name in &names {
            new.push(kept(architecture, &apt.download(name, None)?)?.0);
        }
    }
    new.sort();
    let lines = new.iter().map(|Pinned { architecture, name, version, sha256 }| {
        format!("{architecture} {name} {version} {sha256}\n")
    });
    fs::write(place::root().join(LIST), format!("{HEAD}{}", lines.collect::<String>()))
        .with_context(|| format!("writing {LIST}"))?;
    Ok(new.into_iter().filter(|pinned| !list.contains(pinned)).collect())
}

fn pinned() -> Result<Vec<Pinned>> {
    let text = fs::read_to_string(place::root().join(LIST)).with_context(|| format!("reading {LIST}"))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<Pinned>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [architecture, name, version, sha256] => Ok(Pinned {
                architecture: architecture.to_owned(),
                name: name.to_owned(),
                version: version.to_owned(),
                sha256: sha256.to_owned(),
            }),
            _ => bail!("{LIST}: {line:?} is not an architecture, a package, a version and a SHA-256"),
        })
        .collect()
}

/// From the cache, else from Debian.
fn fetched(
    pinned: Pinned,
    architecture: Architecture,
    apt: &mut Option<Apt>,
    newest: bool,
) -> Result<(Pinned, PathBuf)> {
    let file = cache()?.join(format!("{}.deb", pinned.sha256));
    if is_intact(&file, &pinned.sha256) {
        return Ok((pinned, file));
    }
    let apt = match apt {
        Some(apt) => apt,
        None => apt.insert(Apt::new(architecture)?),
    };
    let name = &pinned.name;
    match apt.download(name, Some(&pinned.version)) {
        Ok(file) => {
            let (had, file) = kept(architecture, &file)?;
            if had != pinned {
                bail!("{name} {} has another content than {LIST} says: {}", pinned.version, had.sha256);
            }
            Ok((pinned, file))
        }
        Err(error) if newest => {
            eprintln!("    {name} {} is not to be had any more, taking today's: {error:#}", pinned.version);
            kept(architecture, &apt.download(name, None)?)
        }
        Err(error) => Err(error.context(format!(
            "{name} {} is not to be had: Debian keeps only its newest versions. For an image with today's packages: \
             cargo xtask image --update-packages, then commit {LIST}",
            pinned.version
        ))),
    }
}

/// Moves a downloaded package to the cache, and says what it is.
fn kept(architecture: Architecture, file: &Path) -> Result<(Pinned, PathBuf)> {
    let bytes = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let sha256 = layer::hexadecimal(&bytes);
    let field = |name: &str| dpkg(&["--field"], file, &[name]).map(|text| text.trim().to_owned());
    let (name, version) = (field("Package")?, field("Version")?);
    let place = cache()?.join(format!("{sha256}.deb"));
    // Beside its place first: a file of this name is whole.
    let part = cache()?.join(format!("{sha256}.{}.part", std::process::id()));
    fs::write(&part, bytes).with_context(|| format!("writing {}", part.display()))?;
    fs::rename(&part, &place).with_context(|| format!("moving a package to {}", place.display()))?;
    Ok((Pinned { architecture: architecture.name().to_owned(), name, version, sha256 }, place))
}

fn is_intact(file: &Path, sha256: &str) -> bool {
    fs::read(file).is_ok_and(|bytes| layer::hexadecimal(&bytes) == sha256)
}

fn cache() -> Result<PathBuf> {
    let folder = place::cache()?.join("packages");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    Ok(folder)
}

fn unpacked(pinned: Pinned, file: &Path) -> Result<Package> {
    let name = pinned.name.clone();
    let mut child = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(file)
        .stdout(Stdio::piped())
        .spawn()
        .context("starting dpkg-deb, which unpacks packages of Debian")?;
    let mut archive = Vec::new();
    let mut output = child.stdout.take().context("dpkg-deb has no output")?;
    output.read_to_end(&mut archive).with_context(|| format!("unpacking {name}"))?;
    if !child.wait().context("waiting for dpkg-deb")?.success() {
        bail!("dpkg-deb could not unpack {name}");
    }
    let files = Tree::from_tar(archive.as_slice()).with_context(|| format!("unpacking {name}"))?;
    Ok(Package { pinned, control: dpkg(&["--field"], file, &[])?, files })
}

fn dpkg(flags: &[&str], file: &Path, fields: &[&str]) -> Result<String> {
    let mut command = Command::new("dpkg-deb");
    let output = command.args(flags).arg(file).args(fields).output().context("starting dpkg-deb")?;
    if !output.status.success() {
        bail!("{} is no package: {}", file.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_the_same_packages_for_every_architecture() {
        let list = parse(include_str!("packages.txt")).unwrap();
        let names = |architecture: Architecture| -> Vec<String> {
            let of = list.iter().filter(|pinned| pinned.architecture == architecture.name());
            of.map(|pinned| pinned.name.clone()).collect()
        };
        assert_eq!(names(Architecture::Amd64), names(Architecture::Arm64));
        assert!(names(Architecture::Amd64).contains(&"nftables".to_owned()));
        assert!(list.iter().all(|pinned| pinned.sha256.len() == 64));
        assert!(include_str!("packages.txt").starts_with(HEAD));
    }

    #[test]
    fn a_broken_line_is_named() {
        assert!(parse("amd64 nftables 1\n").unwrap_err().to_string().contains("amd64 nftables 1"));
    }
}
