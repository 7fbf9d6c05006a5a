//! WireGuard devices, routes and the packet filter of one host: what a worker's plan is applied to. It refuses to decide:
//! steps and comparisons come from `spanwire-engine`, and nothing here reads a store.
//!
//! Three parts, in two processes:
//!
//! * [`process::serve`] is the body of `spanwire dataplane`. It holds the userspace devices, so that they outlive the
//!   worker, offers the standard configuration socket of each (`wg show`, `wg set` and `wg syncconf` work), and answers
//!   the peers' probes.
//! * [`LocalDevices`] is the worker's view of the host. It implements [`spanwire_engine::port::Devices`] over netlink,
//!   those sockets, and `nft`.
//! * [`probe::Prober`] tells which links work.
//!
//! # What is ours, and how it is known
//!
//! | thing | mark |
//! |---|---|
//! | device | its ifalias, `spanwire/<network>/<role>/<peer or ->` |
//! | route, rule | protocol number 83 |
//! | packet filter | the table `inet spanwire` |
//!
//! Nothing without its mark is changed or removed. All numbers are fields of [`Options`]:
//!
//! | rule priority | leads |
//! |---|---|
//! | 9999 | sockets bound to one of our devices (`oif`, IPv6) to table 5179, for probes |
//! | 10000 | what arrives on one of our devices (`iif`) to the table of its network |
//! | 11000 + n | the host's own traffic to the table of its n-th network |
//!
//! | metric in a network's table | route |
//! |---|---|
//! | 10 | own prefixes: left to the host's other tables (throw) |
//! | 100 | one peer's own prefixes (exact) |
//! | 200 | the wide prefixes (wide) |
//! | 9999 | the wide prefixes: unreachable |
//!
//! Probes go to UDP port [`probe::PORT`] of tunnel addresses.
//!
//! # Example
//!
//! ```no_run
//! use spanwire_dataplane::{LocalDevices, Options, key::SecretKey};
//! use spanwire_engine::port::Devices;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let secret = SecretKey::generate()?;
//! let options = Options::new("hub-a".parse()?, secret, "/run/spanwire/dataplane.sock", "/run/spanwire");
//! let devices = LocalDevices::open(options).await?;
//! for (id, device) in devices.observe().await?.devices {
//!     println!("{id}: port {}, {} peers", device.port, device.peers.len());
//! }
//! # Ok(())
//! # }
//! ```

mod causes;
mod configuration;
mod control;
mod diff;
mod kernel;
pub mod key;
pub mod local;
mod netlink;
mod nft;
pub mod probe;
pub mod process;
pub mod sysctl;
pub mod traffic;
mod uapi;
mod wireguard;

pub use kernel::Sent;
pub use local::{LocalDevices, Options};
