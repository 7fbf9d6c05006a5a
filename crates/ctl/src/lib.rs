//! `spanwirectl`: look at a control store, try changes before they are applied, print what a new worker cluster needs. It
//! refuses to decide anything itself: every verdict comes from the engine, fed with what the store holds.
//!
//! ```
//! use spanwire_ctl::{Declared, plan::{forecast, settled}};
//! use spanwire_engine::port::ControlView;
//!
//! let hub = |hub: &str| {
//!     let text = format!(
//!         "{{apiVersion: spanwire.dev/v1alpha1, kind: GatewayNetwork, metadata: {{name: demo}}, spec: {{topology: hub-spoke,
//!           hub: {hub}, members: [a, b, s], cidr: 10.9.0.0/24}}}}"
//!     );
//!     Declared::parse("demo.yaml".as_ref(), &text).unwrap()
//! };
//! let gateways = ["a", "b", "s"].iter().enumerate().map(|(i, name)| {
//!     let text = format!(
//!         "{{apiVersion: spanwire.dev/v1alpha1, kind: Gateway, metadata: {{name: {name}}}, spec: {{subnets: [10.{i}.0.0/24]}}}}"
//!     );
//!     Declared::parse("gateway.yaml".as_ref(), &text).unwrap()
//! });
//! let declared = gateways.chain([hub("a")]).fold(ControlView::default(), |view, declared| declared.onto(&view));
//! let running = settled(&declared);
//! let forecast = forecast(&running, &[hub("b")]);
//! let phases: Vec<_> = forecast.networks[0].steps.iter().map(|step| step.phase.as_str()).collect();
//! assert_eq!(phases, ["Adding", "Switching", "Demoting", "Removing"]);
//! ```
#![warn(missing_docs)]

mod cli;
mod declared;
mod error;
mod imagine;
mod join;
mod links;
pub mod plan;
mod show;
pub mod status;

use std::{io::Write as _, process::ExitCode};

use clap::Parser as _;

pub use declared::Declared;
pub use error::Error;
pub use join::Error as JoinError;

/// Runs the command line of this process.
pub fn main(program: &'static str) -> ExitCode {
    let command = cli::Cli::parse();
    match cli::run(command, program) {
        Ok(cli::Said { text, notes, code }) => {
            // A closed pipe (`| head`) is no fault of ours, and nobody is there to be told.
            let _ = std::io::stdout().write_all(text.as_bytes());
            eprint!("{notes}");
            ExitCode::from(code)
        }
        Err(error) => {
            eprintln!("{program}: {}", error::chain(&error));
            ExitCode::from(cli::FAILED)
        }
    }
}
