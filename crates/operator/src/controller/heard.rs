//! Whether the control store was read once, also while another controller acts: then this one could take over. It refuses
//! to read it again after that.

use spanwire_engine::port::{Changes as _, ControllerStore as _};
use tokio::time::sleep;

use super::STORE_LIMIT;
use crate::{driver::retry, fault::limited, health::Health, stores::ControllerPlace};

/// Reads the store until it can be read, and says so.
pub async fn wait(store: ControllerPlace, health: Health) {
    let mut pauses = retry::pauses();
    while let Err(fault) = limited("cannot read the control store yet", STORE_LIMIT, store.read()).await {
        tracing::debug!("{fault}");
        let pause = sleep(pauses.next().unwrap_or(retry::LONGEST));
        match store.watch() {
            Ok(mut news) => tokio::select! { () = pause => {}, () = news.changed() => {} },
            Err(_) => pause.await,
        }
    }
    health.looked();
}
