//! The one thread that starts children. The kernel kills a child when the *thread* that started it ends, so it refuses
//! to let short-lived threads start any.

use std::{
    io,
    os::{
        fd::{FromRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Child, Command},
    sync::{
        OnceLock,
        mpsc::{Sender, SyncSender, channel, sync_channel},
    },
    thread,
    time::Duration,
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{prctl, signal::Signal},
};

use crate::lab::Namespace;

struct Order {
    command: Command,
    answer: SyncSender<io::Result<Child>>,
}

static ORDERS: OnceLock<Sender<Order>> = OnceLock::new();

/// Starts a command inside a namespace, in a process group of its own, to be killed when this program ends.
pub(crate) fn spawn(mut command: Command, namespace: Option<Namespace>) -> io::Result<Child> {
    let directory = crate::lab::working_directory();
    let parent = std::process::id();
    command.process_group(0);
    // SAFETY: between fork and exec only system calls are made; nothing is allocated and no lock is taken.
    unsafe {
        command.pre_exec(move || {
            if let Some(namespace) = &namespace {
                namespace.enter(&directory)?;
            }
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            let orphan = u32::try_from(nix::unistd::getppid().as_raw()) != Ok(parent);
            if orphan { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
        });
    }
    let orders = ORDERS.get_or_init(start_thread);
    let (answer, result) = sync_channel(1);
    let gone = || io::Error::other("the thread that starts children has ended");
    orders.send(Order { command, answer }).map_err(|_| gone())?;
    result.recv().map_err(|_| gone())?
}

fn start_thread() -> Sender<Order> {
    let (orders, queue) = channel::<Order>();
    thread::spawn(move || {
        for mut order in queue {
            // Whoever asked may have gone; the child then ends with its handle.
            let _ = order.answer.send(order.command.spawn());
        }
    });
    orders
}

/// Waits until a child ends; false: `limit` was over first.
pub(crate) fn child_ended(pid: u32, limit: Duration) -> bool {
    // SAFETY: a plain system call; the descriptor is owned from here on.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let Ok(raw) = i32::try_from(raw) else { return true };
    if raw < 0 {
        return true;
    }
    // SAFETY: the descriptor was made above and is not used elsewhere.
    let handle = unsafe { OwnedFd::from_raw_fd(raw) };
    let limit = PollTimeout::try_from(limit.min(Duration::from_secs(3600))).unwrap_or(PollTimeout::MAX);
    let mut handles = [PollFd::new(std::os::fd::AsFd::as_fd(&handle), PollFlags::POLLIN)];
    poll(&mut handles, limit).is_ok_and(|ready| ready > 0)
}
