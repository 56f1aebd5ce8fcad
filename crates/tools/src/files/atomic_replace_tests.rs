//! P2: what happens when someone is quicker than us by a moment.

use std::fs;
use std::path::Path;

use super::*;
use crate::scope::{Permission, Scope, ScopeConfig};

struct Meeting {
    work: tempfile::TempDir,
    place: ScopedPath,
    call: CallId,
}

impl Meeting {
    fn new() -> Self {
        let work = tempfile::tempdir().unwrap();
        let scope = Scope::new(work.path(), &ScopeConfig::default(), &work.path().join("home"));
        let place = scope.resolve("a.txt", Permission::Write).unwrap();
        Self { work, place, call: CallId::generate() }
    }

    fn put(&self, name: &str, content: &str) {
        fs::write(self.work.path().join(name), content).unwrap();
    }

    /// Saves as an editor does.
    fn save(&self, content: &str) {
        self.put("saved", content);
        fs::rename(self.work.path().join("saved"), self.work.path().join("a.txt")).unwrap();
    }

    fn files(&self) -> Vec<(String, String)> {
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let paths = fs::read_dir(self.work.path()).unwrap().map(|entry| entry.unwrap().path());
        paths.map(|path| (name(&path), read(&path))).collect()
    }

    fn only(&self, content: &str) {
        assert_eq!(self.files(), [("a.txt".to_owned(), content.to_owned())]);
    }

    fn temporary<'a>(&self, folder: &'a ScopedFolder) -> TemporaryFile<'a> {
        let mut temporary = TemporaryFile::create(folder, self.call, Mode::from_raw_mode(0o600)).unwrap();
        temporary.fill(b"ours").unwrap();
        temporary
    }
}

/// P2
#[test]
fn someone_elses_file_that_came_out_goes_back() {
    let meeting = Meeting::new();
    meeting.put("a.txt", "theirs");
    let (folder, name) = meeting.place.parent().unwrap();
    let mut temporary = meeting.temporary(&folder);

    let answer = exchange(&meeting.place, &folder, &name, &mut temporary, Hash::of("old"), meeting.call);
    drop(temporary);

    assert!(answer.unwrap_err().to_string().contains("changed while it was being written"));
    meeting.only("theirs");
}

/// P2
#[test]
fn a_link_that_came_out_goes_back() {
    let meeting = Meeting::new();
    meeting.put("elsewhere", "old");
    std::os::unix::fs::symlink("elsewhere", meeting.work.path().join("a.txt")).unwrap();
    let (folder, name) = meeting.place.parent().unwrap();
    let mut temporary = meeting.temporary(&folder);

    let answer = exchange(&meeting.place, &folder, &name, &mut temporary, Hash::of("old"), meeting.call);
    drop(temporary);

    assert!(answer.is_err());
    assert!(meeting.work.path().join("a.txt").is_symlink());
    assert_eq!(meeting.files().len(), 2);
}

/// P2
#[test]
fn if_ours_was_replaced_before_it_could_be_taken_back_the_newest_stays() {
    let meeting = Meeting::new();
    meeting.put("a.txt", "theirs");
    let (folder, name) = meeting.place.parent().unwrap();
    let mut temporary = meeting.temporary(&folder);
    swap(&folder, temporary.name(), &name).unwrap();

    meeting.save("newest");
    put_back(&meeting.place, &folder, &name, &mut temporary, meeting.call);
    drop(temporary);

    meeting.only("newest");
}

/// P2
#[test]
fn if_ours_was_removed_before_it_could_be_taken_back_theirs_is_put_there() {
    let meeting = Meeting::new();
    meeting.put("a.txt", "theirs");
    let (folder, name) = meeting.place.parent().unwrap();
    let mut temporary = meeting.temporary(&folder);
    swap(&folder, temporary.name(), &name).unwrap();

    fs::remove_file(meeting.work.path().join("a.txt")).unwrap();
    put_back(&meeting.place, &folder, &name, &mut temporary, meeting.call);
    drop(temporary);

    meeting.only("theirs");
}

/// P2
#[test]
fn a_file_that_looks_changed_is_not_exchanged_at_all() {
    let meeting = Meeting::new();
    meeting.put("a.txt", "old");
    let (folder, name) = meeting.place.parent().unwrap();
    let old = meeting.place.open_in(&folder, &name).unwrap();
    assert!(old.is_unchanged_at(&folder, &name));

    meeting.save("old");

    assert!(!old.is_unchanged_at(&folder, &name));
}
