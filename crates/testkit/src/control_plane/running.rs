//! The two processes of a control plane: started, stopped, started again, and when they are ready. It refuses to call
//! one ready that does not answer.

use std::{
    fs, io,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use kube::{Api, api::ListParams};

use super::{
    ControlPlaneError,
    access::{ADMIN, Access},
    assets::Assets,
    programs,
};
use crate::process::{Process, ProcessError};

const ETCD: &str = "etcd";
const API_SERVER: &str = "kube-apiserver";
/// Generous: the test run of a loaded machine may start many at once.
const LIMIT: Duration = Duration::from_secs(90);
const ANSWER: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Running {
    folder: PathBuf,
    etcd: Process,
    api_server: Process,
}

impl Running {
    /// Starts both. `access` gets the authority that the API server made.
    pub(super) fn start(
        assets: &Assets,
        folder: &Path,
        access: &mut Access,
    ) -> Result<Self, ControlPlaneError> {
        let mut etcd =
            Process::start(programs::etcd(assets, folder)).map_err(|source| failed(ETCD, source))?;
        wait_for_etcd(&mut etcd, folder)?;
        let program = programs::api_server(assets, folder, access.port);
        // A second attempt must not judge by what the first one wrote.
        let _ = fs::remove_file(&program.log);
        let mut api_server = Process::start(program).map_err(|source| failed(API_SERVER, source))?;
        let certificate = programs::certificate(folder);
        wait(&mut api_server, API_SERVER, access.port, || {
            // It may be read while it is written: what was read counts when the server is trusted by it.
            access.ca = fs::read_to_string(&certificate).unwrap_or_default();
            !access.ca.is_empty() && blocking(is_ready(access))
        })?;
        Ok(Self { folder: folder.to_owned(), etcd, api_server })
    }

    /// Asked nicely it would wait for its clients, up to a minute.
    pub(super) fn stop_api_server(&mut self) -> Result<(), ControlPlaneError> {
        self.api_server.kill().map(drop).map_err(|source| failed(API_SERVER, source))
    }

    pub(super) fn start_api_server(&mut self, access: &Access) -> Result<(), ControlPlaneError> {
        self.api_server.restart().map_err(|source| failed(API_SERVER, source))?;
        wait_for_api_server(&mut self.api_server, access)
    }

    /// See above; nothing is lost, as the kernel still holds what was written.
    pub(super) fn stop_etcd(&mut self) -> Result<(), ControlPlaneError> {
        self.etcd.kill().map(drop).map_err(|source| failed(ETCD, source))
    }

    pub(super) fn start_etcd(&mut self) -> Result<(), ControlPlaneError> {
        self.etcd.restart().map_err(|source| failed(ETCD, source))?;
        wait_for_etcd(&mut self.etcd, &self.folder)
    }

    /// Works on the data of etcd while nobody has it open.
    pub(super) fn while_stopped(
        &mut self,
        access: &Access,
        work: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), ControlPlaneError> {
        self.stop_api_server()?;
        self.stop_etcd()?;
        let data = programs::data(&self.folder);
        work(&data).map_err(|source| ControlPlaneError::File { path: data, source })?;
        self.start_etcd()?;
        self.start_api_server(access)
    }

    /// For a program that ends without dropping it.
    pub(super) fn kill(&mut self) {
        // Both fail only where they are gone already.
        let _ = self.api_server.kill();
        let _ = self.etcd.kill();
    }
}

fn failed(program: &'static str, source: ProcessError) -> ControlPlaneError {
    ControlPlaneError::Process { program, source }
}

fn wait_for_etcd(etcd: &mut Process, folder: &Path) -> Result<(), ControlPlaneError> {
    let socket = programs::etcd_socket(folder);
    wait(etcd, ETCD, 0, || UnixStream::connect(&socket).is_ok())
}

/// Ready is what the server says of itself, and that it reads what etcd holds.
fn wait_for_api_server(process: &mut Process, access: &Access) -> Result<(), ControlPlaneError> {
    wait(process, API_SERVER, access.port, || blocking(is_ready(access)))
}

/// A question that a server hears while it starts may never be answered.
async fn is_ready(access: &Access) -> bool {
    tokio::time::timeout(ANSWER, answers(access)).await.unwrap_or(false)
}

async fn answers(access: &Access) -> bool {
    let Ok(client) = access.client(ADMIN).await else { return false };
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else { return false };
    let ready = client.request_text(request).await;
    let roles: Api<k8s_openapi::api::rbac::v1::ClusterRole> = Api::all(client);
    ready.is_ok() && roles.list(&ListParams::default().limit(1)).await.is_ok()
}

fn wait(
    process: &mut Process,
    program: &'static str,
    port: u16,
    mut come_true: impl FnMut() -> bool,
) -> Result<(), ControlPlaneError> {
    let end = Instant::now() + LIMIT;
    loop {
        if come_true() {
            return Ok(());
        }
        let what = match process.status().map_err(|source| failed(program, source))? {
            Some(status) => format!("ended ({status})"),
            None if Instant::now() >= end => format!("was not ready within {LIMIT:?}"),
            None => {
                thread::sleep(LOOK_EVERY);
                continue;
            }
        };
        let log = last_lines(process.log());
        if log.contains("address already in use") {
            return Err(ControlPlaneError::PortTaken { port });
        }
        return Err(ControlPlaneError::NotReady { program, what, log });
    }
}

fn last_lines(path: &Path) -> String {
    const KEPT: usize = 20;
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(KEPT)..].join("\n")
}

/// Waits for a future from everywhere: a thread of its own has no runtime that could forbid it.
pub(super) fn blocking<T: Send>(future: impl Future<Output = T> + Send) -> T {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime needs a few descriptors, which a test has").block_on(future)
    };
    thread::scope(|scope| scope.spawn(run).join()).expect("nothing above panics")
}
