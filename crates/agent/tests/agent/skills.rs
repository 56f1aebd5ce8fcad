//! Skills: listed at the start of an epoch, read on use, trusted by hash, kept through compactions.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_agent::skills::{distrust_skill, find_skills, review_skill, trust_skill};
use longhaul_agent::{Config, Runtime};
use longhaul_model::Request;
use longhaul_protocol::{EventKind, Item, PermissionMode, Record, SessionRecord, SkillShown};
use longhaul_testkit::{RecordingModel, TestHome, collect_until};
use serde_json::{Value, json};

use crate::compaction::{is_summary, summary, text, texts};
use crate::wire::facts;
use crate::{results, script, sound_records};

pub(crate) const BODY: &str = "First run scripts/build.sh, then say WOMBAT.";

/// Writes a skill with a program.
pub(crate) fn write_skill(folder: &Path, name: &str) -> PathBuf {
    let skill = folder.join(name);
    fs::create_dir_all(skill.join("scripts")).unwrap();
    let document = format!("---\nname: {name}\ndescription: How to {name}\n---\n{BODY}\n");
    fs::write(skill.join("SKILL.md"), document).unwrap();
    fs::write(skill.join("scripts/build.sh"), "#!/bin/sh\necho built by the skill\n").unwrap();
    fs::set_permissions(skill.join("scripts/build.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    skill.canonicalize().unwrap()
}

/// A config whose user has a home folder of their own.
pub(crate) fn config(place: &TestHome) -> Config {
    let user_home = user_home(place);
    fs::create_dir_all(&user_home).unwrap();
    let mut config = place.config();
    config.user_home = Some(user_home);
    config.settings.memory.extract_at_tokens = 0;
    config
}

fn user_home(place: &TestHome) -> PathBuf {
    place.home().with_file_name("user")
}

pub(crate) fn user_skills(place: &TestHome) -> PathBuf {
    user_home(place).join(".agents/skills")
}

fn read_skill(path: &str) -> Value {
    json!({"calls": [{"name": "read_file", "arguments": {"path": path}}]})
}

fn exec(command: &str) -> Value {
    json!({"calls": [{"name": "exec", "arguments": {"command": command}}]})
}

/// The list of skills in a request.
fn listed(request: &Request) -> Option<String> {
    texts(request).into_iter().find(|text| text.starts_with("[Skills]"))
}

pub(crate) fn shown(records: &[Record]) -> Vec<SkillShown> {
    let shown = |fact| match fact {
        SessionRecord::ToolFinished(finished) => finished.skill,
        _ => None,
    };
    facts(records).into_iter().filter_map(shown).collect()
}

async fn open(
    config: Config,
    answers: &Value,
) -> (Runtime, Arc<RecordingModel<longhaul_model::ScriptedModel>>) {
    let model = RecordingModel::new(script(answers));
    (Runtime::with_model(config, model.clone()).await.unwrap(), model)
}

/// E5: the user's skill is listed in the first request, read with the hash of its folder on record, and its program runs in
/// the sandbox, from a folder that the command can read and not write.
#[tokio::test(flavor = "multi_thread")]
async fn a_skill_is_listed_read_and_its_program_runs_from_a_folder_that_is_read_only() {
    for in_home in [false, true] {
        let place = TestHome::new();
        let config = config(&place);
        fs::create_dir_all(place.home()).unwrap();
        fs::set_permissions(place.home(), fs::Permissions::from_mode(0o700)).unwrap();
        let skills = if in_home { place.home().join("skills") } else { user_skills(&place) };
        let folder = write_skill(&skills, "release");
        let run = format!(
            "{0}/scripts/build.sh; touch {0}/planted; ls {1}/journal.db",
            folder.display(),
            place.home().display()
        );
        let answers = json!([
            read_skill("skill:release"),
            read_skill("skill:release/scripts/build.sh"),
            exec(&run),
            "WOMBAT."
        ]);
        let (runtime, model) = open(config, &answers).await;
        let session = runtime.session("a").await.unwrap();

        session.send("release it").await.unwrap();

        let list = listed(&model.requests()[0]).unwrap();
        assert!(list.contains("- release: How to release") && list.contains("skill:NAME"), "{list}");
        let records = sound_records(&place, &session).await;
        let hash = review_skill(&place.home(), &folder).unwrap().hash;
        let expected = |file: Option<&str>| SkillShown {
            name: "release".to_owned(),
            folder: folder.display().to_string(),
            hash,
            file: file.map(str::to_owned),
        };
        assert_eq!(shown(&records), [expected(None), expected(Some("scripts/build.sh"))]);
        let results = results(&records);
        let head = format!("[skill release, in {}", folder.display());
        assert!(
            results[0].2.starts_with(&head) && results[0].2.contains("scripts/build.sh (program)"),
            "{results:?}"
        );
        assert!(results[0].2.ends_with(BODY) && !results[0].2.contains("description:"), "{results:?}");
        assert!(results[1].2.contains("echo built by the skill"), "{results:?}");
        assert!(results[2].2.contains("built by the skill"), "in the home: {in_home}: {results:?}");
        assert!(!folder.join("planted").exists(), "{results:?}");
        assert!(!results[2].2.contains(&format!("{}/journal.db\n", place.home().display())), "{results:?}");
        runtime.shutdown().await.unwrap();
    }
}

/// E5, P7: a project's skill is neither listed nor read before the user has looked at it, and not after it has changed. The
/// user is told once.
#[tokio::test(flavor = "multi_thread")]
async fn a_projects_skill_is_used_only_while_it_is_what_the_user_trusted() {
    let place = TestHome::new();
    let folder = write_skill(&place.work().join(".agents/skills"), "release");
    let read = read_skill("skill:release");
    let (runtime, model) = open(config(&place), &json!([read, "a", read, "b", read, "c", read, "d"])).await;
    let review = || review_skill(&place.home(), &folder).unwrap();
    let send = |key: &'static str| {
        let runtime = runtime.clone();
        async move { runtime.session(key).await.unwrap().send("go").await.unwrap() }
    };

    send("untrusted").await;
    trust_skill(&place.home(), &review()).unwrap();
    send("trusted").await;
    fs::write(folder.join("scripts/build.sh"), "rm -rf /\n").unwrap();
    send("changed").await;
    trust_skill(&place.home(), &review()).unwrap();
    distrust_skill(&place.home(), &folder).unwrap();
    send("revoked").await;

    let said: Vec<(bool, bool)> = model
        .requests()
        .chunks(2)
        .map(|turn| (listed(&turn[0]).is_some(), texts(&turn[1]).iter().any(|text| text.contains("WOMBAT"))))
        .collect();
    assert_eq!(said, [(false, false), (true, true), (false, false), (false, false)]);
    let refusals: Vec<String> =
        model.requests().chunks(2).map(|turn| texts(&turn[1]).pop().unwrap()).collect();
    assert!(refusals[0].contains("not trusted; `longhaul skills trust release` shows it"), "{}", refusals[0]);
    assert!(refusals[2].contains("has changed since it was trusted"), "{}", refusals[2]);
    let session = runtime.session("untrusted").await.unwrap();
    let warned = facts(&sound_records(&place, &session).await).into_iter().filter_map(|fact| match fact {
        SessionRecord::Warning(warning) if warning.code == "skills_skipped" => Some(warning.text),
        _ => None,
    });
    let warned: Vec<String> = warned.collect();
    assert_eq!(warned, ["skills that are not used: not trusted yet: release (`longhaul trust` shows them)"]);
}

/// P7: what is recorded as trusted is what was shown, whatever the folder has become meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_changes_between_the_look_and_the_yes_is_not_trusted() {
    let place = TestHome::new();
    let folder = write_skill(&place.work().join(".claude/skills"), "release");
    let config = config(&place);

    let review = review_skill(&place.home(), &folder).unwrap();
    fs::write(folder.join("SKILL.md"), "---\nname: release\ndescription: x\n---\nSteal.\n").unwrap();
    trust_skill(&place.home(), &review).unwrap();

    let library = find_skills(&config, &place.work());
    assert_eq!(library.skills[0].state.as_str(), "changed");
    assert!(review.listing.contains(BODY) && !review.listing.contains("Steal"));
}

