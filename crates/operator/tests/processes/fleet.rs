//! A hub and a spoke in a lab, a directory store, and the program on them. It refuses to outlive a test.

use std::{
    collections::BTreeMap,
    fs,
    net::IpAddr,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use spanwire_testkit::{
    lab::{Host, Lab},
    process::{Process, Program},
};

/// The program under test.
pub(crate) const SPANWIRE: &str = env!("CARGO_BIN_EXE_spanwire");
/// Where the dataplane of each host tells its metrics and health.
pub(crate) const OF_DATAPLANE: &str = "127.0.0.1:9181";
/// How long anything may take here.
pub(crate) const LIMIT: Duration = Duration::from_secs(40);

/// Hosts, store and processes. Dropping it ends and removes all.
pub(crate) struct Fleet {
    pub(crate) members: Vec<Member>,
    folder: tempfile::TempDir,
    _lab: Lab,
}

/// One gateway's host.
pub(crate) struct Member {
    pub(crate) host: Host,
    pub(crate) folder: PathBuf,
    control: PathBuf,
    inside: IpAddr,
    pub(crate) dataplane: Process,
}

/// What a run of the program came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) verdict: serde_json::Value,
    pub(crate) log: String,
}

impl Run {
    pub(crate) fn writes(&self) -> Vec<String> {
        let writes = self.verdict["writes"].as_array().cloned().unwrap_or_default();
        writes.iter().map(ToString::to_string).collect()
    }
}

/// Why there is no lab here, said on stderr; root must have one.
pub(crate) fn cannot() -> bool {
    let Some(why) = Lab::why_not() else { return false };
    assert!(!nix::unistd::geteuid().is_root(), "no lab as root: {why}");
    eprintln!("skipped, because no network lab can be made here: {why}");
    true
}

impl Fleet {
    /// Hosts `hub-a` and `spoke-1` with their dataplanes; the network `demo` joins them.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut lab = Lab::new().unwrap();
        let control = folder.path().join("control");
        let mut members = Vec::new();
        for (name, number) in [("hub-a", 1), ("spoke-1", 2)] {
            let host = lab.host(name).unwrap();
            let inside: ipnet::IpNet = format!("10.71.{number}.1/24").parse().unwrap();
            host.add_address("lo", inside).unwrap();
            let text = format!(
                "apiVersion: spanwire.dev/v1alpha1\nkind: Gateway\nmetadata:\n  name: {name}\nspec:\n  subnets: \
                 [10.71.{number}.0/24]\n"
            );
            write(&control.join(format!("gateways/{name}.yaml")), &text);
            members.push(Member::new(host, folder.path().join(name), control.clone(), inside.addr()));
        }
        let fleet = Self { members, folder, _lab: lab };
        fleet.declare("hub-spoke\n  hub: hub-a");
        fleet
    }

    /// Writes the network with this topology.
    pub(crate) fn declare(&self, topology: &str) {
        let text = format!(
            "apiVersion: spanwire.dev/v1alpha1\nkind: GatewayNetwork\nmetadata:\n  name: demo\nspec:\n  topology: \
             {topology}\n  members: [hub-a, spoke-1]\n  cidr: 100.80.0.0/24\n"
        );
        write(&self.control().join("gatewaynetworks/demo.yaml"), &text);
    }

    pub(crate) fn control(&self) -> PathBuf {
        self.folder.path().join("control")
    }

    /// A controller and all workers that go on, once the spoke reaches the hub.
    pub(crate) fn start_all(&self) -> Vec<Process> {
        let workers = self.members.iter().map(Member::start);
        let running = workers.chain([self.start_controller()]).collect();
        wait_until("the spoke reaches the hub", || self.members[1].reaches(&self.members[0]));
        running
    }

    /// `controller --once`.
    pub(crate) fn controller(&self) -> Run {
        let control = format!("dir:{}", self.control().display());
        let arguments = ["controller", "--once", "--control", &control];
        run(None, &self.folder.path().join("controller"), &arguments, &[])
    }

    /// A controller that goes on.
    pub(crate) fn start_controller(&self) -> Process {
        self.start_controller_with(&[])
    }

    /// A controller that goes on, with more arguments.
    pub(crate) fn start_controller_with(&self, more: &[&str]) -> Process {
        let control = format!("dir:{}", self.control().display());
        let arguments =
            ["controller", "--control", &control].into_iter().chain(more.iter().copied()).map(Into::into);
        start(None, &self.folder.path().join("controller.log"), arguments.collect(), &[])
    }

    /// Runs everything once, over and over, until nothing is left to do anywhere.
    pub(crate) fn converge(&self) {
        let end = Instant::now() + LIMIT;
        loop {
            let mut runs = vec![self.controller()];
            runs.extend(self.members.iter().map(|member| member.once()));
            if runs.iter().all(|run| run.code == 0 && run.writes().is_empty()) {
                return;
            }
            let more = || self.members.iter().map(Member::state).collect::<Vec<_>>().join("\n");
            assert!(Instant::now() < end, "still not done: {runs:#?}\n{}", more());
        }
    }

    /// Every file of the store and of the records, with what would change if it were written.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, (u64, i64, i64)> {
        let mut found = BTreeMap::new();
        let locals = self.members.iter().map(|member| member.folder.join("local"));
        for root in locals.chain([self.control()]) {
            list(&root, &mut found);
        }
        found
    }
}

