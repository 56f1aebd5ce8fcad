use super::*;

/// Sweeping removes what has such a name, so nothing else may have one.
#[test]
fn what_was_half_written_is_told_by_its_name() {
    let made = PartialFile::next_to(Path::new("/somewhere/journal.db"));
    let name = made.path().file_name().unwrap().to_str().unwrap();

    for ours in [name, &format!("{name}-journal"), &format!("{name}-wal"), &format!("{name}-shm")] {
        assert!(PartialFile::is_partial_name(ours), "{ours}");
    }
    for theirs in [
        "journal.db",
        "notes.partial",
        "my.1.partial",
        ".partial",
        "a.1-.partial",
        "a.1-2.partial.txt",
        "1-2.partial",
    ] {
        assert!(!PartialFile::is_partial_name(theirs), "{theirs}");
    }
}

/// A process that was killed and one that has its pid again, as in a container, never write to the same name.
#[test]
fn a_name_for_half_written_files_is_never_used_again() {
    let (one, other) = (PartialFile::next_to(Path::new("x")), PartialFile::next_to(Path::new("x")));
    let restarted = format!("x.{}-0.partial", std::process::id());

    assert_ne!(one.path(), other.path());
    assert_ne!(one.path(), Path::new(&restarted), "numbers don't begin anew with each process");
}

#[test]
fn a_line_of_the_systems_locks_names_its_process() {
    let shared = "1: FLOCK  ADVISORY  READ 2549 fe:00:10010697 0 EOF";
    let waiting = "2: -> POSIX  ADVISORY  WRITE 31 fe:00:10010697 120 120";

    assert_eq!(lock_line(shared, 10_010_697, LockKind::Any), Some(2549));
    assert_eq!(lock_line(shared, 10_010_697, LockKind::Exclusive), None);
    assert_eq!(lock_line(shared, 7, LockKind::Any), None);
    assert_eq!(lock_line("", 7, LockKind::Any), None);
    assert_eq!(lock_line(waiting, 10_010_697, LockKind::Exclusive), None, "who waits holds nothing");
}