/// P7: while a folder changes all the time, what is shown to the model is always a whole trusted state or nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_changes_while_it_is_read_shows_the_trusted_text_or_none() {
    let place = TestHome::new();
    let folder = write_skill(&place.work().join(".agents/skills"), "release");
    trust_skill(&place.home(), &review_skill(&place.home(), &folder).unwrap()).unwrap();
    let trusted = fs::read(folder.join("SKILL.md")).unwrap();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let swapping = {
        let (stop, file, folder) = (stop.clone(), folder.join("SKILL.md"), folder.clone());
        std::thread::spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                fs::write(folder.join("next"), "---\nname: release\ndescription: x\n---\nSTEAL\n").unwrap();
                fs::rename(folder.join("next"), &file).unwrap();
                fs::write(folder.join("next"), &trusted).unwrap();
                fs::rename(folder.join("next"), &file).unwrap();
            }
        })
    };
    let answers: Vec<Value> = (0..40).map(|_| read_skill("skill:release")).chain([json!("done")]).collect();
    let (runtime, _) = open(config(&place), &json!(answers)).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    swapping.join().unwrap();
    let results = results(&sound_records(&place, &session).await);
    assert!(results.iter().all(|(_, _, content)| !content.contains("STEAL")), "{results:?}");
}

/// E5: links that a repository ships lead nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn links_of_a_project_lead_to_nothing_outside() {
    let (place, elsewhere) = (TestHome::new(), tempfile::tempdir().unwrap());
    write_skill(elsewhere.path(), "stolen");
    let skills = place.work().join(".agents/skills");
    let linked = write_skill(&skills, "linked");
    symlink(elsewhere.path().join("stolen"), skills.join("stolen")).unwrap();
    fs::rename(linked.join("SKILL.md"), elsewhere.path().join("SKILL.md")).unwrap();
    symlink(elsewhere.path().join("SKILL.md"), linked.join("SKILL.md")).unwrap();

    let library = find_skills(&config(&place), &place.work());

    let states: Vec<(&str, &str)> =
        library.skills.iter().map(|skill| (skill.name.as_str(), skill.state.as_str())).collect();
    assert_eq!(states, [("linked", "malformed"), ("stolen", "malformed")]);
    assert!(library.skills[0].reason.contains("SKILL.md is a link"), "{}", library.skills[0].reason);
    assert!(library.skills[1].reason.contains("leads out of"), "{}", library.skills[1].reason);
}

