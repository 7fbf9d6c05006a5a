//! `--uninstall`: the control store as one that wants nothing of this host, so that the ordinary passes take everything
//! away in the ordinary order. It refuses to read or write the real one.

use std::convert::Infallible;

use spanwire_engine::{
    Class, Gateway, GatewayFacts, GatewayName, Meta, NetworkName, WorkerStatus,
    port::{Fault, WorkerStore, WorkerView, Written},
};

/// A control store in which the gateway exists and is in no network.
#[derive(Debug, Clone, Copy)]
pub struct WantsNothing;

/// [`WantsNothing`] never fails.
#[derive(Debug, thiserror::Error)]
#[error("never")]
pub struct Never(Infallible);

impl Fault for Never {
    fn class(&self) -> Class {
        match self.0 {}
    }
}

impl WorkerStore for WantsNothing {
    type Error = Never;

    async fn read(&self, gateway: &GatewayName) -> Result<WorkerView, Never> {
        let gateways = [(gateway.clone(), Gateway::default())].into();
        Ok(WorkerView { gateways, ..WorkerView::default() })
    }

    async fn write_gateway_facts(&self, _: &GatewayName, _: &GatewayFacts) -> Result<Written, Never> {
        Ok(Written::Same)
    }

    async fn write_intent_status(
        &self,
        _: &GatewayName,
        _: &NetworkName,
        _: &WorkerStatus,
        _: &Meta,
    ) -> Result<Written, Never> {
        Ok(Written::Same)
    }
}
