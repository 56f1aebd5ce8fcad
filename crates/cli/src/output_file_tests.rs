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

        let path = destination(&root.join("home"), None, &root.join(link)).unwrap();
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
        assert_eq!(destination(Path::new("/nowhere"), None, Path::new(path)).unwrap(), Path::new(path));
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
        assert!(destination(&home, None, &folder.path().join(name)).is_err(), "{name}");
    }
}

/// P1: the agent can put a link in place of a folder of its work folder, not in place of the user's other folders.
#[test]
fn a_folder_is_not_reached_through_a_link_in_the_work_folder() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["home", "work/real/deep", "precious/deep", "disk"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    symlink("../precious", root.join("work/out")).unwrap();
    symlink("real", root.join("work/inside")).unwrap();
    symlink("disk", root.join("documents")).unwrap();
    symlink("work", root.join("project")).unwrap();
    let work = root.join("work");
    let to = |name: &str| destination(&root.join("home"), work.to_str(), &root.join(name));

    for name in ["work/out/a.jsonl", "work/out/deep/a.jsonl", "work/inside/a.jsonl", "project/out/a.jsonl"] {
        let refused = to(name).unwrap_err().to_string();
        assert!(
            refused.contains("is a symbolic link in a folder that the agent can write; use "),
            "{name}: {refused}"
        );
    }
    assert_eq!(to("work/real/deep/a.jsonl").unwrap(), root.join("work/real/deep/a.jsonl"));
    assert_eq!(to("documents/a.jsonl").unwrap(), root.join("disk/a.jsonl"));
    assert_eq!(to("project/real/a.jsonl").unwrap(), root.join("work/real/a.jsonl"));
}

/// P1: a command of the agent can have put the pipe there.
#[test]
fn a_pipe_that_nobody_reads_is_not_waited_for_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();

    let error = format!("{:#}", written(&pipe, "new").unwrap_err());

    assert!(error.contains("is a pipe without a reader"), "{error}");
}
