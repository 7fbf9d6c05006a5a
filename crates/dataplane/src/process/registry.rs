//! The devices that the process holds, by name. It refuses to touch an interface that it did not make.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use spanwire_engine::DeviceId;
use tokio::{
    sync::{Mutex, watch},
    task::JoinHandle,
};

use crate::{
    control::HeardEntry,
    netlink::{
        Netlink,
        link::{Link, LinkChange},
        monitor::HostChanges,
    },
};

use super::{
    Error, configuration, device::UserDevice, kernel_devices::KernelDevices, listen, responder::Heard, tun,
};

/// Packets that may wait in the kernel for one device.
const QUEUE: u32 = 5000;

pub(super) struct Registry {
    uapi_dir: PathBuf,
    netlink: Netlink,
    devices: Mutex<BTreeMap<String, Entry>>,
    heard: Heard,
    /// Changes of devices that are gone.
    retired: AtomicU64,
}

struct Entry {
    device: Arc<UserDevice>,
    alias: String,
    index: u32,
    mtu: watch::Sender<u16>,
    file: tun::File,
    tasks: Vec<JoinHandle<()>>,
}

impl Registry {
    pub(super) fn open(uapi_dir: PathBuf) -> Result<Self, Error> {
        Ok(Self {
            uapi_dir,
            netlink: Netlink::open().map_err(Error::Netlink)?,
            devices: Mutex::default(),
            heard: Heard::default(),
            retired: AtomicU64::new(0),
        })
    }

    /// Makes a device with its alias, down, with its configuration socket and its answer to probes.
    pub(super) async fn create(self: &Arc<Self>, name: &str, alias: &str, mtu: u32) -> Result<(), Error> {
        let not_ours = |what: &str| Error::NotOurs { what: what.to_owned() };
        if !listen::is_our_name(name) {
            return Err(not_ours(name));
        }
        DeviceId::from_alias(alias).ok_or_else(|| not_ours(alias))?;
        let mut devices = self.devices.lock().await;
        if let Some(entry) = devices.get(name) {
            return if entry.alias == alias {
                Ok(())
            } else {
                Err(Error::NameTaken { name: name.to_owned() })
            };
        }
        if self.link(name).await?.is_some() {
            return Err(Error::NameTaken { name: name.to_owned() });
        }
        let entry = self.make(name, alias, mtu).await?;
        tracing::info!(device = name, alias, "created a device");
        devices.insert(name.to_owned(), entry);
        Ok(())
    }

    async fn make(self: &Arc<Self>, name: &str, alias: &str, mtu: u32) -> Result<Entry, Error> {
        let fault = |source| Error::Create { name: name.to_owned(), source };
        let mtu = u16::try_from(mtu).map_err(|error| fault(io::Error::other(error)))?;
        let tun = tun::create(name, mtu).await.map_err(fault)?;
        let link = self.link(name).await?.ok_or_else(|| fault(io::ErrorKind::NotFound.into()))?;
        let change =
            LinkChange { alias: Some(alias.to_owned()), queue: Some(QUEUE), ..LinkChange::default() };
        self.netlink.change_link(link.index, change).await.map_err(Error::Netlink)?;
        let device = Arc::new(UserDevice::start(tun.send, tun.receive).await.map_err(fault)?);
        let socket = listen::at(&self.uapi_dir.join(format!("{name}.sock")))?;
        let mut tasks = vec![
            tokio::spawn(configuration::run(socket, Arc::clone(&device))),
            tokio::spawn(forget_when_gone(Arc::downgrade(self), name.to_owned(), link.index, tun.gone)),
        ];
        tasks.extend(self.heard.answer(name));
        Ok(Entry { device, alias: alias.to_owned(), index: link.index, mtu: tun.mtu, file: tun.file, tasks })
    }

    async fn link(&self, name: &str) -> Result<Option<Link>, Error> {
        let links = self.netlink.links().await.map_err(Error::Netlink)?;
        Ok(links.into_iter().find(|link| link.name == name))
    }

    /// Removes a device; one that is not there is no fault.
    pub(super) async fn delete(&self, name: &str) {
        let mut devices = self.devices.lock().await;
        if let Some(entry) = devices.remove(name) {
            self.dismantle(name, entry).await;
            tracing::info!(device = name, "removed a device");
        }
    }

    async fn dismantle(&self, name: &str, entry: Entry) {
        for task in &entry.tasks {
            task.abort();
        }
        listen::remove(&self.uapi_dir.join(format!("{name}.sock")));
        self.heard.forget(name);
        self.retired.fetch_add(entry.device.changes(), Ordering::Relaxed);
        for task in entry.tasks {
            let _ = task.await;
        }
        if let Some(device) = Arc::into_inner(entry.device) {
            device.stop().await;
        }
        // The interface would go when its file closes; its tasks may hold that up.
        if let Err(error) = self.netlink.delete_link(entry.index).await {
            tracing::debug!(%error, device = name, "the interface was gone already");
        }
        tokio::spawn(entry.file.close());
    }

    /// Removes all devices.
    pub(super) async fn clear(&self) {
        let devices = std::mem::take(&mut *self.devices.lock().await);
        for (name, entry) in devices {
            self.dismantle(&name, entry).await;
        }
    }

    pub(super) async fn names(&self) -> Vec<String> {
        self.devices.lock().await.keys().cloned().collect()
    }

    /// Changes by device, and of all there ever were.
    pub(super) async fn stats(&self) -> (BTreeMap<String, u64>, u64) {
        let devices = self.devices.lock().await;
        let counts: BTreeMap<String, u64> =
            devices.iter().map(|(name, entry)| (name.clone(), entry.device.changes())).collect();
        let total = self.retired.load(Ordering::Relaxed) + counts.values().sum::<u64>();
        (counts, total)
    }

    pub(super) fn heard(&self) -> Vec<HeardEntry> {
        self.heard.list()
    }

    /// Tells tunnels of MTU changes, whoever made them, and follows the devices of the kernel. Ends only with an error
    /// of the start.
    pub(super) fn watch_interfaces(self: Arc<Self>) -> Result<impl Future<Output = ()>, Error> {
        let mut changes = HostChanges::open_links().map_err(Error::Netlink)?;
        Ok(async move {
            let mut kernel = KernelDevices::default();
            loop {
                if let Ok(links) = self.netlink.links().await {
                    kernel.follow(&links, &self.heard);
                    self.note_mtus(links).await;
                }
                changes.changed().await;
            }
        })
    }

    async fn note_mtus(&self, links: Vec<Link>) {
        let devices = self.devices.lock().await;
        for link in links {
            if let Some(entry) = devices.get(&link.name)
                && let Ok(mtu) = u16::try_from(link.mtu)
            {
                entry.mtu.send_if_modified(|known| std::mem::replace(known, mtu) != mtu);
            }
        }
    }
}

/// Somebody deleted the interface: what is left of the device goes too, so that it can be made again.
async fn forget_when_gone(
    registry: Weak<Registry>,
    name: String,
    index: u32,
    mut gone: watch::Receiver<bool>,
) {
    if gone.wait_for(|gone| *gone).await.is_err() {
        return;
    }
    let Some(registry) = registry.upgrade() else { return };
    tracing::warn!(device = name, "the interface was deleted from outside");
    // Not from within: dismantling waits for the tasks of the device, and this is one of them.
    tokio::spawn(async move {
        let mut devices = registry.devices.lock().await;
        if devices.get(&name).is_some_and(|entry| entry.index == index)
            && let Some(entry) = devices.remove(&name)
        {
            registry.dismantle(&name, entry).await;
        }
    });
}
