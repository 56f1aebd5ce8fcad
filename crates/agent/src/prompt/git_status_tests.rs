use std::process::Command;

use super::*;

#[test]
fn git_answers_for_the_folder_that_it_was_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    let work_tree = folder.path().canonicalize().unwrap();
    assert!(Command::new("git").args(["init", "-q"]).current_dir(&work_tree).status().unwrap().success());
    std::fs::write(work_tree.join("new.txt"), "").unwrap();
    let (probe, scratch) = (GitStatusProbe::default(), tempfile::tempdir().unwrap());
    let deadline = Instant::now() + Duration::from_secs(60);

    // On a busy machine git may be too slow once.
    while probe.answer(&work_tree).is_none() && Instant::now() < deadline {
        probe.start(&work_tree, scratch.path().to_owned());
        while lock(&probe.0).as_ref().is_some_and(|probe| probe.answer.get().is_none()) {
            std::thread::yield_now();
        }
    }

    assert_eq!(probe.answer(&work_tree), Some(false));
    assert_eq!(probe.answer(Path::new("/elsewhere")), None);
}

#[test]
fn a_folder_without_a_repository_asks_nothing() {
    let (folder, probe) = (tempfile::tempdir().unwrap(), GitStatusProbe::default());

    probe.start(folder.path(), folder.path().join("scratch"));

    assert!(lock(&probe.0).is_none() && !folder.path().join("scratch").exists());
}
