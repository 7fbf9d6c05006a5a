//! Answers the probes of peers on devices of the kernel, as on our own: the process that answers outlives the worker. It
//! refuses to touch those devices.

use std::collections::BTreeMap;

use tokio::task::JoinHandle;

use crate::netlink::link::Link;

use super::responder::Heard;

/// The kernel devices that are answered on, by name.
#[derive(Default)]
pub(super) struct KernelDevices(BTreeMap<String, Answering>);

/// One device.
struct Answering {
    index: u32,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Answering {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl KernelDevices {
    /// Begins to answer on devices of ours that are new, and ends on those that are gone or were made anew.
    pub(super) fn follow(&mut self, links: &[Link], heard: &Heard) {
        let ours = |link: &&Link| link.kernel_wireguard && link.is_ours();
        let there: BTreeMap<&str, u32> =
            links.iter().filter(ours).map(|link| (link.name.as_str(), link.index)).collect();
        self.0.retain(|name, answering| {
            let stays = there.get(name.as_str()) == Some(&answering.index);
            if !stays {
                heard.forget(name);
            }
            stays
        });
        for (name, index) in there {
            self.0.entry(name.to_owned()).or_insert_with(|| Answering { index, tasks: heard.answer(name) });
        }
    }
}
