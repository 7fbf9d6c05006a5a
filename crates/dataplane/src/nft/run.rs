//! Runs `nft`. It refuses to wait for ever and to pass anything on a command line but fixed words.

use std::{process::Stdio, time::Duration};

use nftables::schema::Nftables;
use serde_json::Value;
use tokio::{io::AsyncWriteExt, process::Command};

use super::Error;

const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The program, found by the search path.
pub(super) struct Nft {
    program: String,
}

impl Default for Nft {
    fn default() -> Self {
        Self { program: "nft".to_owned() }
    }
}

impl Nft {
    /// What it says of its version, as in `v1.0.6`.
    pub(super) async fn version(&self) -> Result<String, Error> {
        let output = self.run("tell its version", &["--version"], None).await?;
        let word = output.split_whitespace().find(|word| word.starts_with('v') && word.contains('.'));
        Ok(word.unwrap_or(&output).to_owned())
    }

    /// A table as JSON; `None`: it is not there.
    pub(super) async fn list(&self, family: &str, table: &str) -> Result<Option<Value>, Error> {
        match self.run("list the packet filter table", &["-j", "list", "table", family, table], None).await {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(Error::Listing),
            Err(Error::Failed { cause, .. }) if cause.contains("No such file or directory") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Applies commands in one transaction.
    pub(super) async fn apply(&self, what: &'static str, commands: &Nftables<'_>) -> Result<(), Error> {
        let mut commands = serde_json::to_value(commands).map_err(Error::Listing)?;
        spell_notrack(&mut commands);
        self.apply_json(what, &commands).await
    }

    /// The same, as `nft` reads it.
    pub(super) async fn apply_json(&self, what: &'static str, commands: &Value) -> Result<(), Error> {
        self.run(what, &["-j", "-f", "-"], Some(commands.to_string())).await.map(drop)
    }

    async fn run(&self, what: &'static str, words: &[&str], input: Option<String>) -> Result<String, Error> {
        let mut command = Command::new(&self.program);
        command.args(words).env("LC_ALL", "C").kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(Error::Missing)?;
        let stdin = child.stdin.take();
        let feed = async move {
            if let (Some(mut stdin), Some(text)) = (stdin, input) {
                // A program that ends early says why on its standard error.
                let _ = stdin.write_all(text.as_bytes()).await;
            }
        };
        let both = async { tokio::join!(feed, child.wait_with_output()).1 };
        let ended = tokio::time::timeout(TIME_LIMIT, both).await.map_err(|_| Error::TimedOut { what })?;
        let output = ended.map_err(Error::Missing)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let cause = String::from_utf8_lossy(&output.stderr).trim().chars().take(600).collect();
        Err(Error::Failed { what, cause })
    }
}

/// The schema crate writes this one statement as a bare word, which `nft` does not take.
fn spell_notrack(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(spell_notrack),
        Value::Object(fields) => fields.values_mut().for_each(spell_notrack),
        Value::String(word) if word == "notrack" => *value = serde_json::json!({ "notrack": null }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_nft_the_error_says_what_to_install() {
        let nft = Nft { program: "/nonexistent/nft".to_owned() };
        let error = nft.version().await.unwrap_err();
        assert!(matches!(error, Error::Missing(_)));
        assert!(error.to_string().contains("install the package `nftables`"), "{error}");
    }
}
