//! The directory store as a place. It refuses to clean up by hand: the temporary directory goes with the test.

use std::{fs, path::PathBuf};

use spanwire_engine::port::Fault;
use spanwire_store::dir::{Controller, Error, Local, Watch, Worker};

use super::Place;

pub(crate) struct DirPlace {
    folder: tempfile::TempDir,
}

impl DirPlace {
    pub(crate) fn new() -> Self {
        // In memory where that is possible: what a busy disk takes to sync is not what is tested.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let place = Self { folder };
        fs::create_dir(place.control()).unwrap();
        place
    }

    pub(crate) fn control(&self) -> PathBuf {
        self.folder.path().join("control")
    }

    fn local_path(&self) -> PathBuf {
        self.folder.path().join("local")
    }
}

impl Place for DirPlace {
    type Controller = Controller;
    type Worker = Worker;
    type Local = Local;
    type Watch = Watch;

    fn controller(&self) -> Controller {
        Controller::open(self.control()).unwrap()
    }

    fn worker(&self) -> Worker {
        Worker::open(self.control()).unwrap()
    }

    fn local(&self) -> Local {
        Local::open(self.local_path()).unwrap()
    }

    fn watch(&self, worker: &Worker) -> Watch {
        worker.watch().unwrap()
    }

    async fn apply(&self, yaml: &str) {
        let field = |name: &str| {
            let line = yaml.lines().find_map(|line| line.trim().strip_prefix(name));
            line.unwrap_or_else(|| panic!("no {name} in {yaml}")).trim().trim_end_matches('}').to_owned()
        };
        let plural = format!("{}s", field("kind:").to_lowercase());
        let folder = self.control().join(plural);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{}.yaml", field("metadata: {name:"))), yaml).unwrap();
    }

    async fn delete(&self, plural: &str, name: &str) {
        fs::remove_file(self.control().join(plural).join(format!("{name}.yaml"))).unwrap();
    }

    fn is_conflict(error: &dyn Fault) -> bool {
        let error: &(dyn std::error::Error + 'static) = error;
        error.downcast_ref::<Error>().is_some_and(Error::is_conflict)
    }
}
