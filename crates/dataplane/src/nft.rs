//! The packet filter table `inet spanwire`: written as a whole in one transaction, and judged by what the kernel holds. It
//! refuses to read or write any other table but the one for handovers.

mod expression;
mod handover;
mod marker;
mod render;
mod run;

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
    /// What stands after the write is not there.
    #[error("the table {TABLE} is not there after it was written")]
    Vanished,
}

impl Error {
    /// What the fault asks for.
    pub fn class(&self) -> Class {
        match self {
            Error::Missing(_) | Error::TooOld { .. } => Class::NeedsHuman,
            Error::TimedOut { .. } | Error::Failed { .. } | Error::Listing(_) | Error::Vanished => {
                Class::Retry
            }
        }
    }
}

/// The table of this network namespace.
pub(crate) struct Filter {
    nft: Nft,
}

impl Filter {
    /// Checks that `nft` is there and new enough.
    pub(crate) async fn open() -> Result<Self, Error> {
        let nft = Nft::default();
        let found = nft.version().await?;
        if parse_version(&found).is_none_or(|version| version < OLDEST) {
            return Err(Error::TooOld { found });
        }
        Ok(Self { nft })
    }

    /// The digest of the firewall that stands; `None`: there is none, or it is not as it was written.
    pub(crate) async fn standing(&self) -> Result<Option<String>, Error> {
        Ok(self.nft.list(TABLE).await?.and_then(|listing| marker::read(&listing)))
    }

    /// Replaces the table in one transaction, reads it back, and leaves the mark by which [`Filter::standing`] knows it.
    pub(crate) async fn replace(&self, firewall: &Firewall) -> Result<(), Error> {
        let standing = self.nft.list(TABLE).await?.filter(|listing| marker::read(listing).is_some());
        self.nft
            .apply("replace the packet filter table", &render::table(firewall, standing.as_ref()))
            .await?;
        let listing = self.nft.list(TABLE).await?.ok_or(Error::Vanished)?;
        self.nft.apply("mark the packet filter table", &marker::write(&firewall.digest(), &listing)).await
    }

    /// Removes the table, if it is there.
    pub(crate) async fn remove(&self) -> Result<bool, Error> {
        if self.nft.list(TABLE).await?.is_none() {
            return Ok(false);
        }
        self.nft.apply("remove the packet filter table", &render::removal()).await.map(|()| true)
    }

    /// Writes the rules of a handover in place of those of an earlier one.
    pub(crate) async fn begin_handover(&self, handover: Handover<'_>) -> Result<(), Error> {
        self.nft.apply_json("write the rules of a handover", &handover::rules(handover)).await
    }

    /// Removes them, if they are there.
    pub(crate) async fn end_handover(&self) -> Result<bool, Error> {
        if self.nft.list(handover::TABLE).await?.is_none() {
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
