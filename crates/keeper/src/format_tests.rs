//! What only this crate reads, pinned like the rest.

use std::fs;
use std::path::Path;

use super::*;

/// Reads a fixture and writes it again.
fn again<T: DeserializeOwned + Serialize>(name: &str) -> (T, String, String) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    let text = fs::read_to_string(file).unwrap();
    let value: T = decode(name, text.as_bytes()).unwrap();
    let written = String::from_utf8(line(&value)).unwrap();
    (value, text, written)
}

#[test]
fn the_files_that_name_processes_are_read_and_written_byte_for_byte() {
    let keeper = Process { pid: 4710, start_time: 123_455 };

    let (old, text, written) = again::<ProcessFile>("pid-1.json");
    assert_eq!((written, old.keeper, old.system), (text, None, None));
    assert_eq!(old.command, Process { pid: 4711, start_time: 123_456 });
    let (new, text, written) = again::<ProcessFile>("pid-1-with-keeper.json");
    assert_eq!((written, new.keeper, new.command), (text, Some(keeper), old.command));
    let (lock, text, written) = again::<KeeperFile>("lock-1.json");
    assert_eq!((written, lock.keeper, Some(lock.system)), (text, keeper, new.system));
}

/// Whoever makes a folder chooses its bytes.
#[test]
fn a_spec_with_a_path_that_is_no_utf_8_is_written_and_read() {
    use std::os::unix::ffi::OsStringExt;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/spec-1-with-bounds.json");
    let mut spec: Spec = decode("spec.json", &fs::read(file).unwrap()).unwrap();
    let path = PathBuf::from(std::ffi::OsString::from_vec(b"/project/\xff/.git".to_vec()));
    let placeholder = crate::Placeholder { at: path.join("commondir"), text: None };
    let bounds =
        Bounds { read_only: vec![path.clone()], placeholders: vec![placeholder], ..Bounds::default() };
    (spec.work_dir, spec.bounds) = (path, Some(bounds));

    let again: Spec = decode("spec.json", &encode(&spec)).unwrap();

    assert_eq!(again, spec);
}
