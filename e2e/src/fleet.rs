//! Hosts with the product's processes on them, joined by one control store. It refuses to decide what happens to
//! them: scenarios do.

mod admin;
mod control;
mod declare;
mod explain;
mod folder;
mod kind;
mod member;
mod servers;
mod status;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
pub use declare::Declared;
pub(crate) use explain::tail;
use folder::Folder;
pub use kind::MadeClusters;
pub use member::Member;
use spanwire_api::GatewayNetworkStatus;
use spanwire_testkit::{
    folder::copy,
    lab::{Lab, userns},
    process::{Process, Program},
};

use crate::{Provider, Say, Scenario, Setup, hasty::Hasty, interrupt};
use control::Control;
use kind::Clusters;
use servers::Servers;

/// The network of every scenario.
pub const NETWORK: &str = "demo";
/// Its members, in order: two hubs, the others are spokes.
fn names(members: u8) -> Vec<String> {
    let spokes = (1..).map(|number| format!("spoke-{number}"));
    ["hub-a", "hub-b"].map(str::to_owned).into_iter().chain(spokes).take(members.into()).collect()
}

/// How long the first links may take.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// The same where images are started by a kubelet.
const READY_LIMIT_OF_CLUSTERS: Duration = Duration::from_secs(180);

/// Everything that runs. Dropping it ends all of it: first the processes, then the hosts, then the files.
#[derive(Debug)]
pub struct Fleet {
    controller: Option<Process>,
    _hasty: Option<Hasty>,
    members: Vec<Member>,
    declared: Declared,
    control: Control,
    directory: Folder,
    _lab: Option<Lab>,
}

impl Fleet {
    /// Makes the hosts, writes the objects, starts the processes.
    ///
    /// # Errors
    /// The hosts could not be made, or a process could not be started.
    pub fn start(setup: &Setup, say: Say) -> Result<Self> {
        match setup.provider {
            Provider::Files | Provider::Local => Self::on_namespaces(setup, say),
            Provider::Kind => Self::on_clusters(setup, say),
        }
    }

    fn on_namespaces(setup: &Setup, say: Say) -> Result<Self> {
        let binary = binary()?;
        let directory = Folder::new(setup.files.as_deref())?;
        let mut lab = Lab::new().context("making network namespaces")?;
        let declared = Declared::new(setup);
        let mut members = Vec::new();
        for (number, name) in (1..).zip(names(setup.members)) {
            members.push(Member::new(&mut lab, &name, number, directory.path(), setup.firewall)?);
        }
        let files = directory.path().join("control");
        let control = if setup.provider == Provider::Files {
            Control::Files(files.clone())
        } else {
            Control::Servers(Box::new(servers(setup, &members)?))
        };
        declare::write_gateways(&control, &members)?;
        declared.write(&control)?;
        for member in &mut members {
            member.start(&binary, &control)?;
        }
        let hasty = setup.leave_out.map(|phase| Hasty::start(&files, phase)).transpose()?;
        let controller = match hasty {
            Some(_) => None,
            None => Some(start_controller(&binary, &control, directory.path())?),
        };
        say.line(format!(
            "Started {} hosts with a worker and a dataplane each, and one controller ({})",
            setup.members,
            directory.path().display()
        ));
        Ok(Self { controller, _hasty: hasty, members, declared, control, directory, _lab: Some(lab) })
    }

    fn on_clusters(setup: &Setup, say: Say) -> Result<Self> {
        let directory = Folder::new(setup.files.as_deref())?;
        let clusters = Clusters::start(&setup.clusters, &names(setup.members), directory.path(), say)?;
        let members = clusters.members(directory.path())?;
        let control = Control::Clusters(Box::new(clusters));
        let declared = Declared::new(setup);
        declared.write(&control)?;
        say.line(format!("Declared the network; kubeconfigs are in {}", directory.path().display()));
        Ok(Self { controller: None, _hasty: None, members, declared, control, directory, _lab: None })
    }