impl Member {
    fn new(host: Host, folder: PathBuf, control: PathBuf, inside: IpAddr) -> Self {
        fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("dataplane.sock");
        let arguments = ["dataplane".into(), "--socket".into(), socket.into()];
        let listen = ["--metrics-listen".into(), OF_DATAPLANE.into()];
        let arguments = arguments.into_iter().chain(listen).collect();
        let dataplane = start(Some(&host), &folder.join("dataplane.log"), arguments, &[]);
        Self { host, folder, control, inside, dataplane }
    }

    /// The command line of this worker.
    pub(crate) fn arguments(&self, more: &[&str]) -> Vec<String> {
        let place = |path: &Path| format!("dir:{}", path.display());
        let mut arguments = vec!["worker".to_owned(), "--gateway".to_owned(), self.host.name().to_owned()];
        arguments.extend(["--control".to_owned(), place(&self.control)]);
        arguments.extend(["--local".to_owned(), place(&self.folder.join("local"))]);
        arguments.extend(["--run-dir".to_owned(), self.folder.join("run").display().to_string()]);
        let socket = self.folder.join("dataplane.sock").display().to_string();
        arguments.extend(["--dataplane-socket".to_owned(), socket]);
        arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        arguments
    }

    /// `worker` with more arguments, until it ends.
    pub(crate) fn worker(&self, more: &[&str]) -> Run {
        let arguments = self.arguments(more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run(Some(&self.host), &self.folder.join("worker"), &arguments, &[])
    }

    /// `worker --once`.
    pub(crate) fn once(&self) -> Run {
        self.worker(&["--once"])
    }

    /// A worker that goes on.
    pub(crate) fn start(&self) -> Process {
        self.start_with(&[])
    }

    /// A worker that goes on, with more arguments.
    pub(crate) fn start_with(&self, more: &[&str]) -> Process {
        let arguments = self.arguments(more).into_iter().map(Into::into).collect();
        start(Some(&self.host), &self.folder.join("running.log"), arguments, &[])
    }

    /// What there is to see here when something is not as it should be.
    fn state(&self) -> String {
        let show = |program, arguments: &[&str]| {
            self.host.output(program, arguments, "").unwrap_or_else(|error| error.to_string())
        };
        let log = fs::read_to_string(self.folder.join("dataplane.log")).unwrap_or_default();
        let (tunnels, addresses) = (show("wg", &["show"]), show("ip", &["address"]));
        format!("{}:\n{log}\n{tunnels}\n{addresses}", self.host.name())
    }

    /// Whether one datagram and its answer get through between the subnets of two hosts within a second.
    pub(crate) fn reaches(&self, other: &Member) -> bool {
        self.exchange(other, Duration::from_secs(1)).is_ok()
    }

    /// Whether the only datagram that is sent arrives and is answered, however slow a busy machine is. The error says
    /// which way failed, and what the worker of this host wrote.
    pub(crate) fn reach(&self, other: &Member) -> Result<(), String> {
        self.exchange(other, Duration::from_secs(10))
    }

    fn exchange(&self, other: &Member, limit: Duration) -> Result<(), String> {
        let log = || fs::read_to_string(self.folder.join("running.log")).unwrap_or_default();
        let exchanged = exchange((&self.host, self.inside), (&other.host, other.inside), limit);
        exchanged.map_err(|(way, error)| format!("{way}: {error}\n{}", log()))
    }

    /// Our devices here, by name.
    pub(crate) fn devices(&self) -> Vec<String> {
        device_names(&self.host)
    }
}

/// Our devices on a host, by name.
pub(crate) fn device_names(host: &Host) -> Vec<String> {
    let text = host.output("ip", &["-o", "link"], "").unwrap();
    let names = text.lines().filter_map(|line| line.split(": ").nth(1));
    names.filter(|name| ["sw", "sk"].iter().any(|ours| name.starts_with(ours))).map(str::to_owned).collect()
}

/// One datagram from an address of a host to one of another, and its answer. The error says which way failed.
pub(crate) fn exchange(
    (from, source): (&Host, IpAddr),
    (to, target): (&Host, IpAddr),
    limit: Duration,
) -> Result<(), (&'static str, std::io::Error)> {
    let server = to.udp_socket((target, 0).into()).unwrap();
    let client = from.udp_socket((source, 0).into()).unwrap();
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(limit)).unwrap();
    }
    let mut buffer = [0; 16];
    let there = client.send_to(b"there", server.local_addr().unwrap());
    let arrived = there.and_then(|_| server.recv_from(&mut buffer)).map_err(|error| ("there", error))?;
    let (length, from) = arrived;
    let back = server.send_to(&buffer[..length], from).and_then(|_| client.recv(&mut buffer));
    back.map(drop).map_err(|error| ("back", error))
}

