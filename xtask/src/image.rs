//! `cargo xtask image`: one image with spanwire, spanwirectl and nft, as a file that Docker, kind and skopeo take. It
//! refuses to need Docker, and to give other bytes for the same commit.

mod apt;
mod architecture;
mod archive;
mod bill;
mod commit;
mod crates;
mod layer;
mod packages;
mod programs;
mod root;
mod tree;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

use crate::{place, step::Steps};
use architecture::Architecture;
use commit::Commit;
use layer::Layer;

const EXAMPLES: &str = "\
Examples:
  cargo xtask image                                the image as it is shipped
  cargo xtask image --profile dev                  quickly, from what tests have built, to try something in a cluster
  cargo xtask image --tag registry.example/net/spanwire:1.2.3
  cargo xtask image --arch arm64                   with a cross compiler
  cargo xtask image --update-packages              pins what Debian has today, for the next image

Needs Debian 12, git and a C compiler; the packages are downloaded once and kept in the user's cache folder.";

/// `cargo xtask image`
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImageArgs {
    /// Name and tag of the image [default: spanwire:VERSION]
    #[arg(long, value_name = "NAME:TAG", value_parser = tag)]
    tag: Option<String>,
    /// File of the image; the bill of materials stands beside it [default: target/image/spanwire-VERSION-ARCH.tar]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How our programs are built
    #[arg(long, value_enum, default_value = "dist")]
    profile: Profile,
    /// Which machines it is for [default: those like this one]
    #[arg(long, value_enum)]
    arch: Option<Architecture>,
    /// Builds no image: writes the list of Debian packages anew, with today's versions
    #[arg(long, conflicts_with_all = ["tag", "output", "arch"])]
    update_packages: bool,
}

/// How our programs are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// As shipped: small and slow to build
    Dist,
    /// Optimised
    Release,
    /// What tests build
    Dev,
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Self::Dist => "dist",
            Self::Release => "release",
            Self::Dev => "dev",
        }
    }
}

const STEPS: usize = 4;

/// Makes the image, or renews the list of packages.
pub(crate) fn run(args: &ImageArgs) -> Result<ExitCode> {
    if args.update_packages {
        return renew();
    }
    write(args).map(|_| ExitCode::SUCCESS)
}

/// Makes the image as it is shipped and gives its file.
pub(crate) fn provide() -> Result<PathBuf> {
    let shipped =
        ImageArgs { tag: None, output: None, profile: Profile::Dist, arch: None, update_packages: false };
    write(&shipped)
}

/// Writes the image and its bill; the image's file.
fn write(args: &ImageArgs) -> Result<PathBuf> {
    let architecture = args.arch.or_else(Architecture::here);
    let architecture =
        architecture.context("this machine is neither amd64 nor arm64: name one with --arch")?;
    let commit = Commit::current()?;
    if !commit.clean {
        eprintln!("Files differ from the commit: the image is marked so, and nobody else can make it again.");
    }
    let [version, repository] = place::product()?;
    let tag = args.tag.clone().unwrap_or_else(|| format!("spanwire:{version}"));
    let file = place::root().join(format!("target/image/spanwire-{version}-{}.tar", architecture.name()));
    let file = args.output.clone().unwrap_or(file);
    let named = Named { version: &version, repository: &repository, tag: &tag };
    let made = make(args.profile, architecture, &commit, &named)?;
    put(&file, &made.image.bytes)?;
    let bill = file.with_extension("cdx.json");
    put(&bill, format!("{:#}\n", made.bill).as_bytes())?;
    println!("{}", made.summary(&file, &bill, &tag));
    Ok(file)
}

/// An image with its bill.
struct Made {
    image: archive::Image,
    bill: serde_json::Value,
    unpacked: usize,
    counts: String,
}

/// What the image is called.
struct Named<'a> {
    version: &'a str,
    repository: &'a str,
    tag: &'a str,
}

