//! A tunnel between two hosts by one of the carriers. It refuses differences: key, port, MTU and addresses are the same
//! for all.

use std::{
    ffi::OsString,
    fmt,
    io::{BufRead as _, BufReader, Write as _},
    net::IpAddr,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use ipnet::IpNet;
use spanwire_testkit::{
    lab::Host,
    process::{Process, Program},
};
use tempfile::TempDir;

use crate::interrupt;

// A name in the form that our dataplane gives to devices of a mesh; it takes no other.
const DEVICE: &str = "swm-benchbench";
const MTU: u32 = 1420;
const PORT: u16 = 51820;
const START_LIMIT: Duration = Duration::from_secs(10);

/// What carries the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carrier {
    /// The bare path between the two hosts.
    Bare,
    /// `spanwire dataplane`, at this path.
    Spanwire(PathBuf),
    /// wireguard-go, at this path.
    WireguardGo(PathBuf),
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Carrier::Bare => "veth alone",
            Carrier::Spanwire(_) => "spanwire",
            Carrier::WireguardGo(_) => "wireguard-go",
        })
    }
}

/// A tunnel that stands as long as this lives.
#[derive(Debug)]
pub(crate) struct Tunnel {
    addresses: [IpAddr; 2],
    processes: Vec<Process>,
    _folder: TempDir,
}

impl Tunnel {
    /// The address of one end.
    pub(crate) fn address(&self, end: usize) -> IpAddr {
        self.addresses[end]
    }

    /// Processor time that both ends have taken so far.
    pub(crate) fn busy(&self) -> Result<Duration> {
        let times = self.processes.iter().map(|process| Ok(process.usage()?.processor));
        times.sum::<Result<Duration>>().context("the processor time of a tunnel")
    }
}

impl Carrier {
    /// Joins the two hosts.
    pub(crate) fn connect(&self, hosts: &[Host; 2]) -> Result<Tunnel> {
        let folder = tempfile::tempdir().context("making a directory")?;
        let mut processes = Vec::new();
        let addresses = match self {
            Carrier::Bare => [hosts[0].address(), hosts[1].address()],
            Carrier::Spanwire(_) | Carrier::WireguardGo(_) => {
                for host in hosts {
                    processes.push(self.start(host, folder.path())?);
                }
                configure(hosts, folder.path())?
            }
        };
        Ok(Tunnel { addresses, processes, _folder: folder })
    }

    /// Starts the program of one end and waits until its device is there.
    fn start(&self, host: &Host, folder: &Path) -> Result<Process> {
        let socket = folder.join(format!("{}.sock", host.name()));
        let (path, arguments): (_, Vec<OsString>) = match self {
            Carrier::Bare => bail!("the bare path has no program"),
            Carrier::Spanwire(path) => {
                (path, vec!["dataplane".into(), "--socket".into(), socket.clone().into()])
            }
            Carrier::WireguardGo(path) => (path, vec!["-f".into(), DEVICE.into()]),
        };
        let process = Process::start(Program {
            name: format!("{self} on {}", host.name()),
            path: path.clone(),
            arguments,
            variables: vec![("WG_PROCESS_FOREGROUND".to_owned(), "1".to_owned())],
            host: Some(host.clone()),
            log: folder.join(format!("{}.log", host.name())),
        })?;
        let up = interrupt::wait_for(START_LIMIT, || {
            if matches!(self, Carrier::Spanwire(_)) && !create(&socket)? {
                return Ok(None);
            }
            Ok(host.output("wg", &["show", DEVICE], "").is_ok().then_some(()))
        })?;
        up.with_context(|| {
            format!("{self} did not make a device: {}", crate::fleet::tail(process.log(), 5))
        })?;
        Ok(process)
    }
}

/// Asks a dataplane for the device; false: it does not listen yet.
fn create(socket: &Path) -> Result<bool> {
    let Ok(mut stream) = UnixStream::connect(socket) else { return Ok(false) };
    let alias = "spanwire/bench/mesh/-";
    let request =
        format!("{{\"op\":\"create\",\"name\":\"{DEVICE}\",\"alias\":\"{alias}\",\"mtu\":{MTU}}}\n");
    stream.write_all(request.as_bytes()).context("asking the dataplane")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).context("the dataplane's answer")?;
    if answer.contains("\"done\"") { Ok(true) } else { bail!("the dataplane refused: {}", answer.trim()) }
}

/// Keys, peers, addresses.
fn configure(hosts: &[Host; 2], folder: &Path) -> Result<[IpAddr; 2]> {
    let mut public = Vec::new();
    for host in hosts {
        let private = host.output("wg", &["genkey"], "")?;
        std::fs::write(folder.join(host.name()), &private).context("writing a key")?;
        public.push(host.output("wg", &["pubkey"], &private)?.trim().to_owned());
    }
    let addresses: [IpNet; 2] =
        ["10.99.0.1/24".parse().context("an address")?, "10.99.0.2/24".parse().context("an address")?];
    for (own, other) in [(0, 1), (1, 0)] {
        let key = folder.join(hosts[own].name()).display().to_string();
        let endpoint = format!("{}:{PORT}", hosts[other].address());
        let allowed = format!("{}/32", addresses[other].addr());
        let port = PORT.to_string();
        let arguments = [
            "set",
            DEVICE,
            "private-key",
            &key,
            "listen-port",
            &port,
            "peer",
            &public[other],
            "allowed-ips",
            &allowed,
            "endpoint",
            &endpoint,
        ];
        hosts[own].output("wg", &arguments, "")?;
        hosts[own].set_mtu(DEVICE, MTU)?;
        hosts[own].add_address(DEVICE, addresses[own])?;
        hosts[own].set_up(DEVICE)?;
    }
    Ok(addresses.map(|address| address.addr()))
}
