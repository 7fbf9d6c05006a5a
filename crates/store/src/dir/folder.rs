//! All files of one kind, joined by object. It refuses to fail for one bad file, and to call a folder that it cannot
//! list empty.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use spanwire_api::Kind;
use spanwire_engine::{Meta, Unreadable};

use super::{
    Error,
    absence::GRACE,
    document::{Document, Part, digest},
    layout::{self, Entry, Owner},
};

/// Larger files are no objects of ours.
const LARGEST_FILE: u64 = 8 << 20;

/// The folder of one kind.
#[derive(Debug)]
pub(crate) struct Folder<S: Kind> {
    root: PathBuf,
    path: PathBuf,
    /// By file name: what an unchanged text meant last time.
    known: Mutex<HashMap<String, Arc<Document<S>>>>,
}

/// A file of an object.
#[derive(Debug, Clone)]
pub(crate) enum Slot<S: Kind> {
    /// There is no such file.
    Absent,
    /// What it says.
    Good(Arc<Document<S>>),
    /// Path, place and what is wrong.
    Bad(String),
}

/// The files of one object.
#[derive(Debug, Clone)]
pub(crate) struct Record<S: Kind> {
    /// Name of the object.
    pub(crate) name: String,
    /// The object itself.
    pub(crate) object: Slot<S>,
    /// What the controller says.
    pub(crate) controller: Slot<S>,
    /// What the worker says.
    pub(crate) worker: Slot<S>,
}

/// Everything in a folder.
#[derive(Debug)]
pub(crate) struct Records<S: Kind> {
    /// By name, objects and orphaned statuses.
    pub(crate) records: BTreeMap<String, Record<S>>,
    /// Files that look like objects and are not read.
    pub(crate) misnamed: Vec<Unreadable>,
    /// Temporary files of killed writers.
    pub(crate) leftovers: Vec<String>,
    /// When an entry last came or went; `None`: not known.
    pub(crate) moved: Option<SystemTime>,
}

impl<S: Kind> Folder<S> {
    /// The folder of the kind in a store.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), path: root.join(S::PLURAL), known: Mutex::default() }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all files whose object's name is asked for.
    pub(crate) fn read(&self, wanted: impl Fn(&str) -> bool) -> Result<Records<S>, Error> {
        let mut all =
            Records { records: BTreeMap::new(), misnamed: Vec::new(), leftovers: Vec::new(), moved: None };
        all.moved = fs::metadata(&self.path).and_then(|folder| folder.modified()).ok();
        let files = self.list()?;
        for file in &files {
            match layout::entry(file) {
                Entry::Object(name) if wanted(&name) => {
                    let slot = self.slot(file, &name, Part::Spec);
                    all.of(name).object = slot;
                }
                Entry::Status(name, owner) if wanted(&name) => {
                    let slot = self.slot(file, &name, Part::Status);
                    match owner {
                        Owner::Controller => all.of(name).controller = slot,
                        Owner::Worker => all.of(name).worker = slot,
                    }
                }
                Entry::Misnamed(name) if wanted(&name) => all.misnamed.push(self.misnamed(file, name)),
                Entry::Leftover => all.leftovers.push(file.clone()),
                Entry::Object(_) | Entry::Status(..) | Entry::Misnamed(_) | Entry::Ignored => {}
            }
        }
        self.known().retain(|file, _| files.binary_search(file).is_ok());
        Ok(all)
    }

    /// Reads the files of one object.
    pub(crate) fn record(&self, name: &str) -> Record<S> {
        Record {
            name: name.to_owned(),
            object: self.slot(&layout::object_file(name), name, Part::Spec),
            controller: self.slot(&layout::status_file(name, Owner::Controller), name, Part::Status),
            worker: self.slot(&layout::status_file(name, Owner::Worker), name, Part::Status),
        }
    }