    /// The members, in order.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// One member.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn member(&self, name: &str) -> Result<&Member> {
        self.members.iter().find(|member| member.name() == name).with_context(|| format!("no member {name}"))
    }

    /// The folder of all files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What is declared now.
    pub fn declared(&self) -> &Declared {
        &self.declared
    }

    /// Edits the network's file as a person would.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn declare(&mut self, edit: impl FnOnce(&mut Declared)) -> Result<()> {
        edit(&mut self.declared);
        self.declared.write(&self.control)
    }

    /// Takes for declared what the store says by itself, as after a restore.
    pub(crate) fn expect(&mut self, edit: impl FnOnce(&mut Declared)) {
        edit(&mut self.declared);
    }

    /// What one owner says of an object; `None`: nothing yet.
    pub(crate) fn status<S: spanwire_api::Kind>(&self, name: &str, owner: &str) -> Result<Option<S::Status>> {
        self.control.status::<S>(name, owner)
    }

    /// What the controller says of the network; `None`: nothing yet.
    ///
    /// # Errors
    /// The file is there and could not be read.
    pub fn network(&self) -> Result<Option<GatewayNetworkStatus>> {
        status::network(&self.control)
    }

    /// Waits until the network is as declared and every link works.
    ///
    /// # Errors
    /// It did not become so in time; the error says what was seen last.
    pub fn wait_until_ready(&self) -> Result<GatewayNetworkStatus> {
        let limit = match &self.control {
            Control::Files(_) | Control::Servers(_) => READY_LIMIT,
            Control::Clusters(_) => READY_LIMIT_OF_CLUSTERS,
        };
        let ready = interrupt::wait_for(limit, || {
            self.check_alive()?;
            Ok(self.network()?.filter(|status| self.declared.is_reached(status)))
        })?;
        match ready {
            Some(status) => Ok(status),
            None => bail!("the network was not ready after {limit:?}.\n{}", explain::last_words(self)),
        }
    }

    /// Commands that look inside each host, and at the API servers where there are any.
    pub fn how_to_look(&self) -> Vec<String> {
        let user = if userns::is_inside() { "--user --preserve-credentials " } else { "" };
        let enter = |member: &Member| {
            let pid = member.processes().next()?.pid();
            Some(format!("{:8} nsenter {user}--net --mount --target {pid} wg show", member.name()))
        };
        let mut lines: Vec<String> = self.members.iter().filter_map(enter).collect();
        match &self.control {
            Control::Files(_) => {}
            Control::Servers(servers) => lines.extend(servers.how_to_look()),
            Control::Clusters(clusters) => lines.extend(clusters.how_to_look()),
        }
        lines
    }

    /// What the last status and the logs say, for a failure.
    pub fn last_words(&self) -> String {
        explain::last_words(self)
    }

    /// The API servers of tests.
    ///
    /// # Errors
    /// There are none.
    pub(crate) fn servers(&self) -> Result<&Servers> {
        match &self.control {
            Control::Servers(servers) => Ok(servers),
            Control::Files(_) | Control::Clusters(_) => bail!("this needs --provider local"),
        }
    }

    /// The clusters of kind.
    ///
    /// # Errors
    /// There are none.
    pub(crate) fn clusters(&self) -> Result<&Clusters> {
        match &self.control {
            Control::Clusters(clusters) => Ok(clusters),
            Control::Files(_) | Control::Servers(_) => bail!("this needs --provider kind"),
        }
    }

    /// Says what the product takes while nothing changes, where something counts it.
    pub(crate) fn say_at_rest(&self, say: Say) -> Result<()> {
        match &self.control {
            Control::Clusters(clusters) => clusters.at_rest(say),
            Control::Files(_) | Control::Servers(_) => Ok(()),
        }
    }

    /// Deletes the private key of a member, wherever it is kept.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn delete_key(&self, name: &str) -> Result<()> {
        match &self.control {
            Control::Files(_) => {
                let path = self.directory().join(name).join("local/private.key");
                std::fs::remove_file(&path).with_context(|| format!("deleting {}", path.display()))
            }
            Control::Servers(servers) => servers.delete_key(name),
            Control::Clusters(clusters) => clusters.delete_key(name),
        }
    }

    /// Kills the worker of a member as a crash would, and starts it again.
    ///
    /// # Errors
    /// It could not be started.
    pub(crate) fn restart_worker(&mut self, name: &str) -> Result<()> {
        if let Control::Clusters(clusters) = &self.control {
            return clusters.kill("worker", Some(name));
        }
        let member = self.members.iter_mut().find(|member| member.name() == name);
        let member = member.with_context(|| format!("no member {name}"))?;
        member.kill_worker()?;
        member.restart_worker()
    }

    /// Puts logs, objects and audit logs into a folder, for somebody who looks for what went wrong.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn save(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        std::fs::write(folder.join("last-words.txt"), self.last_words()).context("writing the last words")?;
        for process in self.processes() {
            let log = process.log();
            let above = log.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
            let name = format!("{above}-{}", log.file_name().unwrap_or_default().to_string_lossy());
            std::fs::copy(log, folder.join(name)).with_context(|| format!("copying {}", log.display()))?;
        }
        match &self.control {
            Control::Files(path) => {
                copy(path, &folder.join("control")).with_context(|| format!("copying {}", path.display()))
            }
            Control::Servers(servers) => servers.save(folder),
            Control::Clusters(clusters) => clusters.save(folder),
        }
    }

    /// Kills every worker and the controller as a crash would, and starts them again.
    ///
    /// # Errors
    /// One could not be started.
    pub fn crash_and_restart(&mut self) -> Result<()> {
        if let Control::Clusters(clusters) = &self.control {
            return ["controller", "worker"].iter().try_for_each(|process| clusters.kill(process, None));
        }
        if let Some(controller) = &mut self.controller {
            controller.kill().context("killing the controller")?;
        }
        for member in &mut self.members {
            member.kill_worker()?;
        }
        if let Some(controller) = &mut self.controller {
            controller.restart().context("starting the controller again")?;
        }
        for member in &mut self.members {
            member.restart_worker()?;
        }
        Ok(())
    }

    /// Whether all processes run.
    ///
    /// # Errors
    /// One ended by itself; the error says which, and what it wrote last.
    pub fn check_alive(&self) -> Result<()> {
        for process in self.processes() {
            if !process.is_running() {
                bail!("{} ended by itself:\n{}", process.program().name, explain::tail(process.log(), 20));
            }
        }
        Ok(())
    }
}