fn make(profile: Profile, architecture: Architecture, commit: &Commit, named: &Named<'_>) -> Result<Made> {
    let Named { version, repository: _, tag } = *named;
    let mut steps = Steps::new(STEPS, false);
    // What is shipped is of the listed packages; what is tried may be of today's.
    let newest = profile != Profile::Dist;
    let packages = steps.work("packages of Debian", || packages::provide(architecture, newest))?;
    let programs = programs::build(&mut steps, profile, architecture, commit)?;
    if Commit::current()? != *commit {
        bail!("files or the commit changed during the build, so nobody knows what was built: begin again");
    }
    let (debian, ours, crates) = steps.work("put the files together", || {
        let crates = crates::linked(architecture)?;
        let own = fs::read_to_string(place::root().join("LICENSE")).context("reading LICENSE")?;
        let licences = [own, crates::licences(&crates)?];
        let debian = root::debian(architecture, &packages, &programs)?;
        Ok((debian, root::ours(programs, licences)?, crates))
    })?;
    steps.work("check and pack", || {
        let mut all = debian.clone();
        all.merge(&ours)?;
        match programs::start(architecture, &all)? {
            Some(said) => eprintln!("    {}", said.join("; ")),
            None => eprintln!("    not started: this machine has another architecture"),
        }
        let layers = [
            Layer::of(&debian, commit.seconds, format!("nft and libraries of Debian {}", packages::NUMBER))?,
            Layer::of(&ours, commit.seconds, format!("spanwire {version}"))?,
        ];
        let labels = labels(commit, named)?;
        let about = archive::About { architecture, commit, tag, labels: &labels };
        let image = archive::image(&about, &layers)?;
        let subject = bill::Subject { tag, version, commit, architecture, digest: &image.digest };
        let bill = bill::of(&subject, &crates, &packages)?;
        let counts = format!("{} crates, {} packages of Debian", crates.len(), packages.len());
        Ok(Made { bill, unpacked: all.size(), counts, image })
    })
}

/// What the image says of itself.
fn labels(commit: &Commit, named: &Named<'_>) -> Result<Vec<(&'static str, String)>> {
    Ok(vec![
        ("title", "spanwire".to_owned()),
        (
            "description",
            "Connects Kubernetes clusters with WireGuard: spanwire, spanwirectl and nft".to_owned(),
        ),
        ("source", named.repository.to_owned()),
        ("version", named.version.to_owned()),
        ("revision", commit.revision()),
        ("created", commit.moment()?),
        ("licenses", "Apache-2.0".to_owned()),
    ])
}

impl Made {
    fn summary(&self, file: &Path, bill: &Path, tag: &str) -> String {
        let megabytes = |bytes: usize| format!("{:.1} MB", bytes as f64 / 1e6);
        let shown = place::short(file);
        format!(
            "\n{shown}: {}, unpacked {}\n  image   {tag}\n  digest  {}\n  file    {}\n  bill    {}: {}\n\nNext, one of:\n  \
             kind load image-archive {shown}\n  docker load --input {shown}\n  \
             skopeo copy oci-archive:{shown} docker://REGISTRY/{tag}",
            megabytes(self.image.bytes.len()),
            megabytes(self.unpacked),
            self.image.digest,
            layer::digest(&self.image.bytes),
            place::short(bill),
            self.counts,
        )
    }
}

/// Writes beside its place and moves it there whole.
fn put(file: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let part = file.with_extension("part");
    fs::write(&part, bytes).with_context(|| format!("writing {}", part.display()))?;
    fs::rename(&part, file).with_context(|| format!("writing {}", file.display()))
}

fn renew() -> Result<ExitCode> {
    let new = packages::update()?;
    for packages::Pinned { architecture, name, version, .. } in &new {
        println!("{name} ({architecture}) is now {version}");
    }
    println!("{}", if new.is_empty() { "nothing is newer" } else { "Commit the list, then make the image." });
    Ok(ExitCode::SUCCESS)
}

fn tag(text: &str) -> Result<String, String> {
    let (name, short) = text.rsplit_once(':').unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if !name.is_empty() && !short.is_empty() && short.chars().all(fits) {
        Ok(text.to_owned())
    } else {
        Err("use a name and a tag, such as registry.example/net/spanwire:1.2.3".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_needs_a_name_and_a_version() {
        for good in ["spanwire:1", "registry.example:5000/net/spanwire:1.2.3"] {
            assert_eq!(tag(good).as_deref(), Ok(good));
        }
        for bad in ["spanwire", ":1", "spanwire:", "registry.example:5000/spanwire"] {
            assert!(tag(bad).is_err(), "{bad}");
        }
    }
}
