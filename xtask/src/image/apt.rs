//! Downloads of Debian packages by apt, with lists of its own. It refuses to change this machine: nothing is installed, and
//! the machine's own lists stay as they are.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use super::{
    architecture::Architecture,
    packages::{NUMBER, RELEASE},
};
use crate::tools;

/// Lists of one architecture, read when this was made.
pub(crate) struct Apt {
    folder: TempDir,
    architecture: Architecture,
}

impl Apt {
    /// Reads the lists of the sources that this machine has.
    pub(crate) fn new(architecture: Architecture) -> Result<Self> {
        check_machine()?;
        let folder = tempfile::tempdir().context("making a folder for the lists of apt")?;
        for below in ["state/lists/partial", "cache/archives/partial", "packages"] {
            fs::create_dir_all(folder.path().join(below)).context("making a folder for the lists of apt")?;
        }
        fs::write(folder.path().join("status"), "").context("making an empty list of installed packages")?;
        let apt = Self { folder, architecture };
        eprintln!("    reading Debian's lists for {} (about 10 MB) …", architecture.name());
        apt.call(&["update"])?;
        Ok(apt)
    }

    /// Downloads a package; the file lives as long as this.
    pub(crate) fn download(&self, name: &str, version: Option<&str>) -> Result<PathBuf> {
        let wanted = version.map_or_else(|| name.to_owned(), |version| format!("{name}={version}"));
        eprintln!("    downloading {wanted} …");
        self.call(&["download", &wanted])?;
        let packages = self.folder.path().join("packages");
        let listed = fs::read_dir(&packages).with_context(|| format!("listing {}", packages.display()))?;
        let mut paths = listed.flatten().map(|entry| entry.path());
        let prefix = format!("{name}_");
        let found = paths.find(|path| {
            path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(prefix.as_str()))
        });
        found.with_context(|| format!("apt-get download {wanted} left no package"))
    }

    fn call(&self, arguments: &[&str]) -> Result<()> {
        let folder = self.folder.path();
        let output = Command::new("apt-get")
            .arg("-qq")
            .args(self.options(folder))
            .args(arguments)
            .current_dir(folder.join("packages"))
            .output()
            .context("starting apt-get")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!("apt-get {} failed: {}", arguments.join(" "), said.trim().replace('\n', "; "));
        }
        Ok(())
    }

    /// Everything that apt would keep goes to the folder.
    fn options(&self, folder: &Path) -> Vec<String> {
        let within = |below: &str| folder.join(below).display().to_string();
        let settings = [
            format!("Dir::State={}", within("state")),
            format!("Dir::State::status={}", within("status")),
            format!("Dir::Cache={}", within("cache")),
            format!("APT::Architecture={}", self.architecture.name()),
            format!("APT::Architectures={}", self.architecture.name()),
            // Its own user may not write to our folder.
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Languages=none".to_owned(),
        ];
        settings.into_iter().flat_map(|setting| ["-o".to_owned(), setting]).collect()
    }
}

/// The packages are those of one release, and this machine's sources say where they are.
fn check_machine() -> Result<()> {
    for (program, package) in [("apt-get", "apt"), ("dpkg-deb", "dpkg")] {
        if !tools::is_there(program) {
            bail!(
                "{program} is missing: nft and its libraries come from packages of Debian {NUMBER} ({RELEASE}), so \
                 this chore runs on Debian {NUMBER}, or in a container of it (package {package})"
            );
        }
    }
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    if !is_release(&system) {
        bail!(
            "this system is not Debian {NUMBER} ({RELEASE}), whose packages the image takes nft and its libraries \
             from, and whose libc our programs are linked with: run this chore there, or in a container of it"
        );
    }
    Ok(())
}

fn is_release(system: &str) -> bool {
    let says = |line: &str| system.lines().any(|each| each.replace('"', "") == line);
    says("ID=debian") && says(&format!("VERSION_CODENAME={RELEASE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_systems_are_told_apart() {
        assert!(is_release("PRETTY_NAME=\"x\"\nID=debian\nVERSION_CODENAME=bookworm\n"));
        assert!(is_release("VERSION_CODENAME=\"bookworm\"\nID=\"debian\"\n"));
        assert!(!is_release("ID=debian\nVERSION_CODENAME=trixie\n"));
        assert!(!is_release("ID=ubuntu\nVERSION_CODENAME=noble\n"));
        assert!(!is_release(""));
    }
}
