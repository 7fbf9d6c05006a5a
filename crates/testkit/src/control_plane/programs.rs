//! How etcd and the API server are called: their files and arguments. It refuses to listen anywhere but on loopback,
//! and lets etcd listen on a socket in its folder alone.

use std::{
    ffi::OsString,
    fs,
    io::Write as _,
    net::TcpListener,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use aws_lc_rs::{
    encoding::{AsDer as _, PublicKeyX509Der},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{ControlPlaneError, access::Access, assets::Assets};
use crate::process::Program;

/// Every request once, without bodies.
const POLICY: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n";

const SIGNING: &str = "signing.pem";
const VERIFYING: &str = "verifying.pem";

/// Files of a control plane.
pub(super) fn audit_log(folder: &Path) -> PathBuf {
    folder.join("audit.log")
}

pub(super) fn data(folder: &Path) -> PathBuf {
    folder.join("etcd")
}

pub(super) fn etcd_socket(folder: &Path) -> PathBuf {
    folder.join("etcd.sock")
}

/// The API server makes its certificate itself; its authority stands in the same file.
pub(super) fn certificate(folder: &Path) -> PathBuf {
    folder.join("certificates/apiserver.crt")
}

/// Writes what both programs read.
pub(super) fn prepare(folder: &Path, access: &Access) -> Result<(), ControlPlaneError> {
    let mut tokens = String::new();
    for user in &access.users {
        let groups = user.groups.join(",");
        let (name, token) = (&user.name, access.token(&user.name)?);
        tokens.push_str(&format!("{token},{name},{name},\"{groups}\"\n"));
    }
    write_private(&folder.join("tokens.csv"), &tokens)?;
    write_private(&folder.join("policy.yaml"), POLICY)?;
    let (private, public) = signing_key()?;
    write_private(&folder.join(SIGNING), &private)?;
    write_private(&folder.join(VERIFYING), &public)
}

/// The key of service account tokens, private and public, as PEM.
fn signing_key() -> Result<(String, String), ControlPlaneError> {
    let failed = |error: &dyn std::fmt::Display| ControlPlaneError::Keys { reason: error.to_string() };
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let private =
        EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).map_err(|error| failed(&error))?;
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, private.as_ref()).map_err(|error| failed(&error))?;
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der().map_err(|error| failed(&error))?;
    Ok((pem("PRIVATE KEY", private.as_ref()), pem("PUBLIC KEY", public.as_ref())))
}

fn pem(kind: &str, bytes: &[u8]) -> String {
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", STANDARD.encode(bytes))
}

/// Below the range from which the kernel gives ports to connections, so that a stopped server finds its port again.
pub(super) fn free_port() -> Result<u16, ControlPlaneError> {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    const ATTEMPTS: usize = 200;
    for _ in 0..ATTEMPTS {
        let mut bytes = [0; 2];
        getrandom::fill(&mut bytes).map_err(|error| ControlPlaneError::Keys { reason: error.to_string() })?;
        let port = FIRST + u16::from_le_bytes(bytes) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(ControlPlaneError::Keys { reason: format!("no free port in {FIRST}..{}", FIRST + COUNT) })
}

pub(super) fn etcd(assets: &Assets, folder: &Path) -> Program {
    let socket = |name: &str| format!("unix://{}", folder.join(name).display());
    let client = format!("unix://{}", etcd_socket(folder).display());
    let arguments = [
        flag("data-dir", data(folder)),
        flag("name", "test"),
        flag("listen-client-urls", &client),
        flag("advertise-client-urls", &client),
        flag("listen-peer-urls", socket("peer.sock")),
        // The folder goes with the process; nothing has to survive the machine.
        "--unsafe-no-fsync".into(),
        flag("log-level", "warn"),
    ];
    program("etcd", &assets.etcd, arguments.into(), folder)
}

pub(super) fn api_server(assets: &Assets, folder: &Path, port: u16) -> Program {
    let arguments = [
        flag("etcd-servers", format!("unix://{}", etcd_socket(folder).display())),
        flag("bind-address", "127.0.0.1"),
        flag("secure-port", port.to_string()),
        // Else it asks for the default route, which a namespace need not have. Nobody is told of this address.
        flag("advertise-address", "192.0.2.1"),
        flag("endpoint-reconciler-type", "none"),
        flag("cert-dir", folder.join("certificates")),
        flag("token-auth-file", folder.join("tokens.csv")),
        flag("authorization-mode", "RBAC"),
        flag("service-account-issuer", "https://kubernetes.default.svc"),
        flag("service-account-key-file", folder.join(VERIFYING)),
        flag("service-account-signing-key-file", folder.join(SIGNING)),
        flag("service-cluster-ip-range", "10.0.0.0/24"),
        // There is no controller manager that would make the account which it asks for.
        flag("disable-admission-plugins", "ServiceAccount"),
        flag("audit-policy-file", folder.join("policy.yaml")),
        flag("audit-log-path", audit_log(folder)),
        // In megabytes; a ledger in two files would be read as half.
        flag("audit-log-maxsize", "100000"),
        flag("shutdown-delay-duration", "0s"),
    ];
    program("kube-apiserver", &assets.api_server, arguments.into(), folder)
}

fn program(name: &str, path: &Path, arguments: Vec<OsString>, folder: &Path) -> Program {
    Program {
        name: name.to_owned(),
        path: path.to_owned(),
        arguments,
        variables: Vec::new(),
        host: None,
        log: folder.join(format!("{name}.log")),
    }
}

fn flag(name: &str, value: impl AsRef<std::ffi::OsStr>) -> OsString {
    let mut flag = OsString::from(format!("--{name}="));
    flag.push(value);
    flag
}

/// Tokens and keys are for this user alone.
pub(super) fn write_private(path: &Path, text: &str) -> Result<(), ControlPlaneError> {
    let failed = |source| ControlPlaneError::File { path: path.to_owned(), source };
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)
}
