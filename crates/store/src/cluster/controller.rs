//! The controller's side of an API server. It refuses to write intents and statuses that somebody else changed after
//! they were read.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use spanwire_api::{
    GatewayNetworkSpec, GatewaySpec, Kind, Metadata, Object, TRACEPARENT, WorkerSliceConfigSpec,
};
use spanwire_engine::{
    GatewayName, Intent, Meta, NetworkName, NetworkStatus,
    port::{ControlView, ControllerStore, Written},
};
use tokio::sync::watch;

use super::{
    Connection, Error, News,
    apply::{Kept, Manager, check_uid, conflict, of_uid},
    rights::Rights,
    view,
};
use crate::{
    Conflict,
    convert::{gateway, intent, network},
    managed::{hold, is_held, is_managed, mark_managed},
};

/// The controller's handle on a namespace. Clones share what was read.
#[derive(Clone)]
pub struct Controller(Arc<Inner>);

struct Inner {
    gateways: Kept<GatewaySpec>,
    networks: Kept<GatewayNetworkSpec>,
    intents: Kept<WorkerSliceConfigSpec>,
    rights: Rights,
    news: watch::Sender<()>,
}

impl Controller {
    /// Begins to list and watch. Call it within a Tokio runtime.
    pub fn new(connection: &Connection) -> Self {
        let news = watch::Sender::new(());
        Self(Arc::new(Inner {
            gateways: Kept::follow(connection, None, Manager::Controller, &news),
            networks: Kept::follow(connection, None, Manager::Controller, &news),
            intents: Kept::follow(connection, None, Manager::Controller, &news),
            rights: Rights::follow(connection),
            news,
        }))
    }

    /// Wakes when something was changed.
    pub fn watch(&self) -> News {
        News::of(&self.0.news)
    }
}

impl Inner {
    /// The annotation of a network that names a trace: it goes along with intents that are written anyway, and is no
    /// reason to write one.
    fn trace_of(&self, network: &NetworkName) -> Option<(String, String)> {
        let held = self.networks.mirror.object(network.as_str()).ok()??;
        view::trace(&held).map(|trace| (TRACEPARENT.to_owned(), trace))
    }
}

impl ControllerStore for Controller {
    type Error = Error;

    async fn read(&self) -> Result<ControlView, Error> {
        let Inner { gateways, networks, intents, rights: _, news: _ } = &*self.0;
        tokio::join!(gateways.mirror.first(), networks.mirror.first(), intents.mirror.first());
        Ok(view::control_view(
            &gateways.mirror.objects()?,
            &networks.mirror.objects()?,
            &intents.mirror.objects()?,
        ))
    }

    async fn write_network_status(
        &self,
        network: &NetworkName,
        status: &NetworkStatus,
        expected: &Meta,
    ) -> Result<Written, Error> {
        let (kept, name) = (&self.0.networks, network.as_str());
        let known =
            kept.good(name)?.ok_or_else(|| conflict::<GatewayNetworkSpec>(name, Conflict::Missing))?;
        check_version(&known, expected)?;
        let stated = network::status_to_api(status);
        if known.status.as_ref() == Some(&stated) {
            return Ok(Written::Same);
        }
        let mut object = Object::new(of_version(name, expected));
        object.status = Some(stated);
        kept.apply_status(&object).await
    }

    async fn write_intent(&self, intent: &Intent, expected: Option<&Meta>) -> Result<Written, Error> {
        let (kept, name) = (&self.0.intents, intent.object_name());
        let stated = intent::to_api(intent);
        let metadata = match (kept.good(&name)?, expected) {
            (None, None) => Metadata::named(&name),
            (None, Some(_)) => return Err(conflict::<WorkerSliceConfigSpec>(&name, Conflict::Missing)),
            (Some(_), None) => return Err(conflict::<WorkerSliceConfigSpec>(&name, Conflict::Exists)),
            (Some(known), Some(expected)) => {
                check_ours(&known)?;
                check_version(&known, expected)?;
                if known.spec.as_ref() == Some(&stated) && is_held(&known.metadata) {
                    return Ok(Written::Same);
                }
                of_version(&name, expected)
            }
        };
        let mut object = Object::new(metadata);
        mark_managed(&mut object.metadata);
        hold(&mut object.metadata);
        object.metadata.annotations.extend(self.0.trace_of(&intent.network));
        object.spec = Some(stated);
        // One that appeared meanwhile is not taken over: its fields belong to somebody else.
        kept.apply_spec(&object, expected.is_some()).await?;
        Ok(Written::Changed)
    }

    async fn delete_intent(
        &self,
        network: &NetworkName,
        gateway: &GatewayName,
        expected: &Meta,
    ) -> Result<Written, Error> {
        let (kept, name) = (&self.0.intents, format!("{network}.{gateway}"));
        let Some(known) = kept.good(&name)? else { return Ok(Written::Same) };
        check_ours(&known)?;
        check_uid(&known, expected)?;
        let is_deleted = known.metadata.deletion_timestamp.is_some();
        if is_held(&known.metadata) {
            let mut object = Object::new(of_uid(&name, &expected.uid.0));
            mark_managed(&mut object.metadata);
            object.spec.clone_from(&known.spec);
            kept.apply_spec(&object, true).await?;
        }
        if is_deleted {
            // It went with the last hold on it.
            kept.mirror.forget(&name, Some(&expected.uid.0));
            return Ok(Written::Changed);
        }
        kept.delete(&name, &expected.uid.0).await
    }

    async fn grant(&self, gateway: &GatewayName, networks: &BTreeSet<NetworkName>) -> Result<Written, Error> {
        self.0.rights.grant(gateway, networks).await
    }

    async fn write_gateway_networks(
        &self,
        gateway: &GatewayName,
        networks: &BTreeMap<NetworkName, Option<IpAddr>>,
    ) -> Result<Written, Error> {
        let (kept, name) = (&self.0.gateways, gateway.as_str());
        let missing = || Error::NotFound { kind: GatewaySpec::PLURAL, name: name.to_owned() };
        let known = kept.good(name)?.ok_or_else(missing)?;
        let stated = gateway::networks_to_api(networks);
        if known.status.clone().unwrap_or_default().networks == stated.networks {
            return Ok(Written::Same);
        }
        kept.apply_status_of(&known, stated).await
    }
}

/// Metadata that names an object in the version that was read.
fn of_version(name: &str, expected: &Meta) -> Metadata {
    let mut metadata = of_uid(name, &expected.uid.0);
    metadata.resource_version = Some(expected.resource_version.clone());
    metadata
}

fn check_version<S: Kind>(known: &Object<S>, expected: &Meta) -> Result<(), Error> {
    check_uid(known, expected)?;
    if known.metadata.resource_version.as_deref() == Some(expected.resource_version.as_str()) {
        Ok(())
    } else {
        Err(conflict::<S>(&known.metadata.name, Conflict::Changed))
    }
}

fn check_ours(known: &Object<WorkerSliceConfigSpec>) -> Result<(), Error> {
    if is_managed(&known.metadata) {
        Ok(())
    } else {
        Err(Error::NotManaged { name: known.metadata.name.clone() })
    }
}
