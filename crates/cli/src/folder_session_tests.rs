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

/// S2, H5: a session that has the key of a folder, but works elsewhere or nowhere, is not opened there: a program may have made it.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_another_folder_is_not_opened_by_its_key() {
    let place = longhaul_testkit::TestHome::new();
    let folder = canonical(&place.work());
    let model = std::sync::Arc::new(longhaul_model::ScriptedModel::from_json("[]").unwrap());
    let runtime = longhaul_agent::Runtime::with_model(place.config(), model).await.unwrap();
    let (journal, base) = (runtime.journal(), key_of(&folder));
    runtime.session(&base).await.unwrap().create_in(Path::new("/")).await.unwrap();
    runtime.session(&format!("{base}-2")).await.unwrap().create_without_folder().await.unwrap();

    let free = last_conversation_key(&*journal, &folder).await.unwrap();
    runtime.session(&free).await.unwrap().create_in(&folder).await.unwrap();

    assert_eq!(free, format!("{base}-3"));
    assert_eq!(last_conversation_key(&*journal, &folder).await.unwrap(), free);
    runtime.shutdown().await.unwrap();
}
