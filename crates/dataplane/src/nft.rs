//! The packet filter table `inet spanwire`: written as a whole in one transaction, and judged by what the kernel holds. It
//! refuses to read or write any other table but the one for handovers.

mod expression;
mod handover;
mod marker;
mod render;
mod run;

use std::sync::{Mutex, MutexGuard, PoisonError};

use spanwire_engine::{Class, firewall::Firewall};

pub(crate) use handover::Handover;
use run::Nft;

/// The name of the table.
pub(crate) const TABLE: &str = "spanwire";

/// The oldest `nft` that understands what is written.
const OLDEST: [u32; 3] = [1, 0, 2];

/// Why the packet filter could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is not there.
    #[error("could not run `nft`: install the package `nftables` (1.0.2 or newer)")]
    Missing(#[source] std::io::Error),
    /// The program is too old.
    #[error("`nft` {found} is too old: install `nftables` 1.0.2 or newer")]
    TooOld {
        /// What it says of itself.
        found: String,
    },
    /// It did not end in time.
    #[error("`nft` did not end in time: {what}")]
    TimedOut {
        /// What it was to do.
        what: &'static str,
    },
    /// It failed.
    #[error("`nft` could not {what}: {cause}")]
    Failed {
        /// What it was to do.
        what: &'static str,
        /// Its words.
        cause: String,
    },
    /// Its answer is not understood.
    #[error("`nft` gave a listing that is not understood")]
    Listing(#[source] serde_json::Error),
}

impl Error {
    /// What the fault asks for.
    pub fn class(&self) -> Class {
        match self {
            Error::Missing(_) | Error::TooOld { .. } => Class::NeedsHuman,
            Error::TimedOut { .. } | Error::Failed { .. } | Error::Listing(_) => Class::Retry,
        }
    }
}

/// The table of this network namespace.
pub(crate) struct Filter {
    nft: Nft,
    /// The digest of what was written and has no mark yet.
    unmarked: Mutex<Option<String>>,
}

impl Filter {
    /// Checks that `nft` is there and new enough.
    pub(crate) async fn open() -> Result<Self, Error> {
        let nft = Nft::default();
        let found = nft.version().await?;
        if parse_version(&found).is_none_or(|version| version < OLDEST) {
            return Err(Error::TooOld { found });
        }
        Ok(Self { nft, unmarked: Mutex::default() })
    }

    /// The digest of the firewall that stands; `None`: there is none, or it is not as it was written. What was written
    /// just now gets the mark by which it is known from now on; without one it is written again.
    pub(crate) async fn standing(&self) -> Result<Option<String>, Error> {
        let unmarked = self.unmarked().take();
        match (self.listing().await?, unmarked) {
            (Some(listing), Some(digest)) => {
                self.nft.apply("mark the packet filter table", &marker::write(&digest, &listing)).await?;
                Ok(Some(digest))
            }
            (listing, _) => Ok(listing.and_then(|listing| marker::read(&listing))),
        }
    }

    /// Replaces the table in one transaction, unless it stands as asked. Whether it was replaced; if so,
    /// [`Filter::standing`] has to be asked, which a pass does when everything else is done: links need not wait for it.
    pub(crate) async fn set(&self, firewall: &Firewall) -> Result<bool, Error> {
        let (unmarked, digest) = (self.unmarked().take(), firewall.digest());
        let listing = self.listing().await?;
        let marked = listing.as_ref().and_then(marker::read);
        if marked.as_ref() == Some(&digest) {
            return Ok(false);
        }
        let standing = listing.filter(|_| marked.or(unmarked).is_some());
        self.nft
            .apply("replace the packet filter table", &render::table(firewall, standing.as_ref()))
            .await?;
        *self.unmarked() = Some(digest);
        Ok(true)
    }

    async fn listing(&self) -> Result<Option<serde_json::Value>, Error> {
        self.nft.list("inet", TABLE).await
    }

    fn unmarked(&self) -> MutexGuard<'_, Option<String>> {
        self.unmarked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the table, if it is there.
    pub(crate) async fn remove(&self) -> Result<bool, Error> {
        if self.listing().await?.is_none() {
            return Ok(false);
        }
        self.nft.apply("remove the packet filter table", &render::removal()).await.map(|()| true)
    }

    /// Writes the rules for two devices at one port in place of earlier ones.
    pub(crate) async fn share_port(&self, handover: Handover) -> Result<(), Error> {
        self.nft.apply_json("write the rules for two devices at one port", &handover::shared(handover)).await
    }

    /// Writes the rules for a device that moves to a port that was left.
    pub(crate) async fn settle_port(&self, handover: Handover) -> Result<(), Error> {
        self.nft.apply_json("write the rules for a device that moves", &handover::settling(handover)).await
    }

    /// Removes both, if they are there.
    pub(crate) async fn end_handover(&self) -> Result<bool, Error> {
        let [(family, _), _] = handover::FAMILIES;
        if self.nft.list(family, handover::TABLE).await?.is_none() {
            return Ok(false);
        }
        self.nft.apply_json("remove the rules of a handover", &handover::removal()).await.map(|()| true)
    }
}

fn parse_version(text: &str) -> Option<[u32; 3]> {
    let mut parts = text.trim_start_matches('v').split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert_eq!(parse_version("v1.0.6"), Some([1, 0, 6]));
        assert_eq!(parse_version("1.1"), Some([1, 1, 0]));
        assert_eq!(parse_version("nonsense"), None);
        assert!(parse_version("v0.9.8").unwrap() < OLDEST);
        assert!(parse_version("v1.0.10").unwrap() > OLDEST);
    }
}
