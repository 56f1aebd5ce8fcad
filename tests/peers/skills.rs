//! Skills, by the checker that belongs to their open form.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::installed::peer;

/// A skill's folder and its SKILL.md. The names say what is odd.
fn corpus() -> Vec<(String, String)> {
    let case =
        |folder: &str, front_matter: &str| (folder.to_owned(), format!("---\n{front_matter}\n---\nDo it.\n"));
    let long = |count: usize| "x".repeat(count);
    vec![
        case("plain", "name: plain\ndescription: Use it"),
        case(
            "whole",
            "name: whole\ndescription: Use it\nlicense: MIT\ncompatibility: Linux\nallowed-tools: Read Write\nmetadata:\n  author: me\n  version: 1.0",
        ),
        case("folded", "name: folded\ndescription: >-\n  Use it\n  always"),
        case("quoted", "name: quoted\ndescription: \"Use it: always\""),
        case("123", "name: 123\ndescription: Use it"),
        case("größe", "name: größe\ndescription: Use it"),
        case(&long(64), &format!("name: {}\ndescription: Use it", long(64))),
        case(&long(65), &format!("name: {}\ndescription: Use it", long(65))),
        case("longest", &format!("name: longest\ndescription: {}", long(1_024))),
        case("too-long", &format!("name: too-long\ndescription: {}", long(1_025))),
        case("needy", &format!("name: needy\ndescription: x\ncompatibility: {}", long(501))),
        case("colon", "name: colon\ndescription: Use when: the user asks"),
        case("other-name", "name: other\ndescription: Use it"),
        case("Upper", "name: Upper\ndescription: Use it"),
        case("under_score", "name: under_score\ndescription: Use it"),
        case("-hyphen", "name: -hyphen\ndescription: Use it"),
        case("two--hyphens", "name: two--hyphens\ndescription: Use it"),
        case("nameless", "description: Use it"),
        case("silent", "name: silent"),
        case("empty", "name: empty\ndescription: ''"),
        case("unknown-field", "name: unknown-field\ndescription: x\nmodel: large"),
        case("list", "- name\n- description"),
        ("bare".to_owned(), "Do it.\n".to_owned()),
        ("unclosed".to_owned(), "---\nname: unclosed\ndescription: x\n".to_owned()),
        ("nothing".to_owned(), String::new()),
    ]
}

/// Whether a command ends well.
fn succeeds(program: &Path, arguments: &[&str], folder: &Path) -> bool {
    Command::new(program).args(arguments).arg(folder).output().unwrap().status.success()
}

/// E5: what our check finds nothing wrong with, the checker accepts, and the other way round.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn our_check_agrees_with_the_checker_of_the_open_form() {
    let folder = tempfile::tempdir().unwrap();
    let judge = peer("skills/bin/agentskills");
    let mut verdicts = Vec::new();

    for (name, text) in corpus() {
        let skill = folder.path().join(&name);
        fs::create_dir(&skill).unwrap();
        fs::write(skill.join("SKILL.md"), text).unwrap();
        let ours = Command::new(env!("CARGO_BIN_EXE_longhaul"))
            .args(["skills", "check", "--json"])
            .arg(&skill)
            .env("LONGHAUL_HOME", folder.path().join("home"))
            .output()
            .unwrap();
        let report: serde_json::Value = serde_json::from_slice(&ours.stdout).unwrap();
        let is_fine = report[0]["error"].is_null() && report[0]["warnings"] == serde_json::json!([]);
        verdicts.push((name, is_fine, succeeds(&judge, &["validate"], &skill)));
    }

    let differences: Vec<_> = verdicts.iter().filter(|(_, ours, judged)| ours != judged).collect();
    assert_eq!(differences, Vec::<&(String, bool, bool)>::new());
    assert!(
        verdicts.iter().any(|(_, is_fine, _)| *is_fine) && verdicts.iter().any(|(_, is_fine, _)| !is_fine)
    );
}
