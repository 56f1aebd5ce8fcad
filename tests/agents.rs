//! Subagents through the program: the example of the page, the tree, stopping, deleting, exporting, trust.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

#[allow(dead_code, reason = "other tests use the rest of it")]
mod desk;

use std::fs;
use std::path::Path;

use desk::Desk;
use longhaul_testkit::Terminal;
use serde_json::{Value, json};

/// A desk whose agent calls `agent` with these arguments and this script for its subagent.
fn agent_desk(mut arguments: Value, child: &Value) -> Desk {
    let desk = Desk::new(&json!([]));
    let file = desk.path("child.json");
    fs::write(&file, child.to_string()).unwrap();
    arguments["model"] = json!(format!("scripted/{}", file.display()));
    let script = json!([{"calls": [{"name": "agent", "arguments": arguments}]}, "Done.", "Heard."]);
    fs::write(desk.path("script.json"), script.to_string()).unwrap();
    desk
}

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md")).unwrap()
}

/// A1, A3: the example of docs/agents.md makes a kind; the agent starts a subagent of it, and the tree shows it.
#[test]
fn the_example_of_the_page_works() {
    let page = page();
    let example = page.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let desk = agent_desk(json!({"prompt": "Read notes.txt.", "kind": "reader"}), &json!(["It says hello."]));
    let binary = Path::new(env!("CARGO_BIN_EXE_longhaul")).parent().unwrap().display().to_string();
    fs::create_dir(desk.path("user")).unwrap();
    let home = desk.path("user/.longhaul");
    let path = format!("{binary}:{}", std::env::var("PATH").unwrap());
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-euc", example])
        .current_dir(desk.path("work"))
        .env("HOME", desk.path("user"))
        .env("PATH", path);
    shell.env("LONGHAUL_HOME", &home);
    shell.env("LONGHAUL_MODEL", format!("scripted/{}", desk.path("script.json").display()));

    let output = shell.output().unwrap();

    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        out.contains("Done.") && out.contains("completed") && out.contains("reader: Read notes.txt."),
        "{out}"
    );
}

/// A3: people see the tree, each conversation and what each said last; another session is no subagent.
#[test]
fn the_tree_and_each_of_its_conversations_can_be_seen() {
    let desk = agent_desk(json!({"prompt": "Count."}), &json!(["Three."]));
    let (code, _, errors) = desk.run(&["run", "-s", "a", "go"]);
    assert_eq!(code, 0, "{errors}");

    let listed = desk.json(&["agents", "--json"]);
    let of_session = desk.json(&["agents", "-s", "a", "--json"]);

    let one = &listed[0];
    assert_eq!(listed, of_session);
    let fields = ["parent", "name", "description", "depth", "status"].map(|field| one[field].clone());
    assert_eq!(fields, [json!("a"), json!("agent"), json!("Count."), json!(1), json!("completed")]);
    let key = one["session"].as_str().unwrap();
    assert!(key.starts_with("agent:"), "{key}");
    assert_eq!(desk.json(&["agents", "show", key, "--json"])["said"], "Three.");
    assert_eq!(desk.json(&["agents", "show", one["task_id"].as_str().unwrap(), "--json"])["session"], key);
    assert_eq!(
        desk.records(key, "session_created")[0]["parent"]["session"],
        desk.json(&["sessions", "show", "a", "--json"])["id"]
    );
    let (code, _, errors) = desk.run(&["agents", "show", "a"]);
    assert!(code == 2 && errors.contains("a is no subagent"), "{code}: {errors}");
}

/// A2, K15: a subagent in the background waits for the next process; stopped meanwhile, it ends without another step.
#[test]
fn a_subagent_that_is_stopped_while_no_process_runs_ends_before_it_does_anything() {
    let exec = |command: &str| json!({"calls": [{"name": "exec", "arguments": {"command": command}}]});
    let child =
        json!([exec("touch begun; while [ ! -e go ]; do sleep 0.02; done"), exec("touch later"), "never"]);
    let desk = agent_desk(json!({"prompt": "Wait.", "background": true}), &child);
    let (code, _, errors) = desk.run(&["run", "-s", "a", "go"]);
    assert_eq!(code, 0, "{errors}");
    let key = desk.json(&["agents", "--json"])[0]["session"].as_str().unwrap().to_owned();

    let (code, out, errors) = desk.run(&["agents", "kill", &key]);
    fs::write(desk.path("work/go"), "").unwrap();
    let (resumed, ..) = desk.run(&["run", "-s", "a", "--wait", "again"]);

    assert_eq!(code, 0, "{errors}");
    assert!(out.contains(&key), "{out}");
    assert_eq!(resumed, 0);
    assert_eq!(desk.json(&["agents", "--json"])[0]["status"], "killed");
    assert!(!desk.path("work/later").exists());
}

/// A3, S3: deleting a session takes its subagents along, and says how many; an export with `--tree` has them.
#[test]
fn subagents_are_exported_and_deleted_with_their_parent() {
    let desk = agent_desk(json!({"prompt": "Count."}), &json!(["Three."]));
    desk.run(&["run", "-s", "a", "go"]);

    let exported = desk.json(&["sessions", "export", "a", "out.jsonl", "--tree", "--json"]);
    let (code, out, errors) = desk.run(&["sessions", "delete", "a", "--now"]);

    assert_eq!(exported.as_array().unwrap().len(), 2);
    let files = fs::read_dir(desk.path("work"))
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    assert_eq!(files.filter(|name| name.starts_with("out.")).count(), 2);
    assert_eq!(code, 0, "{errors}");
    assert!(out.contains("Deleted a with 1 subagent"), "{out}");
    assert_eq!(desk.json(&["sessions", "list", "--json"]), json!([]));
    assert_eq!(desk.json(&["agents", "--json"]), json!([]));
}

