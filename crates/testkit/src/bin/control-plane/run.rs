//! What is known of a control plane that runs in the background: its folder and the process that keeps it. It refuses
//! to take another process for it: the start time is compared besides the id.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use spanwire_testkit::control_plane::assets;

/// A folder of one, running or not.
#[derive(Debug)]
pub(crate) struct Run(PathBuf);

const KEEPER: &str = "keeper";

impl Run {
    pub(crate) fn named(name: &str) -> Self {
        Self(folder().join(name))
    }

    /// Names of all that have a folder.
    pub(crate) fn all() -> Vec<String> {
        let entries = fs::read_dir(folder()).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("keeper.log")
    }

    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.0.join(format!("{user}.kubeconfig"))
    }

    /// Notes this process as the keeper; with that it counts as ready.
    pub(crate) fn note_keeper(&self) -> io::Result<()> {
        let pid = std::process::id();
        let start = start_time(pid).ok_or_else(|| io::Error::other("this process has no start time"))?;
        let temporary = self.0.join("keeper.new");
        fs::write(&temporary, format!("{pid} {start}\n"))?;
        fs::rename(temporary, self.0.join(KEEPER))
    }

    /// The keeper, if it is the process that it was.
    pub(crate) fn keeper(&self) -> Option<u32> {
        let text = fs::read_to_string(self.0.join(KEEPER)).ok()?;
        let (pid, start) = text.trim().split_once(' ')?;
        let pid = pid.parse().ok()?;
        (start_time(pid)? == start).then_some(pid)
    }
}

fn folder() -> PathBuf {
    assets::home().join("control-planes")
}

/// In clock ticks since boot; `None`: there is no such process, or it is a zombie.
fn start_time(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses that may hold anything.
    let fields: Vec<&str> = text.rsplit(')').next()?.split_whitespace().collect();
    (fields.first() != Some(&"Z")).then(|| fields.get(19).map(|field| (*field).to_owned())).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_that_was_noted_is_the_keeper() {
        let folder = tempfile::tempdir().unwrap();
        let run = Run(folder.path().to_owned());
        assert_eq!(run.keeper(), None);
        run.note_keeper().unwrap();
        assert_eq!(run.keeper(), Some(std::process::id()));
        // A process that got the id of a keeper that has ended.
        fs::write(folder.path().join(KEEPER), format!("{} 1\n", std::process::id())).unwrap();
        assert_eq!(run.keeper(), None);
    }
}
