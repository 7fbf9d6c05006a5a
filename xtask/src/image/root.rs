//! What stands in the image: nft with the libraries that it and our programs need, what a system is asked for, and our
//! programs. It refuses a shell, a package that gives nothing, and a library that no package of the list has.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use goblin::elf::Elf;

use super::{
    architecture::Architecture,
    layer,
    packages::Package,
    tree::{MERGED, Node, Tree},
};

/// A program of ours.
#[derive(Debug)]
pub(crate) struct Program {
    /// Its name.
    pub(crate) name: String,
    /// Its file.
    pub(crate) content: Vec<u8>,
}

const NFT: &str = "usr/sbin/nft";
const CERTIFICATES: &str = "usr/share/ca-certificates/mozilla";
/// What a package gives besides libraries: paths, or folders with a slash at the end.
const TAKEN: [&str; 4] = [NFT, "usr/lib/os-release", "etc/debian_version", "usr/share/common-licenses/"];

const PASSWD: &str =
    "root:x:0:0:root:/:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nnogroup:x:65534:\n";
const NSSWITCH: &str = "passwd: files\ngroup: files\nhosts: files dns\n";

/// The part that comes from Debian.
pub(crate) fn debian(architecture: Architecture, packages: &[Package], programs: &[Program]) -> Result<Tree> {
    let mut all = Tree::default();
    packages.iter().try_for_each(|package| all.merge(&package.files))?;
    let mut tree = Tree::default();
    let nft = all.content(NFT).context("no package of the list has nft")?;
    let roots = programs.iter().map(|program| program.content.as_slice()).chain([nft]);
    for path in libraries(architecture, &all, roots)? {
        tree.take(&all, &path)?;
    }
    for path in TAKEN {
        match path.strip_suffix('/') {
            Some(folder) => all.below(folder).try_for_each(|(path, _)| tree.take(&all, path))?,
            None => tree.take(&all, path)?,
        }
    }
    tree.text("etc/ssl/certs/ca-certificates.crt", certificates(&all)?)?;
    tree.link("etc/os-release", "../usr/lib/os-release")?;
    let lenders: BTreeSet<&str> = packages.iter().filter_map(lender).collect();
    for package in packages {
        if !gives(package, &tree) && !lenders.contains(package.pinned.name.as_str()) {
            bail!(
                "the package {} gives nothing that the image needs: take it off the list",
                package.pinned.name
            );
        }
        papers(&mut tree, &all, package)?;
    }
    system(&mut tree)?;
    Ok(tree)
}

/// The part that is ours. `licences`: the licence of this project, and those of the crates.
pub(crate) fn ours(programs: Vec<Program>, licences: [String; 2]) -> Result<Tree> {
    let mut tree = Tree::default();
    for Program { name, content } in programs {
        tree.program(&format!("usr/local/bin/{name}"), content)?;
    }
    tree.link("usr/local/bin/kubectl-spanwire", "spanwirectl")?;
    let [own, of_crates] = licences;
    tree.text("usr/share/doc/spanwire/LICENSE", own)?;
    // Long, and hardly ever read: packed, as Debian does.
    tree.text("usr/share/doc/spanwire/LICENSES-of-crates.gz", layer::packed(of_crates.as_bytes())?)?;
    Ok(tree)
}

/// Paths of all libraries and loaders that the programs need, and those that these need.
fn libraries<'a>(
    architecture: Architecture,
    all: &Tree,
    programs: impl Iterator<Item = &'a [u8]>,
) -> Result<BTreeSet<String>> {
    let folder = format!("usr/lib/{}", architecture.tuple());
    let mut found = BTreeSet::new();
    let mut open = Vec::new();
    for program in programs {
        open.extend(needed(program, &folder)?);
    }
    while let Some(path) = open.pop() {
        let content = all.content(&path);
        let content = content.with_context(|| format!("no package of the list has /{path}"))?;
        if found.insert(path) {
            open.extend(needed(content, &folder)?);
        }
    }
    Ok(found)
}

/// What one program or library names, as paths.
fn needed(content: &[u8], folder: &str) -> Result<Vec<String>> {
    let elf = Elf::parse(content).context("reading what a program is linked with")?;
    // The loader is named as a library by some, and stands by its own path.
    let libraries = elf.libraries.iter().filter(|name| !name.starts_with("ld-linux"));
    let libraries = libraries.map(|name| format!("{folder}/{name}"));
    Ok(libraries.chain(elf.interpreter.map(str::to_owned)).collect())
}

/// One file of all authorities, as Debian would write it at its installation.
fn certificates(all: &Tree) -> Result<Vec<u8>> {
    let mut bundle = Vec::new();
    for (_, node) in all.below(CERTIFICATES) {
        if let Node::File { content, .. } = node {
            bundle.extend_from_slice(content.trim_ascii_end());
            bundle.push(b'\n');
        }
    }
    if bundle.is_empty() {
        bail!("no package of the list has authorities in /{CERTIFICATES}")
    } else {
        Ok(bundle)
    }
}

/// Whether a file of the package is in the image.
fn gives(package: &Package, tree: &Tree) -> bool {
    let files = package.files.entries().filter(|(_, node)| matches!(node, Node::File { .. }));
    files.into_iter().any(|(path, _)| tree.content(path).is_some() || path.starts_with(CERTIFICATES))
}

/// The package whose papers are those of this one as well.
fn lender(package: &Package) -> Option<&str> {
    package.files.target(&doc(package))
}

fn doc(package: &Package) -> String {
    format!("usr/share/doc/{}", package.pinned.name)
}

