//! The guest's file system: a folder that is packed into one archive, which the kernel unpacks into memory. It refuses to
//! take along more than the programs of a run need.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use super::{Run, kernel::Kernel};
use crate::tools;

const INIT: &str = include_str!("init.sh");
/// Loaded at start; all others on demand.
const MODULES: &[&str] = &[
    "wireguard",
    "veth",
    "bridge",
    "tun",
    "dummy",
    "nf_tables",
    "nf_conntrack",
    "nft_ct",
    "nft_chain_nat",
    "nft_dup_ipv4",
    "nft_dup_ipv6",
];
/// The parts of the kernel's modules that networks are made of.
const PARTS: &[&str] = &["net", "crypto", "lib", "arch", "drivers/net"];
/// Programs of every run: what the product starts, and what its tests look inside with.
const PROGRAMS: &[&str] = &["nft", "wg", "ip", "mount", "sh", "setpriv", "unshare"];

/// A packed file system, removed with this.
pub(super) struct Image {
    _folder: TempDir,
    archive: PathBuf,
}

impl Image {
    pub(super) fn path(&self) -> &Path {
        &self.archive
    }
}

pub(super) fn build(run: &Run, kernel: &Kernel) -> Result<Image> {
    let folder = tempfile::tempdir().context("making a folder for the guest")?;
    let root = folder.path().join("root");
    // As on Debian: the old places of programs and libraries lead to the new ones.
    for old in ["bin", "sbin", "lib", "lib64"] {
        fs::create_dir_all(root.join("usr").join(old))?;
        symlink(format!("usr/{old}"), root.join(old))?;
    }
    fs::create_dir_all(root.join("guest"))?;
    fs::create_dir_all(root.join("busybox"))?;
    let busybox = tools::find("busybox").context("busybox is missing")?;
    copy(&busybox, &root.join("bin/busybox"))?;
    // Where the kernel looks for it when it needs a module.
    symlink("/bin/busybox", root.join("sbin/modprobe")).context("linking modprobe")?;
    write(&root.join("init"), INIT)?;
    write(&root.join("guest/run"), &run.script)?;
    write(&root.join("guest/modules"), &MODULES.join("\n"))?;
    modules(kernel, &root, &busybox)?;
    let found = |name: &&str| tools::find(name).with_context(|| format!("{name} is missing"));
    let mut programs = PROGRAMS.iter().map(found).collect::<Result<Vec<PathBuf>>>()?;
    programs.extend(run.programs.iter().cloned());
    for program in &programs {
        place(&root, program)?;
    }
    for library in programs.iter().map(|program| libraries(program)).collect::<Result<Vec<_>>>()?.concat() {
        place(&root, &library)?;
    }
    let archive = folder.path().join("image");
    pack(&root, &archive)?;
    Ok(Image { _folder: folder, archive })
}

fn modules(kernel: &Kernel, root: &Path, busybox: &Path) -> Result<()> {
    let version = kernel.modules.file_name().context("the folder of modules has no name")?;
    let place = root.join("lib/modules").join(version);
    for part in PARTS {
        let from = kernel.modules.join("kernel").join(part);
        if from.is_dir() {
            copy_tree(&from, &place.join("kernel").join(part))?;
        }
    }
    for list in ["modules.builtin", "modules.order"] {
        copy(&kernel.modules.join(list), &place.join(list))?;
    }
    let mut depmod = Command::new(busybox);
    depmod.args(["depmod", "-b"]).arg(root).arg(version);
    let output = depmod.output().context("starting depmod")?;
    if !output.status.success() {
        bail!("depmod failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// What a program is linked with, as the loader of this machine finds it.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("starting ldd")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let paths: BTreeSet<PathBuf> =
        text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect();
    Ok(paths.into_iter().collect())
}

/// Copies a file to the same place inside; programs lose what only a debugger needs.
fn place(root: &Path, file: &Path) -> Result<()> {
    let to = inside(root, file)?;
    if to.exists() {
        return Ok(());
    }
    let mut strip = Command::new("strip");
    strip.args(["--strip-debug", "-o"]).args([&to, file]);
    let stripped = strip.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if stripped { Ok(()) } else { copy(file, &to) }
}

fn inside(root: &Path, path: &Path) -> Result<PathBuf> {
    let to =
        root.join(path.strip_prefix("/").with_context(|| format!("{} is no full path", path.display()))?);
    fs::create_dir_all(to.parent().unwrap_or(root)).with_context(|| format!("making {}", to.display()))?;
    Ok(to)
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("listing {}", from.display()))? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_tree(&from, &to)?;
        } else {
            copy(&from, &to)?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(drop).with_context(|| format!("copying {} to {}", from.display(), to.display()))
}

fn write(to: &Path, text: &str) -> Result<()> {
    let wrote = fs::write(to, text).and_then(|()| fs::set_permissions(to, PermissionsExt::from_mode(0o755)));
    wrote.with_context(|| format!("writing {}", to.display()))
}

/// Packs the folder in the one format that the kernel unpacks.
fn pack(root: &Path, archive: &Path) -> Result<()> {
    let file = fs::File::create(archive).with_context(|| format!("making {}", archive.display()))?;
    let mut cpio = Command::new("cpio")
        .args(["--create", "--format=newc", "--quiet", "--null"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(file)
        .spawn()
        .context("starting cpio")?;
    let mut names = Vec::new();
    list(root, Path::new(""), &mut names)?;
    let mut input = cpio.stdin.take().context("cpio takes no input")?;
    io::Write::write_all(&mut input, names.join("\0").as_bytes()).context("naming the files to cpio")?;
    drop(input);
    if !cpio.wait().context("waiting for cpio")?.success() {
        bail!("cpio failed");
    }
    Ok(())
}

fn list(root: &Path, below: &Path, names: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        names.push(path.display().to_string());
        if entry.file_type()?.is_dir() {
            list(root, &path, names)?;
        }
    }
    Ok(())
}
