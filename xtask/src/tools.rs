//! Programs that the chores need from the system. It refuses to install anything in silence, and anything at all
//! where it is not root of a Debian machine.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

/// A program and the Debian package that brings it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    program: &'static str,
    package: &'static str,
    purpose: &'static str,
}

impl Tool {
    /// `purpose` completes "it is needed for …".
    pub(crate) const fn new(program: &'static str, package: &'static str, purpose: &'static str) -> Self {
        Self { program, package, purpose }
    }
}

/// The packet filter, which the product drives.
pub(crate) const NFT: Tool = Tool::new("nft", "nftables", "the packet filter of the hosts");
/// The tool of WireGuard, which the tests hold against our configuration sockets.
pub(crate) const WG: Tool = Tool::new("wg", "wireguard-tools", "tests of the configuration sockets");
/// The tool of routes, for looking inside by hand and in tests.
pub(crate) const IP: Tool = Tool::new("ip", "iproute2", "looking at routes in tests");

/// Makes sure that all are there; installs what is missing where that is possible.
///
/// # Errors
/// Something is missing and can't be installed from here: the message holds the command.
pub(crate) fn ensure(tools: &[Tool]) -> Result<()> {
    for tool in tools.iter().filter(|tool| !is_there(tool.program)) {
        eprintln!("{} is missing; it is needed for {}.", tool.program, tool.purpose);
    }
    if let Some(why) = why_not(tools) {
        bail!(why);
    }
    let packages = missing_packages(tools);
    if packages.is_empty() {
        return Ok(());
    }
    eprintln!("Installing {packages} with apt-get, as this is root on a Debian machine.");
    apt_get(&["update", "-qq"])?;
    let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends"];
    arguments.extend(packages.split(' '));
    apt_get(&arguments)
}

/// Why they can't be had here, with the command. `None`: they are there, or can be installed from here.
pub(crate) fn why_not(tools: &[Tool]) -> Option<String> {
    let packages = missing_packages(tools);
    let can_install = is_root() && is_there("apt-get");
    (!packages.is_empty() && !can_install).then(|| {
        format!(
            "install what is missing and try again, on Debian or Ubuntu with: sudo apt-get install {packages}"
        )
    })
}

/// The packages of what is missing, with spaces between.
fn missing_packages(tools: &[Tool]) -> String {
    let missing = tools.iter().filter(|tool| !is_there(tool.program));
    missing.map(|tool| tool.package).collect::<Vec<_>>().join(" ")
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let status = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(std::io::stderr())
        .status()
        .context("starting apt-get")?;
    if status.success() { Ok(()) } else { bail!("apt-get {} failed", arguments.join(" ")) }
}

/// Whether a program can be found; the system's folders count where PATH leaves them out.
pub(crate) fn is_there(program: &str) -> bool {
    find(program).is_some()
}

/// Where a program is.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(Into::into));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Whether this process is root, of the machine or of a user namespace.
pub(crate) fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    ids.split_whitespace().nth(1) == Some("0")
}

/// How this machine lets tests make network namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Namespaces {
    /// As it is: this is root.
    Plainly,
    /// Inside a user namespace, which `unshare` makes.
    AsUser,
    /// Not at all, and why.
    Forbidden(String),
}

/// Tries it.
pub(crate) fn namespaces() -> Namespaces {
    let works = |arguments: &[&str]| {
        Command::new("unshare")
            .args(arguments)
            .arg("true")
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if is_root() && works(&["--net", "--mount"]) {
        return Namespaces::Plainly;
    }
    if works(USER_NAMESPACE) {
        return Namespaces::AsUser;
    }
    let mut why = "network namespaces are refused here: run as root".to_owned();
    for (file, allow) in [
        ("/proc/sys/kernel/unprivileged_userns_clone", "kernel.unprivileged_userns_clone=1"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ] {
        if Path::new(file).exists() {
            why = format!("{why}, or allow user namespaces with: sudo sysctl {allow}");
        }
    }
    Namespaces::Forbidden(why)
}

/// Arguments of `unshare` for a user namespace with network and mounts of its own.
pub(crate) const USER_NAMESPACE: &[&str] = &["--user", "--map-root-user", "--net", "--mount"];
