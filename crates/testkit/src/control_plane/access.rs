//! Who may speak to a control plane and how: tokens, kubeconfigs, clients. It refuses rights: those come from role
//! bindings, as on any cluster.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};

use super::{ControlPlane, ControlPlaneError, programs::write_private};

/// In seconds.
const HOUR: i64 = 3600;

/// The user who may do everything.
pub const ADMIN: &str = "admin";

/// A user with a token.
#[derive(Debug, Clone)]
pub struct User {
    /// The name, in role bindings and in the ledger.
    pub name: String,
    /// Its groups.
    pub groups: Vec<String>,
}

impl User {
    /// A user without groups.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), groups: Vec::new() }
    }
}

/// Everything that a client needs.
#[derive(Debug)]
pub(super) struct Access {
    name: String,
    pub(super) users: Vec<User>,
    tokens: Mutex<BTreeMap<String, String>>,
    pub(super) port: u16,
    pub(super) ca: String,
}

impl Access {
    /// Tokens for all users; port and authority come when the API server is there.
    pub(super) fn new(name: &str, mut users: Vec<User>) -> Result<Self, ControlPlaneError> {
        users.push(User { name: ADMIN.to_owned(), groups: vec!["system:masters".to_owned()] });
        let tokens: Result<_, ControlPlaneError> =
            users.iter().map(|user| Ok((user.name.clone(), random_token()?))).collect();
        Ok(Self { name: name.to_owned(), users, tokens: Mutex::new(tokens?), port: 0, ca: String::new() })
    }

    pub(super) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    pub(super) fn token(&self, user: &str) -> Result<String, ControlPlaneError> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens
            .get(user)
            .cloned()
            .ok_or_else(|| ControlPlaneError::UnknownUser { name: self.name.clone(), user: user.to_owned() })
    }

    /// The kubeconfig of one user for a server that is reached by `url`.
    pub(super) fn kubeconfig(&self, user: &str, url: &str) -> Result<String, ControlPlaneError> {
        Ok(self.kubeconfig_of(url, Some((user, &self.token(user)?))))
    }

    /// The same for somebody with this name and token, or for nobody.
    pub(super) fn kubeconfig_of(&self, url: &str, user: Option<(&str, &str)>) -> String {
        let (name, ca) = (&self.name, STANDARD.encode(&self.ca));
        let (user, login) = match user {
            Some((user, token)) => (user, format!("token: {token}")),
            None => ("nobody", "{}".to_owned()),
        };
        // Several kubeconfigs are joined by name: a user of another cluster is another one.
        let user = format!("{name}/{user}");
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {name}\nclusters:\n- name: {name}\n  cluster:\n    \
             server: {url}\n    tls-server-name: 127.0.0.1\n    certificate-authority-data: {ca}\nusers:\n\
             - name: {user:?}\n  user:\n    {login}\ncontexts:\n- name: {name}\n  context:\n    \
             cluster: {name}\n    user: {user:?}\n"
        )
    }

    /// A client; made anew, because it belongs to the runtime in which it is made.
    pub(super) async fn client(&self, user: &str) -> Result<Client, ControlPlaneError> {
        let failed = |source| ControlPlaneError::Client { user: user.to_owned(), source };
        let text = self.kubeconfig(user, &self.url())?;
        let kubeconfig = Kubeconfig::from_yaml(&text).map_err(|source| failed(Box::new(source)))?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|source| failed(Box::new(source)))?;
        Client::try_from(config).map_err(|source| failed(Box::new(source)))
    }
}

impl ControlPlane {
    /// The kubeconfig of a user, with one context named like the control plane.
    ///
    /// # Errors
    /// There is no such user.
    pub fn kubeconfig(&self, user: &str) -> Result<String, ControlPlaneError> {
        self.access.kubeconfig(user, &self.url())
    }

    /// The same as a file, which stays as long as the control plane.
    ///
    /// # Errors
    /// There is no such user, or the file could not be written.
    pub fn kubeconfig_file(&self, user: &str) -> Result<PathBuf, ControlPlaneError> {
        let path = self.folder.join(format!("{}.kubeconfig", user.replace([':', '/'], "-")));
        write_private(&path, &self.kubeconfig(user)?)?;
        Ok(path)
    }

    /// A client of a user. It belongs to the runtime in which it is made.
    ///
    /// # Errors
    /// There is no such user.
    pub async fn client(&self, user: &str) -> Result<Client, ControlPlaneError> {
        self.access.client(user).await
    }

    /// A service account with a token as pods get them, bound and expiring after `seconds` (600 at least). Returns its
    /// user name, which the other functions take. The account is made where there is none.
    ///
    /// # Errors
    /// The namespace does not exist.
    pub async fn service_account(
        &self,
        namespace: &str,
        name: &str,
        seconds: i64,
    ) -> Result<String, ControlPlaneError> {
        let failed = |source| ControlPlaneError::Request {
            action: format!("making a token of the service account {namespace}/{name}"),
            source: Box::new(source),
        };
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(ADMIN).await?, namespace);
        if accounts.get_opt(name).await.map_err(failed)?.is_none() {
            let mut account = ServiceAccount::default();
            account.metadata.name = Some(name.to_owned());
            accounts.create(&PostParams::default(), &account).await.map_err(failed)?;
        }
        let spec = TokenRequestSpec { expiration_seconds: Some(seconds), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let answer =
            accounts.create_token_request(name, &PostParams::default(), &request).await.map_err(failed)?;
        let user = format!("system:serviceaccount:{namespace}:{name}");
        let token = answer.status.map(|status| status.token).unwrap_or_default();
        self.access.tokens.lock().unwrap_or_else(PoisonError::into_inner).insert(user.clone(), token);
        Ok(user)
    }

    /// A service account with its rights, good for an hour, in a namespace that is made where there is none. Without
    /// `role` somebody else makes the role that `binding` names. Returns its user name.
    ///
    /// # Errors
    /// The server refused something.
    pub async fn account(
        &self,
        namespace: &str,
        name: &str,
        role: Option<&Role>,
        binding: &RoleBinding,
    ) -> Result<String, ControlPlaneError> {
        self.namespace(namespace).await?;
        if let Some(role) = role {
            self.apply_object(namespace, role).await?;
        }
        self.apply_object(namespace, binding).await?;
        self.service_account(namespace, name, HOUR).await
    }
}

fn random_token() -> Result<String, ControlPlaneError> {
    let mut bytes = [0u8; 24];
    getrandom::fill(&mut bytes).map_err(|error| ControlPlaneError::Keys { reason: error.to_string() })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