/// The key of one of many gateways without a host.
pub(crate) fn far_key(number: usize) -> spanwire_engine::PublicKey {
    spanwire_engine::PublicKey(std::array::from_fn(|at| (number >> (8 * (at % 2))) as u8 | 1 << (at % 8)))
}

/// What a process is told by its environment.
pub(crate) type Variables<'a> = &'a [(String, String)];

pub(crate) fn start(
    host: Option<&Host>,
    log: &Path,
    arguments: Vec<std::ffi::OsString>,
    variables: Variables<'_>,
) -> Process {
    Process::start(Program {
        name: format!("{:?} of {:?}", arguments.first(), host.map(Host::name)),
        path: SPANWIRE.into(),
        arguments,
        variables: variables.to_vec(),
        host: host.cloned(),
        log: log.to_owned(),
    })
    .unwrap()
}

/// Runs the program to its end; standard output is read as JSON where it is.
pub(crate) fn run(host: Option<&Host>, files: &Path, arguments: &[&str], variables: Variables<'_>) -> Run {
    let mut process = begin(host, files, arguments, variables);
    let status = process.wait(LIMIT).unwrap().expect("it ends");
    let verdict = serde_json::from_slice(&fs::read(files.with_extension("out")).unwrap()).unwrap_or_default();
    let log = fs::read_to_string(files.with_extension("err")).unwrap();
    Run { code: status.code().unwrap_or(-1), verdict, log }
}

/// Starts the program with its standard output in a file.
pub(crate) fn begin(
    host: Option<&Host>,
    files: &Path,
    arguments: &[&str],
    variables: Variables<'_>,
) -> Process {
    let out = files.with_extension("out");
    let script = "out=$1; shift; exec \"$@\" >\"$out\"";
    let mut all: Vec<std::ffi::OsString> = vec!["-c".into(), script.into(), "sh".into(), out.clone().into()];
    all.extend([SPANWIRE.into(), "--output".into(), "json".into()]);
    all.extend(arguments.iter().map(Into::into));
    let log = files.with_extension("err");
    let _ = fs::remove_file(&log);
    let program = Program {
        name: arguments.join(" "),
        path: "/bin/sh".into(),
        arguments: all,
        variables: variables.to_vec(),
        host: host.cloned(),
        log,
    };
    Process::start(program).unwrap()
}

/// Looks again and again until `holds`.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Writes a file as an editor that renames does.
pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

fn list(folder: &Path, found: &mut BTreeMap<PathBuf, (u64, i64, i64)>) {
    // A worker that never ran has no folder.
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let (path, meta) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
        if meta.is_dir() {
            list(&path, found);
        } else if !path.file_name().unwrap().to_string_lossy().ends_with("lock") {
            found.insert(path, (meta.ino(), meta.mtime(), meta.mtime_nsec()));
        }
    }
}
