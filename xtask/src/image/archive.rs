//! The file that people load: an image layout of OCI and, by one more list, an archive of `docker save`. It refuses to hold
//! a blob twice, and anything that its inputs do not decide.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{
    architecture::Architecture,
    commit::Commit,
    layer::{self, Layer, digest},
    tree::Tree,
};

/// What stands in the configuration of the image besides its layers.
#[derive(Debug)]
pub(crate) struct About<'a> {
    /// Which machines it is for.
    pub(crate) architecture: Architecture,
    /// What it was made from.
    pub(crate) commit: &'a Commit,
    /// Name and tag.
    pub(crate) tag: &'a str,
    /// Labels without their common prefix.
    pub(crate) labels: &'a [(&'static str, String)],
}

/// A finished image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// The file.
    pub(crate) bytes: Vec<u8>,
    /// The digest by which registries know it.
    pub(crate) digest: String,
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const LABELS: &str = "org.opencontainers.image.";

/// Puts an image together.
pub(crate) fn image(about: &About<'_>, layers: &[Layer]) -> Result<Image> {
    let mut blobs = Blobs::default();
    let config = blobs.json(CONFIG, &config(about, layers)?)?;
    let packed = layers.iter().map(|layer| blobs.bytes(LAYER, layer.packed.clone()));
    let packed = packed.collect::<Result<Vec<Value>>>()?;
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": packed});
    let mut manifest = blobs.json(MANIFEST, &manifest)?;
    let digest = manifest["digest"].as_str().context("a manifest has a digest")?.to_owned();
    let short = about.tag.rsplit_once(':').map_or("latest", |(_, short)| short);
    manifest["platform"] = json!({"architecture": about.architecture.name(), "os": "linux"});
    // The short name by which OCI's tools find it, and the full one for containerd.
    manifest["annotations"] =
        json!({"io.containerd.image.name": full_name(about.tag), "org.opencontainers.image.ref.name": short});
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest],
    });
    let docker = json!([{
        "Config": blob_path(&config)?,
        "RepoTags": [about.tag],
        "Layers": packed.iter().map(blob_path).collect::<Result<Vec<_>>>()?,
    }]);
    let mut tree = blobs.0;
    tree.text("oci-layout", json!({"imageLayoutVersion": "1.0.0"}).to_string())?;
    tree.text("index.json", index.to_string())?;
    tree.text("manifest.json", docker.to_string())?;
    Ok(Image { bytes: layer::archive(&tree, about.commit.seconds)?, digest })
}