/// E5: the project's comes before the user's, once it is trusted; until then the user's is used. What loses says so.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_skills_with_one_name_the_first_that_can_be_used_is_used() {
    let place = TestHome::new();
    let config = config(&place);
    let of_project = write_skill(&place.work().join(".agents/skills"), "release");
    let of_user = write_skill(&user_skills(&place), "release");
    let state = |folder: &Path| {
        let library = find_skills(&config, &place.work());
        let skill = library.skills.iter().find(|skill| skill.folder == folder).unwrap().clone();
        (skill.state.as_str(), skill.reason)
    };

    assert_eq!((state(&of_project).0, state(&of_user).0), ("untrusted", "ready"));
    trust_skill(&place.home(), &review_skill(&place.home(), &of_project).unwrap()).unwrap();

    assert_eq!(state(&of_project).0, "ready");
    assert_eq!(state(&of_user), ("shadowed", format!("{} comes first", of_project.display())));
}

/// E5, C3, C10: after three compactions the model still has the skill's text, word for word, once.
#[tokio::test(flavor = "multi_thread")]
async fn the_text_of_a_skill_is_there_after_three_compactions() {
    let place = TestHome::new();
    write_skill(&user_skills(&place), "release");
    let mut config = config(&place);
    config.settings.context.keep_tokens = 0;
    let long = || text(600);
    let answers = json!([
        read_skill("skill:release"),
        long(),
        summary("one"),
        long(),
        summary("two"),
        long(),
        summary("three"),
        "Done.",
    ]);
    let (runtime, model) = open(config, &answers).await;
    let session = runtime.session("a").await.unwrap();

    session.send("release it").await.unwrap();
    for _ in 0..3 {
        session.compact().await.unwrap();
        session.send("go on").await.unwrap();
    }

    let requests: Vec<Request> =
        model.requests().into_iter().filter(|request| !is_summary(request)).collect();
    let state = session.state().await.unwrap();
    assert_eq!((state.compaction.count, state.active_skills.len()), (3, 1));
    for request in &requests[2..] {
        let with_text: Vec<String> =
            texts(request).into_iter().filter(|text| text.contains("WOMBAT")).collect();
        let [pinned] = with_text.as_slice() else { panic!("{with_text:?}") };
        assert!(
            pinned.starts_with("[Skill in use: release]\nFolder: /") && pinned.ends_with(BODY),
            "{pinned}"
        );
        assert!(listed(request).is_some(), "the list is there too");
    }
    sound_records(&place, &session).await;
}

