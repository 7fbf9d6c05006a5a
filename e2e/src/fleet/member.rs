//! One gateway: a host of the lab with a subnet behind it, a dataplane and a worker. It refuses to know the network.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use ipnet::IpNet;
use nix::sys::signal::Signal;
use spanwire_testkit::{
    lab::{Host, Lab},
    process::{Process, Program},
};

use super::control::Control;

/// A gateway with its host.
#[derive(Debug)]
pub struct Member {
    worker: Option<Process>,
    dataplane: Option<Process>,
    host: Host,
    /// Where its traffic begins and ends, if not on the host itself.
    pod: Option<Host>,
    subnet: IpNet,
    folder: PathBuf,
}

impl Member {
    /// Makes the host: `10.7.<number>.0/24` lies behind it and its first address is on the host itself.
    pub(crate) fn new(lab: &mut Lab, name: &str, number: u8, folder: &Path, firewall: bool) -> Result<Self> {
        let host = lab.host(name).with_context(|| format!("making the host {name}"))?;
        let address: IpNet = format!("10.7.{number}.1/24").parse().context("a subnet")?;
        host.add_address("lo", address).with_context(|| format!("giving {name} its subnet"))?;
        if firewall {
            host.cni_firewall().with_context(|| format!("giving {name} its firewall"))?;
        }
        let folder = folder.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(Self { worker: None, dataplane: None, host, pod: None, subnet: address.trunc(), folder })
    }

    /// A node whose cluster runs the product, with a pod on it.
    pub(crate) fn of_cluster(host: Host, pod: Host, subnet: IpNet, folder: &Path) -> Self {
        let folder = folder.join(host.name());
        Self { worker: None, dataplane: None, host, pod: Some(pod), subnet, folder }
    }

    /// Starts the dataplane, then the worker.
    pub(crate) fn start(&mut self, binary: &Path, control: &Control) -> Result<()> {
        let socket = self.folder.join("dataplane.sock");
        let arguments = vec!["dataplane".into(), "--socket".into(), socket.clone().into()];
        self.dataplane = Some(self.process("dataplane", binary, arguments, Vec::new())?);
        let places = control.of_worker(self.name(), &self.folder)?;
        let own = vec![
            "--gateway".into(),
            self.name().into(),
            "--dataplane-socket".into(),
            socket.into(),
            "--run-dir".into(),
            self.folder.join("run").into(),
        ];
        let arguments = std::iter::once("worker".into()).chain(places.arguments).chain(own).collect();
        self.worker = Some(self.process("worker", binary, arguments, places.variables)?);
        Ok(())
    }

    fn process(
        &self,
        role: &str,
        binary: &Path,
        arguments: Vec<std::ffi::OsString>,
        variables: Vec<(String, String)>,
    ) -> Result<Process> {
        let name = format!("{role} of {}", self.name());
        Process::start(Program {
            name: name.clone(),
            path: binary.to_path_buf(),
            arguments,
            variables,
            host: Some(self.host.clone()),
            log: self.folder.join(format!("{role}.log")),
        })
        .with_context(|| format!("starting the {name}"))
    }

    /// Name of the gateway and of its host.
    pub fn name(&self) -> &str {
        self.host.name()
    }

    /// Its host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The pod between which and others traffic is measured; `None`: it is measured between hosts.
    pub fn pod(&self) -> Option<&Host> {
        self.pod.as_ref()
    }

    /// The prefix behind it.
    pub fn subnet(&self) -> IpNet {
        self.subnet
    }

    /// Its dataplane, once started.
    pub fn dataplane(&self) -> Option<&Process> {
        self.dataplane.as_ref()
    }

    /// The log of its worker, once started.
    pub(crate) fn worker_log(&self) -> Option<&Path> {
        self.worker.as_ref().map(Process::log)
    }

    /// Its processes that were started.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.dataplane.iter().chain(&self.worker)
    }

    /// Kills the worker as a crash would.
    pub(crate) fn kill_worker(&mut self) -> Result<()> {
        let name = self.name().to_owned();
        if let Some(worker) = &mut self.worker {
            worker.kill().with_context(|| format!("killing the worker of {name}"))?;
        }
        Ok(())
    }

    /// Sends the worker a signal.
    pub(crate) fn signal_worker(&self, signal: Signal) -> Result<()> {
        let worker = self.worker.as_ref().with_context(|| format!("{} has no worker", self.name()))?;
        worker.signal(signal).with_context(|| format!("{signal} to the worker of {}", self.name()))
    }

    /// Starts the worker again.
    pub(crate) fn restart_worker(&mut self) -> Result<()> {
        let name = self.name().to_owned();
        if let Some(worker) = &mut self.worker {
            worker.restart().with_context(|| format!("starting the worker of {name} again"))?;
        }
        Ok(())
    }
}
