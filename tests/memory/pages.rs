//! Pages: written, shown, listed, logged, compared, undone, exported. No model is asked for any of it.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::{names, without_model, write};

/// Y9, Y10
#[test]
fn a_page_that_a_person_writes_is_listed_shown_and_mirrored() {
    let desk = without_model();

    let (code, out, errors) = desk.talk(&["memory", "edit", "core", "-"], "# About\n- The user likes tea.\n");

    assert_eq!(code, 0, "{out}{errors}");
    assert_eq!(out, "new: core (change 1; to undo: longhaul memory undo 1)\n");
    assert!(errors.contains("core is a new page"), "{errors}");
    assert_eq!(desk.run(&["memory", "show", "core"]).1, "# About\n- The user likes tea.\n");
    let listing = desk.json(&["memory", "list", "--json"]);
    let page = &listing["pages"][0];
    assert_eq!((&page["page"], &page["first_line"]), (&"core".into(), &"About".into()));
    assert_eq!((&page["versions"], &page["changed_by"]), (&1.into(), &"person".into()));
    assert_eq!(listing["waiting"], 0);
    let folder = PathBuf::from(listing["folder"].as_str().unwrap());
    assert!(folder.ends_with(format!("memory/{}", listing["scope"].as_str().unwrap())), "{folder:?}");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.contains(&folder.join("core.md")), "{files:?}");
    let shown = desk.run(&["memory"]).1;
    assert!(shown.contains("1 page") && shown.contains(&folder.display().to_string()), "{shown}");
}

#[test]
fn looking_where_nothing_is_remembered_makes_no_home() {
    let desk = without_model();
    let home = desk.path("elsewhere");
    let run =
        |arguments: &[&str]| desk.run(&[&["--home", home.to_str().unwrap(), "memory"], arguments].concat());

    assert!(run(&[]).1.starts_with("no memory in "));
    assert_eq!(run(&["search", "tea", "--json"]).1, "[]\n");
    let (code, _, errors) = run(&["show", "core"]);
    assert_eq!(code, 2, "{errors}");
    assert_eq!(run(&["edit", "../core", "--file", "/dev/null"]).0, 2);
    assert!(!home.exists());
}

/// Y9
#[test]
fn every_change_is_logged_compared_and_undone() {
    let desk = without_model();
    let first = write(&desk, "core", "- tea\n");
    let second = write(&desk, "core", "- tea\n- coffee\n");

    let log = desk.json(&["memory", "log", "--json"]);
    let diff = desk.run(&["memory", "diff", &second]).1;
    let (code, undone, errors) = desk.run(&["memory", "undo", &second]);

    let seqs: Vec<String> = log.as_array().unwrap().iter().map(|change| change["seq"].to_string()).collect();
    assert_eq!(seqs, [second.clone(), first.clone()], "the newest first");
    assert_eq!((&log[0]["by"], &log[0]["reason"]), (&"person".into(), &"edited by hand".into()));
    assert!(diff.contains("+- coffee") || diff.contains("+ - coffee"), "{diff}");
    assert_eq!(code, 0, "{errors}");
    assert!(undone.starts_with(&format!("undid change {second}: core (change 3;")), "{undone}");
    assert_eq!(desk.run(&["memory", "show", "core"]).1, "- tea\n");
    assert_eq!(desk.run(&["memory", "show", "core", "--at", &second]).1, "- tea\n- coffee\n");
    let log = desk.run(&["memory", "log", "core"]).1;
    assert!(log.contains(&format!("undo: core, undoes {second}")), "{log}");
}

/// Y9: undo of a change that a newer one builds on says so and shows both.
#[test]
fn a_change_that_a_newer_one_builds_on_is_not_undone() {
    let desk = without_model();
    let first = write(&desk, "core", "- tea\n");
    let second = write(&desk, "core", "- tea\n- coffee\n");

    let (code, _, errors) = desk.run(&["memory", "undo", &first]);

    assert_eq!(code, 1, "{errors}");
    assert!(
        errors.contains(&format!("by change {second}")) && errors.contains("nothing was undone"),
        "{errors}"
    );
    assert!(errors.contains("tea") && errors.contains("coffee"), "both are shown: {errors}");
    assert_eq!(desk.run(&["memory", "show", "core"]).1, "- tea\n- coffee\n");
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let desk = without_model();
    write(&desk, "build", "- cargo\n");
    let refused = |arguments: &[&str]| {
        let (code, out, errors) = desk.run(&[&["memory"], arguments].concat());
        assert_eq!(code, 2, "{arguments:?}: {out}{errors}");
        errors
    };

    assert!(refused(&["show", "biuld"]).contains("no page biuld; did you mean build?"));
    assert!(refused(&["show", "xyz"]).contains("`longhaul memory` lists"));
    assert!(refused(&["log", "biuld"]).contains("build"));
    assert!(refused(&["edit", "biuld", "--remove"]).contains("did you mean build?"));
    assert!(refused(&["undo", "17"]).contains("no change 17"));
    assert!(refused(&["diff", "17"]).contains("no change 17"));
    assert!(refused(&["show", "build", "--at", "17"]).contains("no change 17"));
    assert!(refused(&["export"]).contains("DIR"), "a folder is needed");
}

