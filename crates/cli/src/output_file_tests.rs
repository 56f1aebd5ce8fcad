use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn written(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut out = OutputFile::create(path)?;
    out.write_all(text.as_bytes())?;
    out.finish()
}

/// P1: a command of the agent can have put the link there.
#[test]
fn a_link_in_place_of_the_file_is_replaced_and_its_target_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("home")).unwrap();
    fs::write(root.join("target"), "old").unwrap();
    for (link, target) in [("file", "target"), ("nowhere", "missing"), ("device", "/dev/null")] {
        symlink(target, root.join(link)).unwrap();

        let path = destination(&root.join("home"), &root.join(link)).unwrap();
        written(&path, "new").unwrap();

        let about = root.join(link).symlink_metadata().unwrap();
        assert!(about.is_file(), "{link}");
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(root.join(link)).unwrap(), "new");
    }
    assert_eq!(fs::read_to_string(root.join("target")).unwrap(), "old");
    assert!(!root.join("missing").exists());
}

#[test]
fn devices_and_the_callers_own_outputs_are_written_to() {
    for path in ["/dev/null", "/dev/stderr", "/proc/self/fd/2", "/dev/fd/2"] {
        assert_eq!(destination(Path::new("/nowhere"), Path::new(path)).unwrap(), Path::new(path));
        assert!(matches!(OutputFile::create(Path::new(path)).unwrap(), OutputFile::Stream(_)), "{path}");
    }
    for path in ["/dev/fd/2/x", "/dev/fd/", "/dev/fd/../null", "/proc/self/fd/x"] {
        assert!(!is_own_output(Path::new(path)), "{path}");
    }
}

#[test]
fn nothing_is_written_into_the_home_not_by_a_link_either() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("config.toml"), "").unwrap();
    symlink("home/config.toml", folder.path().join("link")).unwrap();
    symlink("home", folder.path().join("folder")).unwrap();

    for name in ["link", "folder/new", "home/config.toml", "home/new"] {
        assert!(destination(&home, &folder.path().join(name)).is_err(), "{name}");
    }
}
