use super::*;

/// S2
#[test]
fn two_folders_of_one_name_have_two_keys_and_one_folder_has_one() {
    let place = tempfile::tempdir().unwrap();
    let (one, other) = (place.path().join("a/work"), place.path().join("b/work"));
    std::fs::create_dir_all(&one).unwrap();
    std::fs::create_dir_all(&other).unwrap();

    let (first, second) = (key_of(&one), key_of(&other));

    assert!(first.starts_with("cli:work-") && first.len() == "cli:work-01234567".len(), "{first}");
    assert_ne!(first, second);
    assert_eq!(first, key_of(&place.path().join("b/../a/work")), "by its canonical path");
}