    /// Why an object whose file went away a moment ago is unknown.
    pub(crate) fn gone(&self, name: &str) -> String {
        let path = self.path.join(layout::object_file(name));
        let seconds = GRACE.as_secs();
        format!("{}: the file was there and is gone; it counts as deleted after {seconds} s", path.display())
    }

    fn misnamed(&self, file: &str, name: String) -> Unreadable {
        let cause = format!("{}: rename it to end in .yaml", self.path.join(file).display());
        Unreadable { kind: S::PLURAL.to_owned(), name, cause }
    }

    fn list(&self) -> Result<Vec<String>, Error> {
        let list = |path: &Path| {
            fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()
        };
        match list(&self.path) {
            // A name that is not UTF-8 is no name of an object.
            Ok(files) => {
                let mut files: Vec<String> =
                    files.into_iter().filter_map(|file| file.into_string().ok()).collect();
                files.sort();
                Ok(files)
            }
            // A missing folder holds no object, if the store is there and the name is no dangling link.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(&self.path).is_err() =>
            {
                let root = |source| Error::Root { path: self.root.clone(), source };
                fs::read_dir(&self.root).map_err(root).map(|_| Vec::new())
            }
            Err(source) => Err(Error::List { path: self.path.clone(), source }),
        }
    }

    fn slot(&self, file: &str, name: &str, part: Part) -> Slot<S> {
        let path = self.path.join(file);
        let bad = |why: &dyn std::fmt::Display| Slot::Bad(format!("{}: {why}", path.display()));
        let text = match read_text(&path) {
            Ok(Some(text)) => text,
            Ok(None) => return Slot::Absent,
            Err(why) => return bad(&why),
        };
        if let Some(document) = self.known().get(file)
            && document.is_of(&text)
        {
            return Slot::Good(Arc::clone(document));
        }
        match Document::parse(&path, text, name, part) {
            Ok(document) => {
                let document = Arc::new(document);
                self.known().insert(file.to_owned(), Arc::clone(&document));
                Slot::Good(document)
            }
            Err(fault) => bad(&fault),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Document<S>>>> {
        // Entries are replaced whole: a panic elsewhere leaves none half-made.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Kind> Records<S> {
    fn of(&mut self, name: String) -> &mut Record<S> {
        let (object, controller, worker) = (Slot::Absent, Slot::Absent, Slot::Absent);
        self.records.entry(name.clone()).or_insert(Record { name, object, controller, worker })
    }
}

impl<S: Kind> Record<S> {
    /// Version of all files together.
    pub(crate) fn resource_version(&self) -> String {
        let digests = [&self.object, &self.controller, &self.worker].map(|slot| match slot {
            Slot::Absent => "-".to_owned(),
            Slot::Good(document) => document.digest.clone(),
            Slot::Bad(cause) => cause.clone(),
        });
        digest(digests.join("/").as_bytes())
    }

    /// Identity and versions.
    pub(crate) fn meta(&self, identity: &super::identity::Identity) -> Meta {
        Meta {
            uid: identity.uid.clone(),
            generation: identity.generation,
            resource_version: self.resource_version(),
        }
    }

    /// The object as an entry of a view's unreadable ones.
    pub(crate) fn unreadable(&self, cause: impl Into<String>) -> Unreadable {
        Unreadable { kind: S::PLURAL.to_owned(), name: self.name.clone(), cause: cause.into() }
    }
}

/// `None`: the file is not there.
fn read_text(path: &Path) -> Result<Option<String>, String> {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    if !about.is_file() {
        return Err("not a regular file".to_owned());
    }
    if about.len() > LARGEST_FILE {
        return Err(format!("larger than {LARGEST_FILE} bytes"));
    }
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let utf8 = |fault: std::string::FromUtf8Error| {
        let before = fault.as_bytes().iter().take(fault.utf8_error().valid_up_to());
        format!("line {}: not UTF-8", 1 + before.filter(|byte| **byte == b'\n').count())
    };
    String::from_utf8(bytes).map(Some).map_err(utf8)
}
