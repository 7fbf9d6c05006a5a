//! What a file name in a folder of objects means. It refuses to read `x.status.worker.yaml` as an object.

/// Who writes a status file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Owner {
    /// The controller.
    Controller,
    /// The worker.
    Worker,
}

impl Owner {
    /// The word in file names.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Owner::Controller => "controller",
            Owner::Worker => "worker",
        }
    }
}

/// A file name, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// An object of that name.
    Object(String),
    /// What an owner says of an object.
    Status(String, Owner),
    /// A temporary file of ours that was not renamed.
    Leftover,
    /// Looks like an object under a name that is not read.
    Misnamed(String),
    /// Not ours: hidden files, backups of editors, anything else.
    Ignored,
}

/// Temporary files begin with this.
pub(crate) const TEMPORARY: &str = ".tmp-";
/// The lock file in the root.
pub(crate) const LOCK: &str = ".lock";
const SUFFIX: &str = ".yaml";

/// Understands a file name.
pub(crate) fn entry(file: &str) -> Entry {
    if file.starts_with(TEMPORARY) {
        return Entry::Leftover;
    }
    if file.starts_with(['.', '#']) {
        return Entry::Ignored;
    }
    if let Some(stem) = file.strip_suffix(".yml").or_else(|| file.strip_suffix(".json")) {
        return Entry::Misnamed(stem.to_owned());
    }
    let Some(stem) = file.strip_suffix(SUFFIX) else { return Entry::Ignored };
    match stem.rsplit_once(".status.") {
        Some((name, "controller")) => Entry::Status(name.to_owned(), Owner::Controller),
        Some((name, "worker")) => Entry::Status(name.to_owned(), Owner::Worker),
        Some(_) | None => Entry::Object(stem.to_owned()),
    }
}

/// The file of an object.
pub(crate) fn object_file(name: &str) -> String {
    format!("{name}{SUFFIX}")
}

/// The file of an owner's status.
pub(crate) fn status_file(name: &str, owner: Owner) -> String {
    format!("{name}.status.{}{SUFFIX}", owner.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_dots() {
        let object = |name: &str| Entry::Object(name.to_owned());
        let status = |name: &str, owner| Entry::Status(name.to_owned(), owner);
        for (file, meaning) in [
            ("hub-a.yaml", object("hub-a")),
            ("demo.hub-a.yaml", object("demo.hub-a")),
            ("demo.hub-a.trunk.yaml", object("demo.hub-a.trunk")),
            ("x.status.worker.yaml", status("x", Owner::Worker)),
            ("x.status.controller.yaml", status("x", Owner::Controller)),
            ("demo.x.status.worker.yaml", status("demo.x", Owner::Worker)),
            ("status.worker.yaml", object("status.worker")),
            ("status.worker.status.worker.yaml", status("status.worker", Owner::Worker)),
            ("demo.status.uplink.yaml", object("demo.status.uplink")),
            ("demo.status.uplink.status.worker.yaml", status("demo.status.uplink", Owner::Worker)),
            (".tmp-3f", Entry::Leftover),
            (".x.yaml.swp", Entry::Ignored),
            ("..data", Entry::Ignored),
            ("#x.yaml#", Entry::Ignored),
            ("x.yaml~", Entry::Ignored),
            ("README.md", Entry::Ignored),
            ("x.yml", Entry::Misnamed("x".to_owned())),
            ("x.json", Entry::Misnamed("x".to_owned())),
        ] {
            assert_eq!(entry(file), meaning, "{file}");
        }
    }

    #[test]
    fn file_names_are_understood_again() {
        for name in ["a", "demo.a", "demo.status.mesh", "status.worker"] {
            assert_eq!(entry(&object_file(name)), Entry::Object(name.to_owned()));
            for owner in [Owner::Controller, Owner::Worker] {
                assert_eq!(entry(&status_file(name, owner)), Entry::Status(name.to_owned(), owner));
            }
        }
    }
}
