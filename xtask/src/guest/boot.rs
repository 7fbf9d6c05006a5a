//! Boots a guest and listens to it. It refuses to wait for one that is stuck, and to take silence for success.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

const MEMORY: &str = "3072";
const PROCESSORS: &str = "2";
/// The last line of a run.
const LAST: &str = "guest ended with ";

/// How a run in a guest ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The exit code of its script.
    pub(crate) code: i32,
}

/// A guest that is ended with this.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How long a guest with the hardware's help may say nothing; it begins within seconds.
const SILENCE: Duration = Duration::from_secs(30);

/// Boots with the hardware's help where there is some. A guest that says nothing at all with it could not begin, or hangs:
/// it is booted again under emulation.
pub(super) fn boot(
    kernel: &Path,
    image: &Path,
    limit: Duration,
    show: &mut dyn FnMut(&str),
) -> Result<Ended> {
    if fs::File::options().read(true).write(true).open("/dev/kvm").is_ok() {
        let mut began = false;
        let ended = attempt("kvm", (kernel, image), (SILENCE, limit), &mut |line| {
            began = true;
            show(line);
        });
        if ended.is_ok() || began {
            return ended;
        }
        eprintln!("This machine's /dev/kvm does not carry a guest: emulating.");
    }
    attempt("tcg,thread=multi", (kernel, image), (limit, limit), show)
}

/// Ends it after the first limit if it has said nothing until then, and after the second in any case.
fn attempt(
    accelerator: &str,
    (kernel, image): (&Path, &Path),
    (silence, limit): (Duration, Duration),
    show: &mut dyn FnMut(&str),
) -> Result<Ended> {
    let console = image.with_extension("console");
    let mut command = command(accelerator, kernel, image, &console);
    let mut guest = Guest(command.spawn().context("starting qemu-system-x86_64")?);
    let output = guest.0.stdout.take().context("the guest has no output")?;
    let (lines, heard) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    let (mut deadline, end) = (Instant::now() + silence, Instant::now() + limit);
    loop {
        match heard.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                deadline = end;
                let line = line.trim_end();
                if let Some(code) = line.strip_prefix(LAST) {
                    return Ok(Ended { code: code.parse().context("reading how the guest ended")? });
                }
                show(line);
            }
            Err(RecvTimeoutError::Timeout) => {
                bail!(
                    "the guest said nothing for {silence:?} or did not end within {limit:?}; its console:\n{}",
                    tail(&console)
                );
            }
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the guest went without saying how the run ended; its console:\n{}", tail(&console));
            }
        }
    }
}

fn command(accelerator: &str, kernel: &Path, image: &Path, console: &Path) -> Command {
    let mut command = Command::new("qemu-system-x86_64");
    command
        .args(["-accel", accelerator, "-cpu", "max", "-smp", PROCESSORS, "-m", MEMORY])
        .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none"])
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(image)
        .args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off rdinit=/init"])
        .arg("-serial")
        .arg(format!("file:{}", console.display()))
        .args(["-serial", "stdio"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

fn tail(console: &Path) -> String {
    let text = fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}
