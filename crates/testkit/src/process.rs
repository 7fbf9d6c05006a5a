//! Programs under test: started inside a host, killed, stopped and started again, their memory and time read. It
//! refuses to outlive its maker: the kernel kills the children when this program ends.

mod error;
mod spawner;
mod usage;

use std::{
    ffi::OsString,
    fs::OpenOptions,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

pub use error::ProcessError;
pub use usage::Usage;

use crate::lab::Host;

/// What to start and where.
#[derive(Debug, Clone)]
pub struct Program {
    /// Name in messages.
    pub name: String,
    /// The file to run.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables beside those of this program.
    pub variables: Vec<(String, String)>,
    /// The host; `None`: where this program is.
    pub host: Option<Host>,
    /// The file to which both outputs are appended.
    pub log: PathBuf,
}

/// A running child. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    program: Program,
    child: Child,
}

impl Process {
    /// Starts a program.
    ///
    /// # Errors
    /// The log could not be opened, or the program could not be started.
    pub fn start(program: Program) -> Result<Self, ProcessError> {
        let child = spawn(&program)?;
        Ok(Self { program, child })
    }

    /// What was started.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it as a crash or the kernel would, and waits until it is gone.
    ///
    /// # Errors
    /// It could not be waited for.
    pub fn kill(&mut self) -> Result<ExitStatus, ProcessError> {
        let failed = |source| ProcessError::Wait { name: self.program.name.clone(), source };
        self.child.kill().map_err(failed)?;
        self.child.wait().map_err(failed)
    }

    /// Asks it to end and waits for it.
    ///
    /// # Errors
    /// It did not end within `limit`; then it is killed.
    pub fn terminate(&mut self, limit: Duration) -> Result<ExitStatus, ProcessError> {
        if let Some(status) = self.status()? {
            return Ok(status);
        }
        self.signal(Signal::SIGTERM)?;
        let Some(status) = self.wait(limit)? else {
            self.kill()?;
            return Err(ProcessError::Stubborn { name: self.program.name.clone(), limit });
        };
        Ok(status)
    }

    /// Waits until it ends by itself; `None`: `limit` was over first.
    ///
    /// # Errors
    /// It could not be waited for.
    pub fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>, ProcessError> {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.status()? {
                return Ok(Some(status));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || !spawner::child_ended(self.pid(), left) {
                return self.status();
            }
        }
    }

    /// How it ended; `None`: it runs.
    ///
    /// # Errors
    /// It could not be asked for.
    pub fn status(&mut self) -> Result<Option<ExitStatus>, ProcessError> {
        let failed = |source| ProcessError::Wait { name: self.program.name.clone(), source };
        self.child.try_wait().map_err(failed)
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        !spawner::child_ended(self.pid(), Duration::ZERO)
    }

    /// Starts the same program again; the old one is killed if it still runs.
    ///
    /// # Errors
    /// Like [`Process::start`].
    pub fn restart(&mut self) -> Result<(), ProcessError> {
        if self.status()?.is_none() {
            self.kill()?;
        }
        self.child = spawn(&self.program)?;
        Ok(())
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// It is gone.
    pub fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        let pid = i32::try_from(self.pid()).map_err(|_| ProcessError::Signal {
            name: self.program.name.clone(),
            source: nix::Error::ESRCH,
        })?;
        kill(Pid::from_raw(pid), signal)
            .map_err(|source| ProcessError::Signal { name: self.program.name.clone(), source })
    }

    /// Its memory and processor time.
    ///
    /// # Errors
    /// It is gone.
    pub fn usage(&self) -> Result<Usage, ProcessError> {
        Usage::of(self.pid())
            .map_err(|source| ProcessError::Usage { name: self.program.name.clone(), source })
    }

    /// Where it writes.
    pub fn log(&self) -> &Path {
        &self.program.log
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only where it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: &Program) -> Result<Child, ProcessError> {
    let opened = OpenOptions::new().create(true).append(true).open(&program.log);
    let log = opened.and_then(|log| Ok((log.try_clone()?, log)));
    let (out, err) = log.map_err(|source| ProcessError::Log { path: program.log.clone(), source })?;
    let mut command = Command::new(&program.path);
    command.args(&program.arguments).envs(program.variables.iter().cloned());
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    spawner::spawn(command, program.host.as_ref().map(|host| host.namespace().clone())).map_err(|source| {
        ProcessError::Start { name: program.name.clone(), path: program.path.clone(), source }
    })
}
