//! A file system in memory: what an image holds, path by path. It refuses a second file at a path, and owners or times of
//! files: all belong to root and are of one moment.

use std::{collections::BTreeMap, io::Read};

use anyhow::{Context as _, Result, bail};

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    /// A folder.
    Folder {
        /// Permissions.
        mode: u32,
    },
    /// A file.
    File {
        /// Permissions.
        mode: u32,
        /// Content.
        content: Vec<u8>,
    },
    /// A symbolic link.
    Link {
        /// Where it leads.
        target: String,
    },
}

/// Entries by path, without a slash at the front. The old places of programs and libraries are the new ones: `lib/a` is
/// `usr/lib/a`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tree(BTreeMap<String, Node>);

/// Folders at the root that are links to those below `usr`.
pub(crate) const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];
/// Links in a row before it is a circle.
const LINKS: usize = 8;

impl Tree {
    /// What a tar archive holds, but for devices.
    pub(crate) fn from_tar(archive: impl Read) -> Result<Self> {
        let mut tree = Self::default();
        let mut archive = tar::Archive::new(archive);
        for entry in archive.entries().context("reading an archive")? {
            let mut entry = entry.context("reading an archive")?;
            let path = entry.path().context("reading a path of an archive")?.to_string_lossy().into_owned();
            let mode = entry.header().mode().context("reading the mode of a file")? & 0o7777;
            let kind = entry.header().entry_type();
            let node = if kind.is_dir() {
                Node::Folder { mode }
            } else if kind.is_symlink() || kind.is_hard_link() {
                let target = entry.link_name().context("reading a link")?.context("a link leads nowhere")?;
                let target = target.to_string_lossy().into_owned();
                // A hard link counts from the root.
                Node::Link { target: if kind.is_symlink() { target } else { format!("/{}", plain(&target)) } }
            } else if kind.is_file() {
                let mut content = Vec::new();
                entry.read_to_end(&mut content).with_context(|| format!("reading {path}"))?;
                Node::File { mode, content }
            } else {
                continue;
            };
            tree.0.insert(plain(&path), node);
        }
        Ok(tree)
    }

    /// Adds an entry.
    pub(crate) fn add(&mut self, path: &str, node: Node) -> Result<()> {
        let path = plain(path);
        match self.0.get(&path) {
            Some(there) if *there != node => bail!("two different files are to stand at /{path}"),
            _ => self.0.insert(path, node),
        };
        Ok(())
    }

    /// Adds a file that everybody may read.
    pub(crate) fn text(&mut self, path: &str, content: impl Into<Vec<u8>>) -> Result<()> {
        self.add(path, Node::File { mode: 0o644, content: content.into() })
    }

    /// Adds a program.
    pub(crate) fn program(&mut self, path: &str, content: Vec<u8>) -> Result<()> {
        self.add(path, Node::File { mode: 0o755, content })
    }

    /// Adds a link.
    pub(crate) fn link(&mut self, path: &str, target: &str) -> Result<()> {
        self.add(path, Node::Link { target: target.to_owned() })
    }

    /// Adds a folder.
    pub(crate) fn folder(&mut self, path: &str, mode: u32) -> Result<()> {
        self.add(path, Node::Folder { mode })
    }

    /// Adds what is at `path` in another tree, with everything on the way where it is a link.
    pub(crate) fn take(&mut self, from: &Self, path: &str) -> Result<()> {
        for (path, node) in from.way(path)? {
            self.add(&path, node.clone())?;
        }
        Ok(())
    }

    /// All of another tree.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<()> {
        other.0.iter().try_for_each(|(path, node)| self.add(path, node.clone()))
    }

    /// The content of a file, links followed.
    pub(crate) fn content(&self, path: &str) -> Option<&[u8]> {
        match self.way(path).ok()?.pop()?.1 {
            Node::File { content, .. } => Some(content),
            Node::Folder { .. } | Node::Link { .. } => None,
        }
    }

    /// Where a link leads, in its own words.
    pub(crate) fn target(&self, path: &str) -> Option<&str> {
        match self.0.get(&plain(path))? {
            Node::Link { target } => Some(target),
            Node::File { .. } | Node::Folder { .. } => None,
        }
    }

    /// Entries in the order of their paths.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// The same below a folder.
    pub(crate) fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a Node)> {
        self.entries().filter(move |(path, _)| path.starts_with(&format!("{folder}/")))
    }

    /// Bytes of all files.
    pub(crate) fn size(&self) -> usize {
        let sizes = self.0.values().map(|node| match node {
            Node::File { content, .. } => content.len(),
            Node::Folder { .. } | Node::Link { .. } => 0,
        });
        sizes.sum()
    }

    /// The entry at a path, and where it is a link, each that it leads to.
    fn way(&self, path: &str) -> Result<Vec<(String, &Node)>> {
        let mut way = Vec::new();
        let mut here = plain(path);
        for _ in 0..LINKS {
            let node = self.0.get(&here).with_context(|| format!("there is no /{here}"))?;
            let next = match node {
                Node::Link { target } => Some(joined(&here, target)),
                Node::File { .. } | Node::Folder { .. } => None,
            };
            way.push((here, node));
            match next {
                Some(next) => here = next,
                None => return Ok(way),
            }
        }
        bail!("/{} leads round in a circle", plain(path))
    }
}

/// Where a link leads that stands at `path`.
fn joined(path: &str, target: &str) -> String {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    if target.starts_with('/') { plain(target) } else { plain(&format!("{folder}/{target}")) }
}

/// A path from the root, without dots, in its new place.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    if parts.len() > 1 && MERGED.contains(&parts[0]) {
        parts.insert(0, "usr");
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_taken_with_what_it_leads_to() {
        let mut from = Tree::default();
        from.link("./lib64/ld.so", "/lib/x/ld.so.2").unwrap();
        from.link("/lib/x/ld.so.2", "../y/ld-2.36.so").unwrap();
        from.program("usr/lib/y/ld-2.36.so", vec![1]).unwrap();
        from.text("etc/other", "x").unwrap();
        let mut tree = Tree::default();
        tree.take(&from, "/lib64/ld.so").unwrap();
        let paths: Vec<&str> = tree.entries().map(|(path, _)| path).collect();
        assert_eq!(paths, ["usr/lib/x/ld.so.2", "usr/lib/y/ld-2.36.so", "usr/lib64/ld.so"]);
        assert_eq!(tree.content("lib64/ld.so"), Some(&[1][..]));
        assert!(tree.take(&from, "etc/none").is_err());
    }

    #[test]
    fn circles_and_second_files_are_refused() {
        let mut tree = Tree::default();
        tree.link("a", "b").unwrap();
        tree.link("b", "a").unwrap();
        assert!(Tree::default().take(&tree, "a").unwrap_err().to_string().contains("circle"));
        tree.text("etc/passwd", "x").unwrap();
        tree.text("etc/passwd", "x").unwrap();
        assert!(tree.text("etc/passwd", "y").is_err());
    }
}