impl Fleet {
    /// All processes of the product.
    fn processes(&self) -> impl Iterator<Item = &Process> {
        self.members.iter().flat_map(Member::processes).chain(&self.controller)
    }
}

/// API servers for the controller and the workers.
fn servers(setup: &Setup, members: &[Member]) -> Result<Servers> {
    let mut servers = Servers::start(members)?;
    if setup.scenario == Scenario::Emptied {
        servers.remember_empty(members)?;
    }
    Ok(servers)
}

fn start_controller(binary: &Path, control: &Control, folder: &Path) -> Result<Process> {
    let places = control.of_controller();
    Process::start(Program {
        name: "controller".to_owned(),
        path: binary.to_path_buf(),
        arguments: std::iter::once("controller".into()).chain(places.arguments).collect(),
        variables: places.variables,
        host: None,
        log: folder.join("controller.log"),
    })
    .context("starting the controller")
}

/// The operator's program: named by the variable that `cargo xtask` sets, or beside this program.
fn binary() -> Result<PathBuf> {
    let beside = || {
        let own = std::env::current_exe().ok()?;
        Some(own.parent()?.join("spanwire"))
    };
    let path = std::env::var_os("SPANWIRE_BINARY").map(PathBuf::from).or_else(beside);
    match path {
        Some(path) if path.is_file() => Ok(path),
        Some(_) | None => bail!("the program `spanwire` is not built: start this with `cargo xtask demo`"),
    }
}
