//! Whether this worker is still the one that its gateway stands for: its key against the published one. It refuses to
//! publish over another key of an equal or higher generation.

use spanwire_engine::{Gateway, PublicKey};

use crate::{
    key_file::OwnKey,
    keys::{Error, Keys},
};

/// The key of this worker, without its secret.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The public half.
    pub public: PublicKey,
    /// Its generation, once it is known.
    pub generation: Option<i64>,
    /// Where it is kept; `None`: nowhere, for a run that writes nothing.
    pub keys: Option<Keys>,
}

/// What the published key says of this worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It acts for the gateway, with a key of this generation.
    Acts {
        /// The generation to publish.
        generation: i64,
    },
    /// Another worker has published a key that counts more: `GatewayTakenOver`.
    TakenOver {
        /// For people: what was found and what to do.
        message: String,
    },
    /// The own Gateway was not read.
    Unknown,
}

impl Identity {
    /// The identity that `key` gives.
    pub fn new(key: &OwnKey, keys: Option<Keys>) -> Self {
        Self { public: key.public, generation: key.generation, keys }
    }

    /// Compares with the own Gateway as read, and keeps the generation beside the key once it is known.
    ///
    /// # Errors
    /// The generation could not be kept.
    pub async fn stand(&mut self, own: Option<&Gateway>) -> Result<Standing, Error> {
        let Some(own) = own else { return Ok(Standing::Unknown) };
        let standing = standing(&self.public, self.generation, own);
        if let Standing::Acts { generation } = standing
            && self.generation != Some(generation)
        {
            if let Some(keys) = &self.keys {
                keys.remember(&self.public, generation).await?;
            }
            self.generation = Some(generation);
        }
        Ok(standing)
    }
}

/// The rule of design §9.
fn standing(key: &PublicKey, generation: Option<i64>, own: &Gateway) -> Standing {
    let published = own.facts.key_generation;
    let same = own.facts.public_key.as_ref().map(|text| *text == key.to_string());
    match (same, generation) {
        (Some(true), generation) => {
            Standing::Acts { generation: generation.unwrap_or(published).max(published) }
        }
        (None, Some(generation)) => Standing::Acts { generation: generation.max(published) },
        (Some(false), Some(generation)) if published < generation => Standing::Acts { generation },
        (Some(false), Some(generation)) => Standing::TakenOver {
            message: format!(
                "GatewayTakenOver: another worker published a key of generation {published}, this one's is of \
                 {generation}. Links stay as recorded and nothing more is published. If this host should act: move its \
                 key file away and start it again"
            ),
        },
        (None | Some(false), None) => Standing::Acts { generation: published.max(0) + 1 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway(public_key: Option<&PublicKey>, key_generation: i64) -> Gateway {
        let mut gateway = Gateway::default();
        gateway.facts.public_key = public_key.map(PublicKey::to_string);
        gateway.facts.key_generation = key_generation;
        gateway
    }

    fn taken_over(standing: &Standing) -> bool {
        matches!(standing, Standing::TakenOver { .. })
    }

    #[test]
    fn w16_the_higher_generation_acts_and_the_other_says_so() {
        let (mine, other) = (PublicKey([1; 32]), PublicKey([2; 32]));
        let acts = |generation| Standing::Acts { generation };
        assert_eq!(standing(&mine, Some(2), &gateway(Some(&other), 1)), acts(2), "re-installed here");
        assert!(taken_over(&standing(&mine, Some(1), &gateway(Some(&other), 2))), "re-installed elsewhere");
        assert!(taken_over(&standing(&mine, Some(2), &gateway(Some(&other), 2))), "made at the same time");
        assert_eq!(standing(&mine, Some(2), &gateway(Some(&mine), 2)), acts(2));
        assert_eq!(standing(&mine, Some(1), &gateway(None, 0)), acts(1), "first start");
        assert_eq!(standing(&mine, Some(2), &gateway(Some(&mine), 5)), acts(5), "local count lost");
    }

    #[test]
    fn a_key_placed_by_hand_counts_on() {
        let (mine, other) = (PublicKey([1; 32]), PublicKey([2; 32]));
        for (own, generation) in
            [(gateway(None, 0), 1), (gateway(Some(&other), 4), 5), (gateway(Some(&mine), 4), 4)]
        {
            assert_eq!(standing(&mine, None, &own), Standing::Acts { generation });
        }
    }

    #[tokio::test]
    async fn nothing_is_concluded_from_a_missing_gateway() {
        let mut identity = Identity { public: PublicKey([1; 32]), generation: None, keys: None };
        assert_eq!(identity.stand(None).await.unwrap(), Standing::Unknown);
        assert_eq!(identity.generation, None);
    }
}
