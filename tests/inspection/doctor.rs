//! What the doctor finds wrong, and what it says to do about it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::desk::Desk;

/// What the doctor finds, and whether all of it is as it should be.
fn findings(desk: &Desk) -> (bool, Vec<Value>) {
    let (code, out, errors) = desk.run(&["doctor", "--json"]);
    let findings: Vec<Value> =
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{errors}"));
    (code == 0, findings)
}

/// The one finding of a check that is not as it should be: what was found, and what there is to do.
fn wrong(desk: &Desk, check: &str) -> (String, String) {
    let (is_fine, findings) = findings(desk);
    assert!(!is_fine, "{findings:?}");
    let found = findings.iter().find(|finding| finding["check"] == check && finding["ok"] == false);
    let found = found.unwrap_or_else(|| panic!("{check}: {findings:?}"));
    (found["found"].as_str().unwrap().to_owned(), found["to_do"].as_str().unwrap().to_owned())
}

/// S8, J8
#[test]
fn a_home_that_others_may_look_into_is_found_and_the_advice_mends_it() {
    let desk = Desk::new(&json!([]));
    std::fs::set_permissions(desk.path("home"), Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(desk.path("home/journal.db"), Permissions::from_mode(0o644)).unwrap();

    let (found, to_do) = wrong(&desk, "home");

    assert!(found.contains("other users can read"), "{found}");
    assert!(to_do.starts_with("chmod go= ") && to_do.contains("journal.db"), "{to_do}");
    assert!(Command::new("sh").args(["-c", &to_do]).status().unwrap().success());
    let (is_fine, findings) = findings(&desk);
    assert!(is_fine, "{findings:?}");
}

/// S8
#[test]
fn a_journal_that_does_not_open_is_found_with_what_to_do() {
    let desk = Desk::new(&json!([]));
    std::fs::write(desk.path("home/journal.db"), "something else entirely, ".repeat(200)).unwrap();

    let (found, to_do) = wrong(&desk, "journal");

    assert!(found.contains("is not a longhaul journal"), "{found}");
    assert!(to_do.contains("move the file away"), "{to_do}");
}

/// S8
#[test]
fn a_database_that_does_not_answer_is_found_with_what_to_do() {
    let desk = Desk::new(&json!([]));
    desk.configure("[journal]\nurl = \"postgres://127.0.0.1:1/x\"\n");

    let (found, to_do) = wrong(&desk, "journal");

    assert!(found.contains("postgres://127.0.0.1:1/x: can't reach it"), "{found}");
    assert!(!to_do.is_empty());
}

/// S8
#[test]
fn a_config_that_can_not_be_used_is_found() {
    let desk = Desk::new(&json!([]));
    desk.configure("[retry]\nmax_retires = 3\n");
    let (found, to_do) = wrong(&desk, "config");
    desk.configure("");
    std::fs::write(desk.path("work/longhaul.toml"), "[model]\nbase_url = \"http://127.0.0.1:1/v1\"\n")
        .unwrap();
    let (beyond, trust) = wrong(&desk, "config");

    assert!(found.contains("max_retries") && to_do.contains("longhaul config schema"), "{found}; {to_do}");
    assert!(beyond.contains("base_url") && trust.contains("longhaul trust"), "{beyond}; {trust}");
}

/// S8, E1: no server is started for this.
#[test]
fn an_mcp_server_that_can_not_start_is_found_with_what_to_do() {
    let desk = Desk::new(&json!([]));
    desk.configure(
        "[mcp.servers.gone]\ncommand = 'no-such-program'\n[mcp.servers.fine]\ncommand = 'sh'\nargs = ['-c', 'touch started']\n\
         [mcp.servers.keyed]\nurl = 'https://docs.example.org'\nheaders = { X = '${NO_SUCH_VARIABLE}' }\n",
    );

    let (_, findings) = findings(&desk);

    let of_mcp: Vec<&Value> = findings.iter().filter(|finding| finding["check"] == "mcp").collect();
    assert!(of_mcp[0]["found"].as_str().unwrap().starts_with("1 server configured"), "{of_mcp:?}");
    let wrong: Vec<&str> = of_mcp[1..].iter().map(|finding| finding["found"].as_str().unwrap()).collect();
    assert!(wrong[0].starts_with("gone: the command `no-such-program` is not on the PATH"), "{wrong:?}");
    assert!(wrong[1].contains("needs the variable NO_SUCH_VARIABLE"), "{wrong:?}");
    assert!(of_mcp[1]["to_do"].as_str().unwrap().contains("longhaul mcp check gone"), "{of_mcp:?}");
    assert!(!desk.path("work/started").exists());
}

/// S8, P7
#[test]
fn a_projects_file_of_mcp_servers_that_is_not_used_is_found_with_what_to_do() {
    let desk = Desk::new(&json!([]));
    let file = desk.path("work/.mcp.json");

    std::fs::write(&file, r#"{"mcpServers": {"x": {"command": "x"}}}"#).unwrap();
    let (untrusted, look) = wrong(&desk, "config");
    std::fs::write(&file, "{").unwrap();
    let (broken, fix) = wrong(&desk, "config");

    assert!(untrusted.contains("ignoring the MCP servers x"), "{untrusted}");
    assert!(look.contains("longhaul trust") && !look.contains("key"), "{look}");
    assert!(broken.contains(".mcp.json"), "{broken}");
    assert_eq!(fix, "fix or remove the file");
}

/// S8
#[test]
fn a_journal_that_was_replaced_long_ago_is_remembered() {
    let desk = Desk::new(&json!([]));
    let backup = desk.path("backup.db").to_str().unwrap().to_owned();
    assert_eq!(desk.run(&["backup", &backup]).0, 0);
    assert_eq!(desk.run(&["restore", &backup]).0, 0);
    assert!(findings(&desk).0, "a fresh one is nobody's business: {:?}", findings(&desk));
    let trash = std::fs::read_dir(desk.path("home/trash")).unwrap();
    let old = SystemTime::now() - Duration::from_secs(15 * 24 * 3_600);
    for kept in trash.map(|entry| entry.unwrap().path()) {
        std::fs::File::options().write(true).open(kept).unwrap().set_modified(old).unwrap();
    }

    let (found, to_do) = wrong(&desk, "trash");

    assert!(found.contains("1 journal"), "{found}");
    assert!(to_do.contains("rm ") && to_do.contains("trash/journal-"), "{to_do}");
}

/// S8: a process that works in the home is named, and is nothing to worry about.
#[test]
fn who_else_works_in_the_home_is_said() {
    let desk = Desk::new(&json!([]));
    let mut serving = desk.command(&["serve", "--no-http"]).stderr(Stdio::null()).spawn().unwrap();
    let until = std::time::Instant::now() + Duration::from_secs(20);
    let socket = desk.path(&format!("home/run/{}.sock", serving.id()));
    while !socket.exists() && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }

    let (_, findings) = findings(&desk);
    serving.kill().unwrap();
    serving.wait().unwrap();

    let named = format!("in use by process {} (longhaul serve)", serving.id());
    assert!(findings.iter().any(|finding| finding["found"] == named.as_str()), "{findings:?}");
}

/// S8
#[test]
fn tasks_that_can_not_be_listed_are_found() {
    let desk = Desk::new(&json!([]));
    std::fs::write(desk.path("home/tasks"), "in the way").unwrap();

    let (found, to_do) = wrong(&desk, "keepers");
    std::fs::remove_file(desk.path("home/tasks")).unwrap();

    assert!(found.contains("tasks") && to_do.contains("folder"), "{found}; {to_do}");
}

/// S8, J8: what the doctor says is copied into questions to others.
#[test]
fn the_password_of_an_address_is_not_shown() {
    let config = "[model]\nname = \"some\"\nbase_url = \"http://me:hunter2@127.0.0.1:1/v1\"\n";
    let desk = Desk::with_model_of_config(config);

    let (found, _) = wrong(&desk, "model");

    assert!(found.contains("no server is running at http://me:…@127.0.0.1:1/v1"), "{found}");
}

/// S8
#[test]
fn a_scripted_model_is_checked_without_the_server_of_the_config() {
    let desk = Desk::new(&json!(["Hello."]));
    desk.configure("[model]\nbase_url = 'http://127.0.0.1:1/v1'\napi_key_env = 'HOME'\n");

    let (_, out, errors) = desk.run(&["doctor"]);

    let model =
        out.lines().find(|line| line.contains("scripted/")).unwrap_or_else(|| panic!("{out}{errors}"));
    assert!(!model.contains("127.0.0.1") && !model.contains("key"), "{model}");
}

/// S8
#[test]
fn a_kind_of_subagents_that_can_not_be_used_is_found_with_its_file() {
    let desk = Desk::new(&json!([]));
    std::fs::create_dir(desk.path("home/agents")).unwrap();
    std::fs::write(desk.path("home/agents/reader.md"), "Read everything.\n").unwrap();

    let (found, to_do) = wrong(&desk, "subagents");

    assert!(found.contains("home/agents/reader.md is not used: "), "{found}");
    assert_eq!(to_do, "fix or remove the file");
}