/// The copyright of a package, and its fields where scanners look for what an image is made of.
fn papers(tree: &mut Tree, all: &Tree, package: &Package) -> Result<()> {
    match lender(package) {
        Some(_) => tree.take(all, &doc(package))?,
        None => tree.take(all, &format!("{}/copyright", doc(package)))?,
    }
    tree.text(&format!("var/lib/dpkg/status.d/{}", package.pinned.name), package.control.clone())
}

/// What programs and containers ask a system for.
fn system(tree: &mut Tree) -> Result<()> {
    for folder in MERGED {
        tree.folder(&format!("usr/{folder}"), 0o755)?;
        tree.link(folder, &format!("usr/{folder}"))?;
    }
    tree.text("etc/passwd", PASSWD)?;
    tree.text("etc/group", GROUP)?;
    tree.text("etc/nsswitch.conf", NSSWITCH)?;
    // Where the container's own file systems and volumes are put.
    for folder in ["dev", "proc", "sys", "run/spanwire", "run/wireguard", "etc/spanwire", "var/lib/spanwire"]
    {
        tree.folder(folder, 0o755)?;
    }
    tree.link("var/run", "../run")?;
    tree.folder("tmp", 0o1777)
}

#[cfg(test)]
mod tests {
    use super::{super::packages::Pinned, *};

    #[test]
    fn authorities_become_one_file() {
        let mut all = Tree::default();
        all.text("usr/share/ca-certificates/mozilla/B.crt", "b\n\n").unwrap();
        all.text("usr/share/ca-certificates/mozilla/A.crt", "a").unwrap();
        assert_eq!(certificates(&all).unwrap(), b"a\nb\n");
        assert!(certificates(&Tree::default()).is_err());
    }

    #[test]
    fn a_library_that_no_package_has_is_named() {
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let architecture = Architecture::here().unwrap();
        let error = libraries(architecture, &Tree::default(), [this.as_slice()].into_iter()).unwrap_err();
        assert!(error.to_string().contains("no package of the list has /"), "{error}");
    }

    fn package(name: &str, files: &[(&str, &[u8])]) -> Package {
        let mut tree = Tree::default();
        for (path, content) in files {
            tree.program(path, content.to_vec()).unwrap();
        }
        tree.text(&format!("usr/share/doc/{name}/copyright"), "free").unwrap();
        let [architecture, version, sha256] = [(); 3].map(|()| String::new());
        let pinned = Pinned { architecture, name: name.to_owned(), version, sha256 };
        Package { pinned, control: format!("Package: {name}\n"), files: tree }
    }

    /// This program stands for nft and for every library, because it is linked with some.
    fn fixture(architecture: Architecture) -> Vec<Package> {
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let libraries = needed(&this, &format!("usr/lib/{}", architecture.tuple())).unwrap();
        let libraries: Vec<(&str, &[u8])> =
            libraries.iter().map(|path| (path.as_str(), this.as_slice())).collect();
        vec![
            package("libc6", &[&libraries[..], &[("usr/lib/needed-by-nobody.so", b"x")]].concat()),
            package("nftables", &[("usr/sbin/nft", &this), ("usr/share/man/nft.8", b"long")]),
            package(
                "base-files",
                &[
                    ("usr/lib/os-release", b"ID=debian"),
                    ("etc/debian_version", b"12"),
                    ("usr/share/common-licenses/GPL-2", b"g"),
                ],
            ),
            package("ca-certificates", &[("usr/share/ca-certificates/mozilla/A.crt", b"a")]),
        ]
    }

    #[test]
    fn the_part_of_debian_holds_what_is_needed_and_its_papers() {
        let architecture = Architecture::here().unwrap();
        let tree = debian(architecture, &fixture(architecture), &[]).unwrap();
        for path in [
            "usr/sbin/nft",
            "etc/ssl/certs/ca-certificates.crt",
            "etc/passwd",
            "etc/os-release",
            "usr/share/common-licenses/GPL-2",
            "usr/share/doc/nftables/copyright",
            "var/lib/dpkg/status.d/libc6",
        ] {
            assert!(tree.content(path).is_some(), "{path}");
        }
        let loader = tree.entries().any(|(path, _)| path.contains("/ld-linux"));
        assert!(loader && tree.content(&format!("lib/{}/libc.so.6", architecture.tuple())).is_some());
        for path in ["usr/lib/needed-by-nobody.so", "usr/share/man/nft.8", "bin/sh"] {
            assert!(tree.content(path).is_none(), "{path}");
        }
        assert_eq!((tree.target("lib"), tree.target("var/run")), (Some("usr/lib"), Some("../run")));
    }

    #[test]
    fn a_package_that_gives_nothing_is_named() {
        let architecture = Architecture::here().unwrap();
        let mut packages = fixture(architecture);
        packages.push(package("needless", &[("usr/lib/other.so", b"x")]));
        let error = debian(architecture, &packages, &[]).unwrap_err().to_string();
        assert!(error.contains("needless gives nothing"), "{error}");
    }

    #[test]
    fn the_part_that_is_ours_holds_programs_and_licences() {
        let program = Program { name: "spanwire".to_owned(), content: vec![1] };
        let tree = ours(vec![program], ["own".to_owned(), "theirs".to_owned()]).unwrap();
        let paths: Vec<&str> = tree.entries().map(|(path, _)| path).collect();
        assert_eq!(
            paths,
            [
                "usr/local/bin/kubectl-spanwire",
                "usr/local/bin/spanwire",
                "usr/share/doc/spanwire/LICENSE",
                "usr/share/doc/spanwire/LICENSES-of-crates.gz"
            ]
        );
    }
}
