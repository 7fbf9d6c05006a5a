//! `spanwire dataplane`: holds userspace devices until it is told to end. It refuses policy and reads no store.

use std::{net::SocketAddr, process::ExitCode};

use anyhow::Context as _;
use spanwire_dataplane::process::{ProcessConfig, serve};

use crate::{cli::DataplaneArgs, endpoint, folder, health::Health, metrics::Metrics, rights, stop::Stop};

/// Becomes the dataplane process.
///
/// # Errors
/// No TUN devices here, another dataplane process, or a socket that can't be made.
pub async fn start(args: DataplaneArgs, listen: Option<SocketAddr>) -> anyhow::Result<ExitCode> {
    rights::check("dataplane", "make TUN devices and bring them up")?;
    let DataplaneArgs { socket, uapi_dir } = args;
    let stop = Stop::on_signals().context("cannot listen for signals")?;
    let (metrics, health) = (Metrics::of_dataplane(), Health::of_dataplane());
    let _endpoint = endpoint::open(listen, &metrics, &health).await?;
    if let Some(parent) = socket.parent() {
        folder::make(parent).context("cannot make the folder of --socket")?;
    }
    let config = ProcessConfig { control_socket: socket, uapi_dir };
    let ready = |figures| {
        metrics.show_held(figures);
        health.serves();
    };
    serve(config, ready, stop.requested()).await.context("the dataplane can't run")?;
    Ok(ExitCode::SUCCESS)
}
