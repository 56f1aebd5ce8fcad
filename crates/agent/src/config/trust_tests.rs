use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

fn desk(project: &str) -> (tempfile::TempDir, PathBuf, Sources) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join(project)).unwrap();
    fs::write(root.join(project).join("longhaul.toml"), "[model]\nname = \"a/b\"\n").unwrap();
    let sources = Sources { work_dir: Some(root.join(project)), ..Sources::default() };
    (folder, root, sources)
}

#[test]
fn trust_is_kept_in_a_private_file_and_taken_back() {
    let (_folder, root, sources) = desk("a \"quoted\" \\ project");
    let home = root.join("home");
    let file = ProjectFile::find(&home, &sources).unwrap().unwrap();

    trust_project(&home, &file).unwrap();
    trust_project(&home, &file).unwrap();

    let known = TrustedFile { path: file.path.clone(), blake3: file.hash, text: Some(file.text.clone()) };
    assert_eq!(load_trust_list(&home).unwrap().files(), [known]);
    assert_eq!(fs::metadata(home.join("trust.toml")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(&home).unwrap().count(), 1, "nothing is left beside it");
    assert_eq!(distrust_project(&home, &sources).unwrap(), [file.path]);
    assert!(distrust_project(&home, &sources).unwrap().is_empty());
    assert!(load_trust_list(&home).unwrap().files().is_empty());
}

#[test]
fn a_file_shows_what_it_sets_beyond_and_what_has_become_of_it() {
    let (_folder, root, sources) = desk("project");
    let home = root.join("home");
    let file = ProjectFile::find(&home, &sources).unwrap().unwrap();

    trust_project(&home, &file).unwrap();
    let entry = || load_trust_list(&home).unwrap().files()[0].clone();
    let trusted = trust_state(&entry());
    fs::write(&file.path, "[model]\nname = \"c/d\"\n").unwrap();
    let changed = trust_state(&entry());
    let found = ProjectFile::find(&home, &sources).unwrap().unwrap();
    fs::remove_file(&file.path).unwrap();
    let gone = trust_state(&entry());

    assert_eq!((file.disallowed[0].key.as_str(), file.disallowed[0].line), ("model.name", 2));
    assert_eq!((file.trust, found.trust), (TrustState::Unknown, TrustState::Changed));
    assert_eq!((trusted, changed, gone), (Some(TrustState::Trusted), Some(TrustState::Changed), None));
    assert_eq!(
        distrust_project(&home, &sources).unwrap(),
        [file.path],
        "trust in a file that is gone is taken back as well"
    );
}

/// P7: `trust` shows what has changed since.
#[test]
fn what_a_file_said_when_it_was_trusted_is_kept_and_lists_without_it_are_read() {
    let (_folder, root, sources) = desk("project");
    let home = root.join("home");
    let file = ProjectFile::find(&home, &sources).unwrap().unwrap();

    trust_project(&home, &file).unwrap();
    fs::write(&file.path, "[model]\nname = \"c/d\"\n").unwrap();
    let changed = ProjectFile::find(&home, &sources).unwrap().unwrap();
    let list = format!("[[trusted]]\npath = {:?}\nblake3 = \"{}\"\n", file.path, file.hash);
    fs::write(home.join("trust.toml"), list).unwrap();
    let of_earlier_version = ProjectFile::find(&home, &sources).unwrap().unwrap();

    assert_eq!((file.trusted_text, file.text.as_str()), (None, "[model]\nname = \"a/b\"\n"));
    assert_eq!((changed.trust, changed.trusted_text), (TrustState::Changed, Some(file.text)));
    assert_eq!((of_earlier_version.trust, of_earlier_version.trusted_text), (TrustState::Changed, None));
}

#[test]
fn a_list_that_can_not_be_read_trusts_nobody() {
    let (_folder, root, sources) = desk("project");
    let home = root.join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("trust.toml"), "trusted = 1\n").unwrap();

    let error = ProjectFile::find(&home, &sources).unwrap_err().to_string();

    assert!(error.starts_with(&home.join("trust.toml").display().to_string()), "{error}");
    assert!(error.contains("run `longhaul trust` again"), "{error}");
}