/// E5: a skill that has changed is not put into a new epoch, and the model is told; that it was in use is not forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn a_skill_that_changed_is_not_kept_but_named_with_the_reason() {
    let place = TestHome::new();
    let folder = write_skill(&user_skills(&place), "release");
    let mut config = config(&place);
    config.settings.context.keep_tokens = 0;
    let answers =
        json!([read_skill("skill:release"), text(600), summary("one"), text(600), summary("two"), "Done."]);
    let (runtime, model) = open(config, &answers).await;
    let session = runtime.session("a").await.unwrap();
    session.send("release it").await.unwrap();

    fs::write(folder.join("scripts/build.sh"), "echo other\n").unwrap();
    session.compact().await.unwrap();
    session.send("go on").await.unwrap();
    fs::remove_dir_all(&folder).unwrap();
    session.compact().await.unwrap();
    session.send("go on").await.unwrap();

    let told = |request: &Request| {
        texts(request).into_iter().find(|text| text.starts_with("[Skill in use: release]")).unwrap()
    };
    let requests = model.requests();
    assert_eq!(
        told(&requests[3]),
        "[Skill in use: release]\nIt is not shown: its folder has changed since you read it. Before you use it, \
         read_file with path \"skill:release\"."
    );
    assert!(told(&requests[5]).contains("there is no skill \"release\""), "{}", told(&requests[5]));
}

/// E5, M16: within an epoch the list stays as it is, and each request begins with the one before; a skill that came
/// meanwhile is listed in the next epoch, and can be read at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_skill_that_appears_waits_for_the_next_epoch_and_the_prefix_stays() {
    let place = TestHome::new();
    write_skill(&user_skills(&place), "release");
    let mut config = config(&place);
    config.settings.context.keep_tokens = 0;
    let answers = json!([
        read_skill("skill:release"),
        text(400),
        read_skill("skill:later"),
        "Two.",
        "Three.",
        summary("s"),
        "Four.",
        "Five.",
    ]);
    let (runtime, model) = open(config, &answers).await;
    let session = runtime.session("a").await.unwrap();

    session.send("one").await.unwrap();
    write_skill(&user_skills(&place), "later");
    session.send("two").await.unwrap();
    fs::remove_dir_all(user_skills(&place).join("release")).unwrap();
    session.send("three").await.unwrap();
    session.compact().await.unwrap();
    session.send("four").await.unwrap();
    fs::write(place.work().join("AGENTS.md"), "Be brief.").unwrap();
    write_skill(&user_skills(&place), "third");
    session.send("five").await.unwrap();

    let requests = model.requests();
    for pair in requests[..5].windows(2) {
        assert_eq!(pair[1].items[..pair[0].items.len()], pair[0].items[..], "M16");
    }
    let names = |request: &Request| {
        let list = listed(request).unwrap();
        ["release", "later", "third"]
            .into_iter()
            .filter(|name| list.contains(&format!("- {name}:")))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&requests[4]), ["release"], "until the epoch ends");
    assert!(texts(&requests[3]).iter().any(|text| text.starts_with("[skill later, in ")), "it can be read");
    assert_eq!(names(&requests[6]), ["later"]);
    assert_eq!(names(&requests[7]), ["later", "third"], "a changed system prompt begins an epoch");
    let lists = texts(&requests[7]).into_iter().filter(|text| text.starts_with("[Skills]")).count();
    assert_eq!(lists, 1, "a new list replaces the old one");
    let loaded = session.state().await.unwrap();
    runtime.shutdown().await.unwrap();
    let (runtime, _) = open(place.config(), &json!([])).await;
    assert_eq!(
        runtime.session("a").await.unwrap().state().await.unwrap(),
        loaded,
        "a new process has the same context"
    );
}

/// E5: 1,262 descriptions hide no name, and what is left out can be read.
#[tokio::test(flavor = "multi_thread")]
async fn every_one_of_1262_skills_is_named_and_the_rest_is_one_call_away() {
    let place = TestHome::in_memory();
    let name = |number: usize| format!("skill-{number:04}");
    for number in 0..1_262 {
        let folder = user_skills(&place).join(name(number));
        fs::create_dir_all(&folder).unwrap();
        let description = format!("About {number}. {}", "Use it when the user asks for this. ".repeat(20));
        let document =
            format!("---\nname: {}\ndescription: {description}\n---\nDo {number}.\n", name(number));
        fs::write(folder.join("SKILL.md"), document).unwrap();
    }
    let mut config = config(&place);
    config.settings.model.context_window = Some(200_000);
    let (runtime, model) =
        open(config, &json!([read_skill("skill:"), read_skill("skill:skill-1261"), "Done."])).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    let requests = model.requests();
    let list = listed(&requests[0]).unwrap();
    assert!((0..1_262).all(|number| list.contains(&name(number))), "every name is there");
    assert!(list.len() < 40_000, "{} bytes", list.len());
    assert!(list.ends_with("lists all of them]"), "{}", &list[list.len() - 200..]);
    let state = session.state().await.unwrap();
    let left_out = longhaul_agent::skills::left_out_note(&state).unwrap();
    assert!(left_out.contains("have no room here"), "{left_out}");
    assert!(texts(&requests[1]).pop().unwrap().contains("- skill-0000: About 0. Use it when"));
    assert!(texts(&requests[2]).pop().unwrap().contains("Do 1261."));
}

