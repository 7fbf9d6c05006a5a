//! The guest's kernel: Debian's, unpacked and not installed. It refuses to be any other than the one that this machine's
//! package lists name, unless the environment names one.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::place;

/// A folder with `boot/vmlinuz-*` and `lib/modules/*`, for machines without apt.
const VARIABLE: &str = "SPANWIRE_GUEST_KERNEL";
/// Names the package of the current kernel for machines in clouds: small, and with all that the tests need.
const META: &str = "linux-image-cloud-amd64";

/// A kernel and its modules.
pub(super) struct Kernel {
    pub(super) image: PathBuf,
    /// `lib/modules/<version>`.
    pub(super) modules: PathBuf,
}

/// Finds the kernel, or downloads and unpacks it into the user's cache.
pub(super) fn provide() -> Result<Kernel> {
    if let Some(folder) = env::var_os(VARIABLE).filter(|folder| !folder.is_empty()) {
        return find(Path::new(&folder)).with_context(|| format!("looking into {VARIABLE}"));
    }
    let package = current_package()?;
    let cache = cache()?;
    let folder = cache.join(&package);
    if !folder.exists() {
        download(&cache, &package, &folder)?;
    }
    find(&folder)
}

/// The package that the meta package stands for today.
fn current_package() -> Result<String> {
    let how = format!(
        "the guest's kernel comes from Debian's package {META}; on another system let {VARIABLE} name a folder with \
         boot/vmlinuz-* and lib/modules/*"
    );
    let output = Command::new("apt-cache").args(["depends", META]).output().with_context(|| how.clone())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = text.lines().find_map(|line| line.trim().strip_prefix("Depends: ").map(str::to_owned));
    found.with_context(|| how)
}

fn cache() -> Result<PathBuf> {
    let cache = place::cache()?.join("kernel");
    fs::create_dir_all(&cache).with_context(|| format!("making {}", cache.display()))?;
    Ok(cache)
}

/// Unpacks beside its place and moves it there whole.
fn download(cache: &Path, package: &str, folder: &Path) -> Result<()> {
    eprintln!("Downloading {package}, the kernel of the guest; nothing is installed …");
    let work = cache.join(format!("{package}.part"));
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).with_context(|| format!("making {}", work.display()))?;
    call(Command::new("apt-get").args(["download", "-qq", package]).current_dir(&work))?;
    let archive = fs::read_dir(&work)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "deb"));
    let archive = archive.with_context(|| format!("apt-get download {package} left no package"))?;
    let unpacked = work.join("unpacked");
    call(Command::new("dpkg-deb").arg("--extract").args([&archive, &unpacked]))?;
    fs::rename(&unpacked, folder).with_context(|| format!("moving the kernel to {}", folder.display()))?;
    fs::remove_dir_all(&work).with_context(|| format!("removing {}", work.display()))
}

fn call(command: &mut Command) -> Result<()> {
    let program = command.get_program().display().to_string();
    let output = command.output().with_context(|| format!("starting {program}"))?;
    if !output.status.success() {
        bail!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn find(folder: &Path) -> Result<Kernel> {
    let first = |within: &str, prefix: &str| -> Result<PathBuf> {
        let within = folder.join(within);
        let entries = fs::read_dir(&within).with_context(|| format!("listing {}", within.display()))?;
        let mut fitting =
            entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        let found = fitting.next().map(|entry| entry.path());
        found.with_context(|| format!("nothing that begins with {prefix:?} in {}", within.display()))
    };
    Ok(Kernel { image: first("boot", "vmlinuz-")?, modules: first("lib/modules", "")? })
}
