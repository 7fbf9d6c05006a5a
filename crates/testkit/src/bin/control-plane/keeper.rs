//! The process that keeps a control plane in the background, and those that start and end it. It refuses to end what
//! it did not start.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{SigSet, Signal, kill},
    unistd::Pid,
};
use spanwire_testkit::control_plane::{ADMIN, ControlPlane, Options, assets};

use crate::{Up, run::Run};

const READY_WITHIN: Duration = Duration::from_secs(120);
const GONE_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) fn up(args: &Up) -> Result<(), String> {
    let run = Run::named(&args.named.name);
    if run.keeper().is_none() {
        let assets = assets::build(&|line| eprintln!("{line}")).map_err(|error| error.to_string())?;
        eprintln!("starting {} …", assets.api_server.display());
        start(&run, args)?;
    } else {
        eprintln!("{} runs already", args.named.name);
    }
    explain(&run, args)
}

fn start(run: &Run, args: &Up) -> Result<(), String> {
    let begun = Instant::now();
    clear(run.folder())?;
    fs::create_dir_all(run.folder())
        .map_err(|error| format!("making {}: {error}", run.folder().display()))?;
    let mut keeper = spawn(run, args).map_err(|error| format!("starting the keeper: {error}"))?;
    while run.keeper().is_none() {
        let ended = keeper.try_wait().map_err(|error| format!("looking at the keeper: {error}"))?;
        if ended.is_some() || begun.elapsed() > READY_WITHIN {
            let _ = keeper.kill();
            let log = fs::read_to_string(run.log()).unwrap_or_default();
            return Err(format!("it did not become ready:\n{log}"));
        }
        thread::sleep(LOOK_EVERY);
    }
    eprintln!("ready after {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// In a session of its own, so that closing the terminal does not end it.
fn spawn(run: &Run, args: &Up) -> std::io::Result<Child> {
    let log = File::create(run.log())?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("keep").args(["--name", &args.named.name]);
    for user in &args.users {
        command.args(["--user", user]);
    }
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // SAFETY: one system call between fork and exec; nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(Into::into)) };
    command.spawn()
}

fn explain(run: &Run, args: &Up) -> Result<(), String> {
    println!("export KUBECONFIG={}", run.kubeconfig(ADMIN).display());
    println!("{} get spanwire", kubectl()?);
    println!("context: {}", args.named.name);
    println!("requests: {}", run.folder().join("audit.log").display());
    for user in &args.users {
        println!("kubeconfig of {user}: {}", run.kubeconfig(user).display());
    }
    let named = format!("--name {}", args.named.name);
    println!("end it with: cargo xtask control-plane down {named}");
    Ok(())
}

/// The user's own where there is one.
fn kubectl() -> Result<String, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join("kubectl").is_file()) {
        return Ok("kubectl".to_owned());
    }
    let built = assets::find().map_err(|error| error.to_string())?.kubectl;
    Ok(built.map_or_else(|| "kubectl".to_owned(), |path| path.display().to_string()))
}

/// Starts one and holds it until SIGTERM or SIGINT.
pub(crate) fn keep(args: &Up) -> Result<(), String> {
    let run = Run::named(&args.named.name);
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    // Before the first thread, so that all have it.
    signals.thread_block().map_err(|error| format!("blocking signals: {error}"))?;
    let users: Vec<&str> = args.users.iter().map(String::as_str).collect();
    let mut options = Options::named(&args.named.name).users(&users);
    options.folder = Some(run.folder().to_owned());
    let plane = ControlPlane::start(options).map_err(|error| error.to_string())?;
    for user in users.into_iter().chain([ADMIN]) {
        plane.kubeconfig_file(user).map_err(|error| error.to_string())?;
    }
    run.note_keeper().map_err(|error| format!("noting the keeper: {error}"))?;
    signals.wait().map_err(|error| format!("waiting for a signal: {error}"))?;
    drop(plane);
    clear(run.folder())
}

pub(crate) fn kubeconfig(name: &str) -> Result<(), String> {
    let run = Run::named(name);
    if run.keeper().is_none() {
        return Err(format!("{name} does not run: cargo xtask control-plane up --name {name}"));
    }
    println!("{}", run.kubeconfig(ADMIN).display());
    Ok(())
}

pub(crate) fn down_all() -> Result<(), String> {
    let names = Run::all();
    if names.is_empty() {
        eprintln!("none runs");
    }
    names.iter().try_for_each(|name| down(name))
}

pub(crate) fn down(name: &str) -> Result<(), String> {
    let run = Run::named(name);
    let Some(pid) = run.keeper() else {
        eprintln!("{name} does not run");
        return clear(run.folder());
    };
    let raw = i32::try_from(pid).map_err(|error| format!("{pid} is no process id: {error}"))?;
    kill(Pid::from_raw(raw), Signal::SIGTERM).map_err(|error| format!("ending {pid}: {error}"))?;
    let begun = Instant::now();
    while run.keeper().is_some() {
        if begun.elapsed() > GONE_WITHIN {
            return Err(format!("the keeper {pid} of {name} does not end"));
        }
        thread::sleep(LOOK_EVERY);
    }
    eprintln!("{name} ended");
    clear(run.folder())
}

fn clear(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("removing {}: {error}", folder.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
