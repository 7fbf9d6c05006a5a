//! What tests, the demo and the end-to-end scenarios are made of: a network lab, processes, a prober that counts, a
//! relay that disturbs. It refuses to be a dependency of the product: tests depend on it, nothing that is shipped does.
//!
//! Everything that the lab makes hangs on file descriptors of this process. It vanishes when the process ends, however
//! it ends, and nothing that the lab did not make is ever touched.
//!
//! ```no_run
//! use spanwire_testkit::lab::Lab;
//!
//! let mut lab = Lab::new().unwrap();
//! let (left, right) = (lab.host("left").unwrap(), lab.host("right").unwrap());
//! let server = right.udp_socket((right.address(), 0).into()).unwrap();
//! let target = server.local_addr().unwrap();
//! left.run(move || std::net::UdpSocket::bind("0.0.0.0:0")?.send_to(b"hello", target)).unwrap().unwrap();
//! ```
#![warn(missing_docs)]

#[cfg(feature = "control-plane")]
pub mod control_plane;
pub mod folder;
pub mod lab;
pub mod model;
pub mod prober;
pub mod process;
pub mod relay;
pub mod streams;
pub mod twin;