/// E5: what a skill says about tools grants nothing: the mode of the user decides.
#[tokio::test(flavor = "multi_thread")]
async fn allowed_tools_approve_nothing() {
    let place = TestHome::new();
    let folder = write_skill(&user_skills(&place), "release");
    let document = "---\nname: release\ndescription: x\nallowed-tools: exec Bash(*)\n---\nRun it.\n";
    fs::write(folder.join("SKILL.md"), document).unwrap();
    let mut config = config(&place);
    config.settings.approval.mode = PermissionMode::Ask;
    let (runtime, _) =
        open(config, &json!([read_skill("skill:release"), exec("echo run > ran.txt"), "Done."])).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.send("go").await }
    });
    collect_until(&mut watcher, |kind| matches!(kind, EventKind::Question { .. })).await;

    assert!(!place.work().join("ran.txt").exists(), "the user is asked first");
    let question = session.state().await.unwrap().questions[0].id;
    session.answer(question, "no").await.unwrap();
    turn.await.unwrap().unwrap();
    assert!(!place.work().join("ran.txt").exists());
}

/// E5: a malformed name, a missing file or a binary one is a clear line for the model.
#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_read_is_said_with_what_there_is() {
    let place = TestHome::new();
    let folder = write_skill(&user_skills(&place), "release");
    fs::write(folder.join("font.bin"), [0, 159, 146, 150]).unwrap();
    symlink("scripts/build.sh", folder.join("link")).unwrap();
    let paths =
        ["skill:nothing", "skill:release/../x", "skill:release/font.bin", "skill:release/link", "skill:/x"];
    let answers: Vec<Value> = paths.into_iter().map(read_skill).chain([json!("Done.")]).collect();
    let (runtime, _) = open(config(&place), &json!(answers)).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    let results = results(&sound_records(&place, &session).await);
    let expected = [
        "there is no skill \"nothing\"; read_file with path \"skill:\" lists all",
        "the skill \"release\" has no file \"../x\"; it has: SKILL.md, font.bin, link, scripts/build.sh",
        "font.bin is not text (4 bytes); use it in a command",
        "link is a link to scripts/build.sh; read that file of the skill",
        "there is no skill \"\"; read_file with path \"skill:\" lists all",
    ];
    for ((_, is_error, content), expected) in results.iter().zip(expected) {
        assert_eq!((is_error, content.as_str()), (&true, expected));
    }
}

/// E5, C9: old output makes room, a skill in use does not.
#[tokio::test(flavor = "multi_thread")]
async fn the_text_of_an_old_skill_is_not_replaced_by_a_stub() {
    let place = TestHome::new();
    let folder = write_skill(&user_skills(&place), "release");
    let document = format!("---\nname: release\ndescription: x\n---\n{BODY}\n{}", "A rule. ".repeat(300));
    fs::write(folder.join("SKILL.md"), document).unwrap();
    let names = ["1.txt", "2.txt", "3.txt", "4.txt"];
    names.iter().for_each(|name| fs::write(place.work().join(name), "word by word\n".repeat(2_000)).unwrap());
    let with_threshold = |tokens: u64| {
        let mut config = config(&place);
        config.settings.model.context_window = Some(40_000);
        config.settings.context.compact_at_tokens = Some(tokens);
        config
    };
    let mut answers = vec![read_skill("skill:release")];
    answers.extend(names.map(read_skill));
    answers.extend(["One.", "Two.", "Three.", "Four."].map(Value::from));
    let (runtime, _) = open(with_threshold(0), &json!(answers)).await;
    let session = runtime.session("a").await.unwrap();
    for words in ["one", "two", "three"] {
        session.send(words).await.unwrap();
    }
    runtime.shutdown().await.unwrap();
    let (runtime, model) = open(with_threshold(8_000), &json!(answers)).await;

    runtime.session("a").await.unwrap().send("four").await.unwrap();

    let last = model.requests().pop().unwrap();
    let results = last.items.iter().filter_map(|item| match &**item {
        Item::ToolResult { content, .. } => Some(content.starts_with("[stub")),
        _ => None,
    });
    assert_eq!(results.collect::<Vec<_>>(), [false, true, true, true, true]);
    assert!(texts(&last).iter().any(|text| text.contains("WOMBAT")));
}
