//! What a directory of files can do wrong, and what the store makes of it. It refuses to trust timestamps alone: inode,
//! mtime and the ledger have to agree that nothing was written.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail here")]

mod crash;
mod edits;
mod pace;
mod sandbox;
mod unreadable;
mod watch;
mod writes;
