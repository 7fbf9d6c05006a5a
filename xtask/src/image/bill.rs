//! The bill of materials beside the image: every crate and every package in it, as CycloneDX. It refuses random numbers: the
//! same image has the same bill.

use anyhow::Result;
use serde_json::{Value, json};

use super::{
    architecture::Architecture,
    commit::Commit,
    crates::Crate,
    layer,
    packages::{NUMBER, Package, Pinned},
};

/// What the bill is of.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    /// Name and tag.
    pub(crate) tag: &'a str,
    /// Version of the programs.
    pub(crate) version: &'a str,
    /// What they were made from.
    pub(crate) commit: &'a Commit,
    /// Which machines they are for.
    pub(crate) architecture: Architecture,
    /// The image's digest.
    pub(crate) digest: &'a str,
}

/// The document.
pub(crate) fn of(subject: &Subject<'_>, crates: &[Crate], packages: &[Package]) -> Result<Value> {
    let Subject { tag, version, commit, architecture, digest } = *subject;
    let components = crates.iter().map(of_crate).chain(packages.iter().map(|each| of_package(&each.pinned)));
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": serial(digest),
        "version": 1,
        "metadata": {
            "timestamp": commit.moment()?,
            "component": {
                "type": "container",
                "bom-ref": tag,
                "name": "spanwire",
                "version": version,
                "licenses": [{"expression": "Apache-2.0"}],
                "properties": [
                    {"name": "spanwire:revision", "value": commit.revision()},
                    {"name": "spanwire:architecture", "value": architecture.name()},
                    {"name": "spanwire:digest", "value": digest},
                ],
            },
        },
        "components": components.collect::<Vec<_>>(),
    }))
}

/// A UUID that the image decides: version 8, of one's own making.
fn serial(digest: &str) -> String {
    let mut digits: Vec<char> = layer::hexadecimal(digest.as_bytes()).chars().take(32).collect();
    digits[12] = '8';
    digits[16] = '8';
    let part = |from: usize, to: usize| digits[from..to].iter().collect::<String>();
    format!("urn:uuid:{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

fn of_crate(each: &Crate) -> Value {
    let purl = format!("pkg:cargo/{}@{}", each.name, escaped(&each.version));
    let mut component = json!({
        "type": "library",
        "bom-ref": purl,
        "name": each.name,
        "version": each.version,
        "purl": purl,
    });
    if !each.licence.is_empty() {
        component["licenses"] = json!([{"expression": each.licence}]);
    }
    if let Some(sha256) = &each.sha256 {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sha256}]);
    }
    component
}

fn of_package(pinned: &Pinned) -> Value {
    let Pinned { architecture, name, version, sha256 } = pinned;
    let purl = format!(
        "pkg:deb/debian/{}@{}?arch={architecture}&distro=debian-{NUMBER}",
        escaped(name),
        escaped(version)
    );
    json!({
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": sha256}],
        "properties": [
            {"name": "spanwire:copyright", "value": format!("/usr/share/doc/{name}/copyright")},
        ],
    })
}

/// As package URLs want it.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '+' => out.push_str("%2B"),
            ':' => out.push_str("%3A"),
            c => out.push(c),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_go_by_their_urls() {
        let pinned = Pinned {
            architecture: "amd64".to_owned(),
            name: "libgmp10".to_owned(),
            version: "2:6.2.1+dfsg1-1.1".to_owned(),
            sha256: "ab".to_owned(),
        };
        let component = of_package(&pinned);
        assert_eq!(
            component["purl"],
            "pkg:deb/debian/libgmp10@2%3A6.2.1%2Bdfsg1-1.1?arch=amd64&distro=debian-12"
        );
        assert_eq!(component["hashes"][0]["content"], "ab");
    }

    #[test]
    fn the_serial_number_is_a_uuid_that_the_digest_decides() {
        let serial = |digest| super::serial(digest);
        assert_eq!(serial("sha256:a"), serial("sha256:a"));
        assert_ne!(serial("sha256:a"), serial("sha256:b"));
        let number = serial("sha256:a");
        let uuid = number.strip_prefix("urn:uuid:").unwrap();
        assert_eq!(uuid.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(uuid[14..].starts_with('8') && uuid[19..].starts_with('8'));
    }
}
