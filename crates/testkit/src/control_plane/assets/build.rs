//! Builds the programs from `tools/go.mod`. It refuses half a build: all are built in a temporary folder, which is
//! then renamed, and a lock keeps a second builder waiting for the first.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use nix::fcntl::{Flock, FlockArg};

use super::{API_SERVER, Assets, AssetsError, ETCD, KUBECTL, VARIABLE, cache, find, in_folder, tools};

const KUBERNETES: &str = "k8s.io/kubernetes";
/// Name and package, the quick one first.
const PROGRAMS: [(&str, &str); 3] = [
    (ETCD, "go.etcd.io/etcd/server/v3"),
    (API_SERVER, "k8s.io/kubernetes/cmd/kube-apiserver"),
    (KUBECTL, "k8s.io/kubernetes/cmd/kubectl"),
];

/// A build that did not end well.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// What is there cannot be told.
    #[error("{source}")]
    Assets {
        /// Why.
        source: AssetsError,
    },
    /// There is no Go.
    #[error(
        "Go is missing, and kube-apiserver and etcd are built with it: install it from https://go.dev/dl (Debian: \
         golang-go), or let {VARIABLE} name a folder that holds kube-apiserver and etcd"
    )]
    NoGo {
        /// The refusal.
        #[source]
        source: std::io::Error,
    },
    /// A file or folder could not be made.
    #[error("using {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// The refusal.
        #[source]
        source: std::io::Error,
    },
    /// Go said no.
    #[error("building {program} failed:\n{output}")]
    Failed {
        /// The program.
        program: &'static str,
        /// What Go wrote last.
        output: String,
    },
}

/// Finds the programs, or builds them; `say` hears of progress, a line at a time. Minutes the first time.
///
/// # Errors
/// Go is missing or fails; or the variable names a folder that lacks a program.
pub fn build(say: &dyn Fn(&str)) -> Result<Assets, BuildError> {
    match find() {
        Err(AssetsError::NotBuilt) => {}
        other => return other.map_err(|source| BuildError::Assets { source }),
    }
    let folder = cache().map_err(|source| BuildError::Assets { source })?;
    let _lock = lock(&folder.with_extension("lock"), say)?;
    // Whoever held the lock may have built it.
    if let Ok(assets) = in_folder(&folder) {
        return Ok(assets);
    }
    let begun = Instant::now();
    say(
        "building kube-apiserver, etcd and kubectl from tools/go.mod, once for this version: about ten minutes",
    );
    let temporary = folder.with_extension("building");
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| BuildError::File { path, source }
    };
    if temporary.exists() {
        fs::remove_dir_all(&temporary).map_err(failed(&temporary))?;
    }
    fs::create_dir_all(&temporary).map_err(failed(&temporary))?;
    for (program, package) in PROGRAMS {
        build_one(program, package, &temporary, say)?;
    }
    fs::rename(&temporary, &folder).map_err(failed(&folder))?;
    say(&format!("built in {:.0} s: {}", begun.elapsed().as_secs_f64(), folder.display()));
    in_folder(&folder).map_err(|program| BuildError::Assets {
        source: AssetsError::Incomplete { folder: folder.clone(), program },
    })
}

fn lock(path: &Path, say: &dyn Fn(&str)) -> Result<Flock<File>, BuildError> {
    let failed = |source| BuildError::File { path: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    let file = File::create(path).map_err(failed)?;
    let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(held) => return Ok(held),
        Err((file, _)) => file,
    };
    say("another process builds them: waiting for it");
    Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| failed(errno.into()))
}

/// Packages are named on standard error as they are compiled, thousands; one in some hundreds is passed on.
fn build_one(
    program: &'static str,
    package: &str,
    folder: &Path,
    say: &dyn Fn(&str),
) -> Result<(), BuildError> {
    const EVERY: usize = 200;
    let begun = Instant::now();
    say(&format!("{program} …"));
    let mut child = Command::new("go")
        .args(["build", "-v", "-trimpath", "-ldflags", &link_flags()?, "-o"])
        .args([folder.join(program).as_os_str(), package.as_ref()])
        .current_dir(tools())
        .env("GOFLAGS", "-mod=readonly")
        // As in tools/kind-node, so that both find each other's packages in Go's cache.
        .env("CGO_ENABLED", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| BuildError::NoGo { source })?;
    let mut last = Vec::new();
    let lines = child.stderr.take().map(|pipe| BufReader::new(pipe).lines());
    for (number, line) in (1..).zip(lines.into_iter().flatten().map_while(Result::ok)) {
        if number % EVERY == 0 {
            let seconds = begun.elapsed().as_secs_f64();
            say(&format!("{program}: {number} packages, {seconds:.0} s: {line}"));
        }
        last.push(line);
        if last.len() > 40 {
            last.remove(0);
        }
    }
    let failed = |output| BuildError::Failed { program, output };
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(last.join("\n")));
    }
    say(&format!("{program} built in {:.0} s", begun.elapsed().as_secs_f64()));
    Ok(())
}

/// Without these the API server calls itself v0.0.0.
fn link_flags() -> Result<String, BuildError> {
    let path = tools().join("go.mod");
    let text = fs::read_to_string(&path).map_err(|source| BuildError::File { path, source })?;
    let version = version_of(KUBERNETES, &text).unwrap_or_default();
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let variable = "-X k8s.io/component-base/version.git";
    Ok(format!(
        "-s -w {variable}Version={version} {variable}Major={major} {variable}Minor={minor} {variable}TreeState=clean"
    ))
}

fn version_of<'a>(module: &str, text: &'a str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word == "require");
        (words.next() == Some(module)).then(|| words.next()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_stands_in_the_module_file() {
        let text = fs::read_to_string(tools().join("go.mod")).unwrap();
        let version = version_of(KUBERNETES, &text).unwrap();
        assert!(version.starts_with("v1."), "{version}");
        let version = &version[3..];
        assert!(link_flags().unwrap().contains(&format!("gitVersion=v1.{version} ")));
    }
}