/// What a container of this image runs, and what it says of itself.
fn config(about: &About<'_>, layers: &[Layer]) -> Result<Value> {
    let created = about.commit.moment()?;
    let labels: serde_json::Map<String, Value> =
        about.labels.iter().map(|(name, text)| (format!("{LABELS}{name}"), json!(text))).collect();
    let history = layers.iter().map(
        |layer| json!({"created": created, "created_by": "cargo xtask image", "comment": layer.purpose}),
    );
    Ok(json!({
        "created": created,
        "architecture": about.architecture.name(),
        "os": "linux",
        "config": {
            "User": "0",
            "Env": ["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "Entrypoint": ["/usr/local/bin/spanwire"],
            "WorkingDir": "/",
            "Labels": labels,
        },
        "rootfs": {
            "type": "layers",
            "diff_ids": layers.iter().map(|layer| &layer.unpacked_digest).collect::<Vec<_>>(),
        },
        "history": history.collect::<Vec<_>>(),
    }))
}

/// A name with its registry, as Docker completes it.
fn full_name(tag: &str) -> String {
    match tag.split_once('/') {
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => tag.to_owned(),
        Some(_) => format!("docker.io/{tag}"),
        None => format!("docker.io/library/{tag}"),
    }
}

/// Content that goes by its digest.
#[derive(Debug, Default)]
struct Blobs(Tree);

impl Blobs {
    /// Adds one; its descriptor.
    fn bytes(&mut self, media_type: &str, bytes: Vec<u8>) -> Result<Value> {
        let descriptor = json!({"mediaType": media_type, "digest": digest(&bytes), "size": bytes.len()});
        self.0.text(&blob_path(&descriptor)?, bytes)?;
        Ok(descriptor)
    }

    fn json(&mut self, media_type: &str, value: &Value) -> Result<Value> {
        self.bytes(media_type, serde_json::to_vec(value).context("writing JSON")?)
    }
}

fn blob_path(descriptor: &Value) -> Result<String> {
    let digest = descriptor["digest"].as_str().context("a descriptor has a digest")?;
    Ok(format!("blobs/{}", digest.replace(':', "/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Image {
        let commit = Commit { id: "c".repeat(40), seconds: 1_700_000_000, clean: true };
        let mut tree = Tree::default();
        tree.program("usr/local/bin/spanwire", vec![1, 2, 3]).unwrap();
        let layer = Layer::of(&tree, commit.seconds, "ours".to_owned()).unwrap();
        let labels = [("version", "1.2.3".to_owned())];
        let about = About {
            architecture: Architecture::Amd64,
            commit: &commit,
            tag: "spanwire:1.2.3",
            labels: &labels,
        };
        image(&about, &[layer]).unwrap()
    }

    fn parsed(tree: &Tree, path: &str) -> Value {
        serde_json::from_slice(tree.content(path).unwrap_or_else(|| panic!("no {path}"))).unwrap()
    }

    fn blob<'a>(tree: &'a Tree, descriptor: &Value) -> &'a [u8] {
        let content = tree.content(&blob_path(descriptor).unwrap()).unwrap();
        assert_eq!(descriptor["digest"], digest(content));
        assert_eq!(descriptor["size"], content.len());
        content
    }

    #[test]
    fn every_descriptor_leads_to_what_it_describes() {
        let image = made();
        let tree = Tree::from_tar(image.bytes.as_slice()).unwrap();
        assert_eq!(parsed(&tree, "oci-layout")["imageLayoutVersion"], "1.0.0");
        let index = parsed(&tree, "index.json");
        assert_eq!(index["manifests"][0]["digest"], image.digest.as_str());
        let annotations = &index["manifests"][0]["annotations"];
        assert_eq!(annotations["io.containerd.image.name"], "docker.io/library/spanwire:1.2.3");
        let manifest: Value = serde_json::from_slice(blob(&tree, &index["manifests"][0])).unwrap();
        let config: Value = serde_json::from_slice(blob(&tree, &manifest["config"])).unwrap();
        let mut layer = Vec::new();
        let packed = blob(&tree, &manifest["layers"][0]);
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut layer).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], digest(&layer));
        assert_eq!(config["config"]["Entrypoint"][0], "/usr/local/bin/spanwire");
        assert_eq!(config["config"]["Labels"]["org.opencontainers.image.version"], "1.2.3");
        assert_eq!(config["created"], "2023-11-14T22:13:20Z");
        let inside = Tree::from_tar(layer.as_slice()).unwrap();
        assert_eq!(inside.content("usr/local/bin/spanwire"), Some(&[1, 2, 3][..]));
    }

    #[test]
    fn docker_finds_the_same_blobs() {
        let tree = Tree::from_tar(made().bytes.as_slice()).unwrap();
        let docker = parsed(&tree, "manifest.json");
        assert_eq!(docker[0]["RepoTags"][0], "spanwire:1.2.3");
        for path in [&docker[0]["Config"], &docker[0]["Layers"][0]] {
            assert!(tree.content(path.as_str().unwrap()).is_some(), "{path}");
        }
    }

    #[test]
    fn the_same_inputs_give_the_same_image() {
        assert_eq!(made(), made());
    }

    #[test]
    fn names_are_completed_as_docker_does() {
        for (tag, full) in [
            ("spanwire:1", "docker.io/library/spanwire:1"),
            ("team/spanwire:1", "docker.io/team/spanwire:1"),
            ("registry.example:5000/spanwire:1", "registry.example:5000/spanwire:1"),
            ("localhost/spanwire:1", "localhost/spanwire:1"),
        ] {
            assert_eq!(full_name(tag), full);
        }
    }
}
