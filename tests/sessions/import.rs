//! Sessions from a file, through the real program.

use serde_json::json;

use crate::desk::Desk;

const ASKS: &str = "[[approval.rule]]\ntool = \"exec\"\ncommand = \"touch *\"\naction = \"ask\"\n";
const DENIES: &str = "[[approval.rule]]\ntool = \"exec\"\ncommand = \"touch *\"\naction = \"deny\"\n";

/// S5, P4: an approved call of an export runs neither with `resume` nor with the importer's next turn; the folder is the
/// importer's.
#[test]
fn an_imported_session_runs_no_command_and_works_in_the_importers_folder() {
    let call = json!({"calls": [{"name": "exec", "arguments": {"command": "touch planted"}}]});
    let there = Desk::new(&json!([call, "Planted."]));
    there.configure(ASKS);
    let (code, out, errors) = there.run(&["run", "-s", "a", "go"]);
    assert_eq!(code, 7, "{out}{errors}");
    let question = there.records("a", "question").remove(0)["id"].as_str().unwrap().to_owned();
    assert_eq!(there.run(&["answer", "-s", "a", &question, "yes"]).0, 0);
    let file = there.path("a.jsonl").display().to_string();
    assert_eq!(there.run(&["sessions", "export", "a", &file]).0, 0);
    let here = Desk::new(&json!(["asked elsewhere", "Hello."]));
    here.configure(DENIES);

    let (code, out, errors) = here.run(&["sessions", "import", &file]);
    assert_eq!(code, 0, "{out}{errors}");
    let (_, _, resumed) = here.run(&["resume"]);
    let (code, answer, errors) = here.run(&["run", "-s", "a", "where are we?"]);

    assert!(resumed.contains("nothing to resume"), "{resumed}");
    assert_eq!((code, answer.as_str()), (0, "Hello.\n"), "{errors}");
    assert!(here.records("a", "tool_started").is_empty());
    for desk in [&there, &here] {
        assert!(!desk.path("work/planted").exists());
    }
    let mark = here.records("a", "imported").remove(0);
    let work = here.path("work").canonicalize().unwrap();
    assert_eq!(mark["work_dir"].as_str(), work.to_str());
    assert_eq!(mark["mine"], serde_json::Value::Null);
    let status = here.json(&["status", "-s", "a", "--json"]);
    assert_eq!(status["work_dir"].as_str(), work.to_str());
}

/// P8: a folder can have any name, and none drives the terminal.
#[test]
fn the_folder_of_an_imported_session_is_printed_without_control_characters() {
    let there = Desk::new(&json!(["Hello."]));
    assert_eq!(there.run(&["run", "-s", "a", "hi"]).0, 0);
    let file = there.path("a.jsonl").display().to_string();
    assert_eq!(there.run(&["sessions", "export", "a", &file]).0, 0);
    let desk = Desk::new(&json!([]));
    let folder = desk.path("work/\u{1b}]0;title\u{7}\u{202e}x");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();

    let (code, out, errors) = desk.run(&["--work-dir", folder, "sessions", "import", &file]);

    assert_eq!(code, 0, "{out}{errors}");
    assert!(out.contains("It works in "), "{out}");
    assert!(!out.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{out:?}");
}

/// The next conversation in a folder does not go on in a session that a file brought along. Whoever opens an imported session is told.
#[test]
fn a_folder_does_not_open_a_session_of_somebody_elses() {
    let (there, here) = (Desk::new(&json!(["Hello."])), Desk::new(&json!(["asked elsewhere", "Mine."])));
    let folder = here.key();
    assert_eq!(there.run(&["run", "-s", &folder, "hi"]).0, 0);
    let file = there.path("a.jsonl").display().to_string();
    assert_eq!(there.run(&["sessions", "export", &folder, &file]).0, 0);

    let (code, out, errors) = here.run(&["sessions", "import", &file]);

    let key = &folder;
    assert_eq!(code, 0, "{out}{errors}");
    assert!(out.contains(&format!("Imported {key} (")), "{out}{errors}");
    let (_, _, plain) = here.talk(&[], "hello\n");
    assert!(plain.contains(&format!("session {folder}-2 (new)")), "{plain}");
    let (_, _, again) = here.talk(&[], "");
    assert!(again.contains(&format!("session {folder}-2 (1 turn so far)")), "{again}");
    let (_, _, opened) = here.talk(&["-s", key], "");
    let foreign = "imported from a file; entries up to";
    assert!(opened.contains(foreign) && !plain.contains(foreign), "{opened}{plain}");
    let (_, table, _) = here.run(&["sessions"]);
    assert!(table.contains("[imported] hi"), "{table}");
    let listed = here.json(&["sessions", "--json"]);
    let imported = listed.as_array().unwrap().iter().find(|session| session["key"] == **key);
    assert_eq!(imported.unwrap()["imported"], true);
    assert!(here.run(&["status", "-s", key]).1.contains("\nimported      from a file"));
    assert_eq!(here.json(&["status", "-s", key, "--json"])["imported"], true);
    here.json(&["sessions", "delete", key, "--now", "--json"]);
    assert_eq!(here.run(&["sessions", "import", &file, "--mine"]).0, 0);
    let (_, _, mine) = here.talk(&[], "");
    assert!(mine.contains(&format!("session {folder} (1 turn so far)")), "{mine}");
}
