//! `spanwirectl join`: what to apply on each side for a new worker cluster. It refuses to apply anything itself; the one
//! thing that it makes is the token that it was asked for.

mod ask;
mod control;
mod document;
mod error;
mod server;
mod worker;

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use ipnet::IpNet;
use spanwire_engine::GatewayName;
use spanwire_store::{Place, cluster::Connection};

pub use error::Error;

/// How long all questions to the control cluster may take.
const ASKED: Duration = Duration::from_secs(30);

/// `spanwirectl join`.
#[derive(Debug, Args)]
pub(crate) struct Join {
    /// Name of the new gateway: one label, as the worker's --gateway
    gateway: GatewayName,
    /// Which cluster to print for
    #[arg(long, value_enum, default_value = "control")]
    side: Side,
    /// Prefix behind the gateway. May be repeated. --side control
    #[arg(long = "subnet", value_name = "PREFIX", value_parser = subnet)]
    subnets: Vec<IpNet>,
    /// DNS name or address that others dial [default: what the worker finds]. --side control
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Address of the control cluster's API server as the worker reaches it [default: that of the kubeconfig's context].
    /// --side worker
    #[arg(long, value_name = "URL", value_parser = server)]
    server: Option<String>,
    /// How long the token is good: 10m at least; the control cluster may give less. --side worker
    #[arg(long, value_name = "DURATION", default_value = "720h", value_parser = duration)]
    duration: Duration,
    /// Namespace of the worker in its own cluster. --side worker
    #[arg(long, value_name = "NAMESPACE", default_value = "spanwire")]
    worker_namespace: String,
    /// PEM file of the authority of the control cluster's API server [default: that of the kubeconfig's context].
    /// --side worker
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// How to print
    #[arg(short, long, value_name = "FORM", default_value = "yaml")]
    output: Form,
}

/// A cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Side {
    /// The Gateway, its worker's account, and what this may do
    Control,
    /// The Secret by which the worker reaches the control cluster; makes a token
    Worker,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// With comments
    Yaml,
    /// One List
    Json,
}

/// What goes to standard output, and what is said to the person besides.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) text: String,
    pub(crate) notes: String,
}

impl Join {
    /// Asks the control cluster, and prints.
    pub(crate) async fn run(self, control: &Place, namespace: Option<&str>) -> Result<Printed, Error> {
        let Place::Kube { context } = control else { return Err(Error::NoApiServer(control.clone())) };
        let asked = async {
            let connection =
                Connection::open(context.as_deref(), namespace).await.map_err(Error::Connection)?;
            match self.side {
                Side::Control => self.for_control(&connection).await,
                Side::Worker => self.for_worker(&connection, context.as_deref()).await,
            }
        };
        tokio::time::timeout(ASKED, asked).await.map_err(|_| Error::Late(ASKED))?
    }

    async fn for_control(&self, connection: &Connection) -> Result<Printed, Error> {
        let Self { gateway, subnets, host, output, .. } = self;
        if subnets.is_empty() {
            return Err(Error::NoSubnet);
        }
        let namespace = connection.namespace();
        let spec = control::spec(subnets, host.as_deref());
        ask::namespace(connection).await?;
        ask::no_other_gateway(connection, gateway, &spec).await?;
        let documents = control::documents(namespace, gateway, &spec)?;
        let notes = format!(
            "Apply this in the control cluster, in namespace {namespace}; then `spanwirectl join {gateway} --side worker`.\n"
        );
        Ok(Printed { text: document::print(&documents, *output)?, notes })
    }

    async fn for_worker(&self, connection: &Connection, context: Option<&str>) -> Result<Printed, Error> {
        let server = server::of(context, self.server.as_deref(), self.ca_file.as_deref())?;
        ask::namespace(connection).await?;
        let token = ask::token(connection, &self.gateway, self.duration).await?;
        let access = worker::Access {
            gateway: &self.gateway,
            namespace: connection.namespace(),
            worker_namespace: &self.worker_namespace,
            server: &server,
        };
        let documents = [access.secret(&token.secret)?];
        let notes = access.notes(&token, self.duration);
        Ok(Printed { text: document::print(&documents, self.output)?, notes })
    }
}

fn subnet(text: &str) -> Result<IpNet, String> {
    let prefix: IpNet =
        text.parse().map_err(|_| "use a prefix, such as 10.7.1.0/24 or fd00:7::/48".to_owned())?;
    if prefix == prefix.trunc() {
        Ok(prefix)
    } else {
        Err(format!("it has host bits: use {}", prefix.trunc()))
    }
}

fn server(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").unwrap_or_default();
    if host.is_empty() || host.starts_with('/') {
        Err("use the address of an API server, such as https://control.example:6443".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    /// What API servers take at least.
    const LEAST: Duration = Duration::from_secs(600);
    let duration: spanwire_api::Duration = text.parse().map_err(|fault| format!("{fault}"))?;
    if duration.0 < LEAST { Err("API servers give 10m at least".to_owned()) } else { Ok(duration.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_judged_at_the_edge() {
        assert!(subnet("10.7.1.5/24").unwrap_err().contains("use 10.7.1.0/24"));
        assert!(subnet("berlin").is_err());
        assert!(server("control.example").unwrap_err().contains("https://control.example:6443"));
        assert_eq!(server("https://control.example:6443").as_deref(), Ok("https://control.example:6443"));
        assert_eq!(duration("720h"), Ok(Duration::from_secs(720 * 3600)));
        assert!(duration("1m").unwrap_err().contains("10m"));
        assert!(duration("30").is_err());
    }
}
