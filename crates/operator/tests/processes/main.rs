//! The built program on hosts of a network lab, with real devices. The tests refuse to run where no namespaces can be
//! made, and say so.

mod fleet;
mod life;
mod once;
mod start_up;
