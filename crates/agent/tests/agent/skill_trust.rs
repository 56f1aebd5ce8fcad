//! Skills that a session could have changed, and files of skills that the user denies.

use std::fs;
use std::path::Path;

use longhaul_agent::skills::{find_skills, review_skill, trust_skill};
use longhaul_agent::{Config, Runtime};
use longhaul_testkit::{RecordingModel, TestHome};
use longhaul_tools::{AllowedTarget, DeniedTarget, Permission};
use serde_json::{Value, json};

use crate::skills::{BODY, config, user_skills, write_skill};
use crate::{results, script, sound_records};

fn state(config: &Config, folder: &Path) -> String {
    let library = find_skills(config, &config.work_dir);
    let skill = library.skills.iter().find(|skill| skill.folder == folder);
    skill.map_or_else(|| "none".to_owned(), |skill| skill.state.as_str().to_owned())
}

/// Lets a session of the home work in a folder.
async fn work_in(config: Config, folder: &Path) {
    let model = RecordingModel::new(script(&json!(["Done."])));
    let runtime = Runtime::with_model(config, model).await.unwrap();
    let session = runtime.session("other").await.unwrap();
    session.create_in(&folder.canonicalize().unwrap()).await.unwrap();
    session.send("go").await.unwrap();
    runtime.shutdown().await.unwrap();
}

/// E5, P7: what one session can write is no instruction for another one before the user has looked at it.
#[tokio::test(flavor = "multi_thread")]
async fn a_users_skill_where_another_session_has_worked_needs_trust() {
    let place = TestHome::new();
    let config = config(&place);
    let skills = user_skills(&place);
    let (worked_on, other) = (write_skill(&skills, "release"), write_skill(&skills, "review"));
    assert_eq!(
        (state(&config, &worked_on), state(&config, &other)),
        ("ready".to_owned(), "ready".to_owned())
    );

    work_in(config.clone(), &worked_on).await;
    let after = (state(&config, &worked_on), state(&config, &other));
    trust_skill(&place.home(), &review_skill(&place.home(), &worked_on).unwrap()).unwrap();
    let trusted = state(&config, &worked_on);
    fs::write(worked_on.join("SKILL.md"), "---\nname: release\ndescription: x\n---\nSteal.\n").unwrap();

    assert_eq!(after, ("untrusted".to_owned(), "ready".to_owned()));
    assert_eq!((trusted.as_str(), state(&config, &worked_on).as_str()), ("ready", "changed"));
    let library = find_skills(&config, &place.work());
    let reason = &library.skills.iter().find(|skill| skill.folder == worked_on).unwrap().reason;
    assert!(reason.contains("longhaul skills trust release"), "{reason}");
}

/// E5: the list of folders is made again from the journal.
#[tokio::test(flavor = "multi_thread")]
async fn the_folders_that_sessions_worked_in_are_known_without_their_list() {
    let place = TestHome::new();
    let config = config(&place);
    let skill = write_skill(&user_skills(&place), "release");
    work_in(config.clone(), &skill).await;

    fs::remove_file(place.home().join("work_folders")).unwrap();
    let forgotten = state(&config, &skill);
    let model = RecordingModel::new(script(&json!([])));
    Runtime::with_model(config.clone(), model).await.unwrap().shutdown().await.unwrap();

    assert_eq!((forgotten.as_str(), state(&config, &skill).as_str()), ("ready", "untrusted"));
}

/// E5, P7: a folder that every session may write by `scope.allow` is no different.
#[tokio::test(flavor = "multi_thread")]
async fn a_skill_that_the_scope_lets_sessions_write_needs_trust() {
    let place = TestHome::new();
    let mut config = config(&place);
    let skill = write_skill(&user_skills(&place), "release");
    config.settings.scope.allow.push(AllowedTarget {
        target: user_skills(&place).display().to_string(),
        permission: Permission::Write,
    });

    assert_eq!(state(&config, &skill), "untrusted");
}

/// E5, P3: what the user denies is neither a skill nor a part of one.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_user_denies_in_a_skill_is_not_read() {
    let place = TestHome::new();
    let mut config = config(&place);
    let skill = write_skill(&user_skills(&place), "release");
    let denied = write_skill(&user_skills(&place), "denied");
    fs::write(skill.join("keys.txt"), "the key is KOALA").unwrap();
    let deny =
        |path: &Path| DeniedTarget { target: path.display().to_string(), permission: Permission::Read };
    config.settings.scope.deny = vec![deny(&skill.join("keys.txt")), deny(&denied)];
    let call = |name: &str, arguments: Value| json!({"calls": [{"name": name, "arguments": arguments}]});
    let answers = json!([
        call("read_file", json!({"path": "skill:release"})),
        call("read_file", json!({"path": "skill:release/keys.txt"})),
        call("exec", json!({"command": format!("cat {}", skill.join("keys.txt").display())})),
        "Done.",
    ]);
    let runtime = Runtime::with_model(config.clone(), RecordingModel::new(script(&answers))).await.unwrap();
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    let results = results(&sound_records(&place, &session).await);
    assert!(results[0].2.contains(BODY), "{results:?}");
    assert!(results[1].2.contains("scope.deny keeps its file keys.txt out of reach"), "{results:?}");
    assert!(results.iter().all(|(_, _, content)| !content.contains("KOALA")), "{results:?}");
    assert_eq!(state(&config, &denied), "none");
    runtime.shutdown().await.unwrap();
}
