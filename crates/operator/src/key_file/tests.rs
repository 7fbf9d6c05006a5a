//! Keys survive restarts and kills, and nothing that is there is overwritten. It refuses fixed keys.

use super::*;

fn fresh() -> (tempfile::TempDir, KeyFile, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("local/private.key");
    (folder, KeyFile::new(path.clone()), path)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn a_key_is_made_once_for_its_owner_alone() {
    let (_folder, file, path) = fresh();
    assert!(file.load().unwrap().is_none());
    let made = file.store(SecretKey::generate().unwrap(), 3).unwrap();
    let again = file.load().unwrap().unwrap();
    assert_eq!((again.public, again.generation), (made.public, Some(3)));
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(mode(&file.generation_path()), 0o600);
    let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 2, "no temporary file stays");
}

#[test]
fn a_file_that_is_there_is_never_overwritten() {
    for content in ["", "not a key\n", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\nmore\n"] {
        let (_folder, file, path) = fresh();
        folder::make(folder::of(&path)).unwrap();
        fs::write(&path, content).unwrap();
        let error = file.load().err().unwrap();
        assert_eq!(port::Fault::class(&error), Class::NeedsHuman);
        for words in ["holds no WireGuard private key", "restore it", path.to_str().unwrap()] {
            assert!(error.to_string().contains(words), "{error}");
        }
        assert!(file.store(SecretKey::generate().unwrap(), 1).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

#[test]
fn a_kill_before_the_key_is_there_leaves_no_key_and_harms_no_next_start() {
    let (_folder, file, path) = fresh();
    let lost = SecretKey::generate().unwrap();
    file.remember(&lost.public(), 1).unwrap();
    temporary_beside(&path, b"half a key").unwrap();
    assert!(file.load().unwrap().is_none());
    assert_eq!(file.store(SecretKey::generate().unwrap(), 2).unwrap().generation, Some(2));
    assert_eq!(file.load().unwrap().unwrap().generation, Some(2));
}

#[test]
fn a_key_that_a_person_put_there_has_no_generation_until_it_is_counted() {
    let (_folder, file, path) = fresh();
    file.store(SecretKey::generate().unwrap(), 7).unwrap();
    let placed = SecretKey::generate().unwrap();
    fs::write(&path, placed.to_base64().as_bytes()).unwrap();
    let loaded = file.load().unwrap().unwrap();
    assert_eq!((loaded.public, loaded.generation), (placed.public(), None));
    file.remember(&loaded.public, 8).unwrap();
    assert_eq!(file.load().unwrap().unwrap().generation, Some(8));
}

#[test]
fn a_damaged_generation_is_reported_with_its_path() {
    let (_folder, file, _path) = fresh();
    file.store(SecretKey::generate().unwrap(), 1).unwrap();
    fs::write(file.generation_path(), "{\"keyGeneration\": ").unwrap();
    let error = file.load().err().unwrap().to_string();
    assert!(error.contains("private.key.generation") && error.contains("move it away"), "{error}");
}
