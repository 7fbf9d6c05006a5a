//! A tree as a layer of an image: the same bytes for the same tree and moment, on every machine. It refuses to look at a
//! clock or at files.

use std::{collections::BTreeMap, io::Write as _};

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

use super::tree::{Node, Tree};

/// A packed layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layer {
    /// The packed bytes.
    pub(crate) packed: Vec<u8>,
    /// SHA-256 of the bytes before they were packed: images call it the diff id.
    pub(crate) unpacked_digest: String,
    /// What it is, for the history of the image.
    pub(crate) purpose: String,
}

impl Layer {
    /// Packs a tree; everything is of the moment `seconds`, since 1970.
    pub(crate) fn of(tree: &Tree, seconds: u64, purpose: String) -> Result<Self> {
        let unpacked = archive(tree, seconds).context("packing a layer")?;
        let unpacked_digest = digest(&unpacked);
        let packed = packed(&unpacked).context("compressing a layer")?;
        Ok(Self { packed, unpacked_digest, purpose })
    }
}

/// Compressed by gzip, without a name, a time or a system in its head.
pub(crate) fn packed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut packer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    packer.write_all(bytes)?;
    Ok(packer.finish()?)
}

/// SHA-256 as images write it.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hexadecimal(bytes))
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An uncompressed tar archive, sorted, with every folder on the way.
pub(crate) fn archive(tree: &Tree, seconds: u64) -> Result<Vec<u8>> {
    let mut entries: BTreeMap<&str, Option<&Node>> = BTreeMap::new();
    for (path, node) in tree.entries() {
        for (end, _) in path.match_indices('/') {
            entries.entry(&path[..end]).or_default();
        }
        entries.insert(path, Some(node));
    }
    let mut builder = Builder::new(Vec::new());
    for (path, node) in entries {
        let node = node.unwrap_or(&Node::Folder { mode: 0o755 });
        append(&mut builder, path, node, seconds).with_context(|| format!("adding /{path}"))?;
    }
    builder.into_inner().context("closing an archive")
}

fn append(builder: &mut Builder<Vec<u8>>, path: &str, node: &Node, seconds: u64) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_mtime(seconds);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    match node {
        Node::Folder { mode } => {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(*mode);
            builder.append_data(&mut header, format!("{path}/"), &[][..])?;
        }
        Node::File { mode, content } => {
            header.set_entry_type(EntryType::Regular);
            header.set_mode(*mode);
            header.set_size(content.len() as u64);
            builder.append_data(&mut header, path, content.as_slice())?;
        }
        Node::Link { target } => {
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            builder.append_link(&mut header, path, target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same entries, added in another order.
    fn fixture(backwards: bool) -> Tree {
        let mut steps: Vec<fn(&mut Tree)> = vec![
            |tree| tree.program("usr/local/bin/spanwire", vec![7; 3000]).unwrap(),
            |tree| tree.text("etc/passwd", "root:x:0:0\n").unwrap(),
            |tree| tree.link("lib", "usr/lib").unwrap(),
            |tree| tree.folder("tmp", 0o1777).unwrap(),
            |tree| tree.text(&format!("usr/share/{}/name", "long".repeat(60)), "x").unwrap(),
        ];
        if backwards {
            steps.reverse();
        }
        let mut tree = Tree::default();
        steps.iter().for_each(|step| step(&mut tree));
        tree
    }

    #[test]
    fn the_same_tree_gives_the_same_bytes() {
        let pack = |backwards, seconds| Layer::of(&fixture(backwards), seconds, "x".to_owned()).unwrap();
        assert_eq!(pack(false, 1_700_000_000), pack(true, 1_700_000_000));
        assert_ne!(pack(false, 1_700_000_000).packed, pack(false, 1_700_000_001).packed);
    }

    #[test]
    fn every_entry_is_roots_and_of_the_given_moment_behind_its_folder() {
        let bytes = archive(&fixture(false), 1_700_000_000).unwrap();
        let mut met = Vec::new();
        for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            assert_eq!(header.mtime().unwrap(), 1_700_000_000);
            let path = entry.path().unwrap().into_owned();
            let parent = path.parent().unwrap().to_owned();
            assert!(parent.as_os_str().is_empty() || met.contains(&parent), "{}", path.display());
            met.push(path);
        }
        assert_eq!(
            Tree::from_tar(bytes.as_slice()).unwrap().content("etc/passwd"),
            Some(&b"root:x:0:0\n"[..])
        );
        assert!(met.iter().any(|path| path.ends_with("usr/local/bin/spanwire")));
    }
}
