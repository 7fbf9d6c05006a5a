//! A virtual machine that has what this one may lack: a kernel with WireGuard. It runs programs of this workspace from a
//! file system in memory. It refuses the network: nothing goes in or out but the console.

mod boot;
mod image;
mod kernel;

use std::{path::PathBuf, time::Duration};

use anyhow::Result;

pub(crate) use boot::Ended;

use crate::tools::{self, Tool};

const TOOLS: &[Tool] = &[
    Tool::new("qemu-system-x86_64", "qemu-system-x86", "a guest whose kernel has WireGuard"),
    Tool::new("busybox", "busybox-static", "the first process of that guest"),
    Tool::new("cpio", "cpio", "the file system of that guest"),
];

/// Why there can be no guest here. `None`: there can, or what is missing can be installed.
pub(crate) fn why_not() -> Option<String> {
    tools::why_not(TOOLS)
}

/// What runs in a guest, and for how long at most.
pub(crate) struct Run {
    /// Programs, by name or path; they stand at the same places inside, with what they are linked with.
    pub(crate) programs: Vec<PathBuf>,
    /// A shell script; its exit code is the guest's.
    pub(crate) script: String,
    /// After this time the guest is ended.
    pub(crate) limit: Duration,
}

/// Boots a guest for one run and shows what it prints as it comes.
///
/// # Errors
/// Something that is needed is missing, or the guest did not come to its end; the console is shown then.
pub(crate) fn run(run: &Run, show: &mut dyn FnMut(&str)) -> Result<Ended> {
    tools::ensure(TOOLS)?;
    let kernel = kernel::provide()?;
    let image = image::build(run, &kernel)?;
    boot::boot(&kernel.image, image.path(), run.limit, show)
}