#[test]
fn a_page_that_was_removed_can_be_seen_as_it_was_and_comes_back() {
    let desk = without_model();
    let first = write(&desk, "core", "- tea\n");

    let (code, out, errors) = desk.run(&["memory", "edit", "core", "--remove", "--json"]);

    assert_eq!(code, 0, "{errors}");
    assert!(names(&desk).is_empty());
    assert!(out.contains(r#""seq":2"#), "{out}");
    assert_eq!(desk.run(&["memory", "show", "core", "--at", &first]).1, "- tea\n");
    let (code, _, errors) = desk.run(&["memory", "show", "core", "--at", "2"]);
    assert!(code == 2 && errors.contains("removed by change 2"), "{errors}");
    assert_eq!(desk.run(&["memory", "undo", "2"]).0, 0);
    assert_eq!(names(&desk), ["core"]);
}

#[test]
fn all_pages_are_exported_as_files_or_as_one_object() {
    let desk = without_model();
    write(&desk, "core", "- tea\n");
    write(&desk, "core", "- coffee\n");
    write(&desk, "build", "- cargo\n");
    let folder = desk.path("pages");
    let to = folder.to_str().unwrap();

    let (code, out, errors) = desk.run(&["memory", "export", to]);
    let (again, _, refused) = desk.run(&["memory", "export", to]);
    let all = desk.json(&["memory", "export", "--json"]);

    assert_eq!(code, 0, "{errors}");
    assert!(out.starts_with("Exported 2 pages of project-work-"), "{out}");
    assert_eq!(std::fs::read_to_string(folder.join("core.md")).unwrap(), "- coffee\n");
    assert_eq!(std::fs::read_to_string(folder.join("build.md")).unwrap(), "- cargo\n");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("core.md"))), (0o700, 0o600), "J8: only for the user");
    assert!(again == 2 && refused.contains("already exists; name a new folder"), "{refused}");
    let core = &all["pages"][1];
    assert_eq!((&core["page"], core["versions"].as_array().unwrap().len()), (&"core".into(), 2));
    assert!(core["versions"][0]["text"].as_str().unwrap().contains("tea"), "{core}");
    let (code, _, errors) = desk.run(&["memory", "export", desk.path("home/pages").to_str().unwrap()]);
    assert!(code == 2 && errors.contains("is in the longhaul home"), "{errors}");
}

/// What is not a file is written to, not replaced.
#[test]
fn an_export_goes_through_pipes() {
    let desk = without_model();
    write(&desk, "core", "- tea\n");
    let pipe = desk.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });

    let (code, _, errors) = desk.run(&["memory", "export", "--json", pipe.to_str().unwrap()]);

    assert_eq!(code, 0, "{errors}");
    assert!(!std::fs::metadata(&pipe).unwrap().is_file(), "it was replaced");
    assert!(reader.join().unwrap().contains("- tea"));
}

/// Y10: what a person did to a file is said, and never overwritten.
#[test]
fn a_file_that_a_person_changed_is_said_and_left() {
    let desk = without_model();
    write(&desk, "core", "- tea\n");
    let listing = desk.json(&["memory", "--json"]);
    let file = PathBuf::from(listing["folder"].as_str().unwrap()).join("core.md");
    std::fs::write(&file, "- mine\n").unwrap();

    let shown = desk.run(&["memory"]).1;
    let (code, _, errors) = desk.talk(&["memory", "edit", "core", "-"], "- coffee\n");

    assert!(shown.contains("core.md") || shown.contains("core was"), "{shown}");
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("core"), "{errors}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "- mine\n");
    assert_eq!(desk.run(&["memory", "show", "core"]).1, "- coffee\n");
}

/// Y11
#[test]
fn pages_are_searched() {
    let desk = without_model();
    write(&desk, "build", "# How to build\n- Run cargo build with one job.\n");
    write(&desk, "core", "- The user likes tea.\n");

    let found = desk.json(&["memory", "search", "cargo", "job", "--json"]);
    let shown = desk.run(&["memory", "search", "cargo", "--limit", "1"]).1;

    assert_eq!((&found[0]["kind"], &found[0]["page"]), (&"page".into(), &"build".into()));
    assert!(found[0]["excerpt"].as_str().unwrap().contains("cargo"), "{found}");
    assert!(shown.starts_with("page build  ("), "{shown}");
    assert_eq!(desk.run(&["memory", "search", "zebra"]).1, "No matches.\n");
}

/// Y11: the example of `docs/memory.md`, and questions without words.
#[test]
fn the_question_of_the_docs_is_answered() {
    let desk = without_model();
    write(&desk, "vera", "# Vera\n- In March she wanted the port 5433.\n");
    let docs = include_str!("../../docs/memory.md");
    let example = docs.lines().find_map(|line| line.strip_prefix("$ longhaul memory search ")).unwrap();

    let arguments: Vec<&str> = ["memory", "search"].into_iter().chain(example.split(' ')).collect();
    let (code, shown, errors) = desk.run(&arguments);

    assert_eq!(code, 0, "{errors}");
    assert!(shown.contains("5433"), "{shown}");
    for nothing in ["***", "\""] {
        let (code, shown, errors) = desk.run(&["memory", "search", nothing]);
        assert_eq!((code, shown.as_str()), (0, "No matches.\n"), "{nothing}: {errors}");
    }
    let (code, _, errors) = desk.run(&["memory", "search", "which of the"]);
    assert_eq!((code, errors.as_str()), (0, ""), "stop words alone are a question, too");
}