/// S3: at a terminal, deleting a session says how many subagents go with it, and asks first, for the trash and for good.
#[test]
fn deleting_at_a_terminal_asks_and_says_how_many_subagents_go_along() {
    let desk = agent_desk(json!({"prompt": "Count."}), &json!(["Three."]));
    desk.run(&["run", "-s", "a", "go"]);
    let delete = |options: &[&str], answer: &str| {
        let arguments = [&["sessions", "delete", "a"], options].concat();
        let mut terminal = Terminal::start(desk.command(&arguments));
        terminal.wait_for("a has 1 subagent. Delete them with it? [y/N]");
        terminal.keys(&format!("{answer}\r"));
        terminal.rest()
    };
    let sessions = || desk.json(&["sessions", "list", "--json"]).as_array().unwrap().len();

    delete(&[], "n");
    delete(&["--now"], "");
    let left = sessions();
    let deleted = delete(&["--now"], "y");

    assert_eq!(left, 2);
    assert!(deleted.contains("Deleted a with 1 subagent"), "{deleted}");
    assert_eq!((sessions(), desk.json(&["agents", "--json"])), (0, json!([])));
}

/// S3: in the chat, too, deleting a session says how many subagents go with it, and asks first.
#[test]
fn deleting_in_the_chat_asks_and_says_how_many_subagents_go_along() {
    let desk = agent_desk(json!({"prompt": "Count."}), &json!(["Three."]));
    desk.run(&["run", "-s", "a", "go"]);
    let sessions = || desk.json(&["sessions", "list", "--json"]).as_array().unwrap().len();

    let mut terminal = Terminal::start(desk.command(&["-s", "a"]));
    terminal.wait_to_see("session a (1 turn so far)");
    terminal.keys("/session delete\r");
    terminal.wait_to_see("a has 1 subagent. Delete them with it?");
    terminal.keys("\r");
    terminal.wait_to_see("a stays");
    let left = sessions();
    terminal.keys("/session delete\r");
    terminal.wait_to_see("> no");
    terminal.keys("\u{1b}[B\r");
    terminal.wait_to_see("moved a with 1 subagent to the trash");
    terminal.keys("/exit\r");
    terminal.wait();

    assert_eq!((left, sessions()), (2, 0));
}

/// A2, P7: a project's kind is used only while it is what the user trusted.
#[test]
fn a_projects_kind_is_used_only_while_it_is_what_the_user_trusted() {
    let desk = agent_desk(json!({"prompt": "Look.", "kind": "reviewer"}), &json!(["Looked."]));
    let folder = desk.path("work/.claude/agents");
    fs::create_dir_all(&folder).unwrap();
    let kind = |text: &str| format!("---\nname: reviewer\ndescription: reviews\n---\n{text}\n");
    fs::write(folder.join("reviewer.md"), kind("You review.")).unwrap();
    let result = |session: &str| {
        desk.run(&["run", "-s", session, "go"]);
        desk.records(session, "tool_finished")[0]["content"].as_str().unwrap().to_owned()
    };

    let untrusted = result("a");
    let trusted = desk.json(&["trust", "--yes", "--json"]);
    let used = result("b");
    fs::write(folder.join("reviewer.md"), kind("You obey.")).unwrap();
    let changed = result("c");
    let removed = desk.json(&["trust", "--remove", "--json"]);

    assert!(untrusted.contains("is not trusted; `longhaul trust` shows it"), "{untrusted}");
    assert_eq!(trusted["agents"][0]["name"], "reviewer");
    assert!(used.contains("Looked."), "{used}");
    assert!(changed.contains("has changed since it was trusted"), "{changed}");
    assert_eq!(removed["paths"], json!([folder.canonicalize().unwrap().join("reviewer.md")]));
    assert_eq!(desk.json(&["trust", "--list", "--json"]), json!([]));
}

/// P7: the user sees what a kind tells a subagent before trusting it.
#[test]
fn trust_shows_a_new_kind_whole() {
    let desk = agent_desk(json!({"prompt": "Look."}), &json!(["Looked."]));
    let folder = desk.path("work/.agents/agents");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("reviewer.md"),
        "---\nname: reviewer\ndescription: reviews\n---\nObey \u{1b}[2J me.\n",
    )
    .unwrap();

    let (code, out, errors) = desk.run(&["trust", "--yes"]);

    assert_eq!(code, 0, "{errors}");
    assert!(
        out.contains("  description: reviews\n") && out.contains("  Obey ") && !out.contains('\u{1b}'),
        "{out}"
    );
}

/// A3: a subagent that asks with nobody there: `run` ends with the code for an open question, and the answer at the parent goes on.
#[test]
fn run_ends_with_code_7_if_a_subagent_asks_and_the_answer_at_its_parent_goes_on() {
    let exec = json!({"calls": [{"name": "exec", "arguments": {"command": "touch asked"}}]});
    let desk = agent_desk(json!({"prompt": "Touch it."}), &json!([exec, "Touched."]));
    desk.configure("[[approval.rule]]\ntool = \"exec\"\ncommand = \"touch*\"\naction = \"ask\"\n");

    let (code, _, errors) = desk.run(&["run", "-s", "a", "go"]);
    let (answered, _, refused) = desk.run(&["answer", "-s", "a", "yes"]);
    let (resumed, out, trouble) = desk.run(&["resume", "a"]);

    assert_eq!(code, 7, "{errors}");
    assert!(errors.contains("The subagent (Touch it.) asks: "), "{errors}");
    assert_eq!(answered, 0, "{refused}");
    assert!(resumed == 0 && out.contains("Done."), "{resumed}: {out}{trouble}");
    assert!(desk.path("work/asked").exists());
}
