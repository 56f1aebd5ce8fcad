use super::*;

#[test]
fn reports_are_kept_in_the_home_privately_and_not_too_many_of_them() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("log")).unwrap();
    for number in 0..30 {
        let name = format!("panic-10000000000{number:02}-1.txt");
        std::fs::write(home.path().join("log").join(name), "old").unwrap();
    }
    std::fs::write(home.path().join("log/other.txt"), "not ours").unwrap();

    let file = save_report(home.path(), "new").unwrap();

    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!((std::fs::read_to_string(file).unwrap().as_str(), mode & 0o777), ("new", 0o600));
    let mut left: Vec<String> = std::fs::read_dir(home.path().join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!((left.len(), left[0].as_str()), (MAX_REPORTS + 1, "other.txt"));
    assert_eq!(left[1], "panic-1000000000011-1.txt", "the oldest go");
}
