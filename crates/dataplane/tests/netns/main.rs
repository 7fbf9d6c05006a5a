//! The dataplane between real network namespaces. It refuses to touch the network of the machine that it runs on.

mod probes;
mod rig;
mod smoke;
