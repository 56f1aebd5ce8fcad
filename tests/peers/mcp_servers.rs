//! Servers of MCP that other people wrote, unchanged, in sessions of the real program.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::desk::Desk;
use crate::installed::peer;
use crate::servers::Server;

const ALLOW_ALL: &str = "[approval]\nmode = \"auto\"\n[mcp]\nstart_timeout_s = 120\n";

/// A section of the config.
fn section(name: &str, command: &Path, arguments: &[&str]) -> String {
    format!("[mcp.servers.{name}]\ncommand = {:?}\nargs = {arguments:?}\n", command.to_str().unwrap())
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

/// The words of a server in a result for the model, without the line that says whose they are.
fn words_of(content: &str) -> String {
    let marked =
        content.split_once("\n\n").filter(|(mark, _)| mark.starts_with("untrusted: everything below"));
    marked.map_or(content, |(_, words)| words).to_owned()
}

/// The results of these calls, in their order, of one turn of a session with these servers.
fn results(config: &str, prepare: impl FnOnce(&Path), calls: &[Value]) -> Vec<(bool, String)> {
    let desk = Desk::new(&format!("{ALLOW_ALL}{config}"));
    prepare(&desk.work());
    let script: Vec<Value> = calls.iter().cloned().chain([json!("Done.")]).collect();
    let file = desk.home().join("script.json");
    std::fs::write(&file, Value::from(script).to_string()).unwrap();
    let mut command = desk.command(&["run", "--json", "go"]);
    command.env("LONGHAUL_MODEL", format!("scripted/{}", file.display()));

    let ran = crate::desk::Ran::of(&command.output().unwrap());

    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    let finished = ran.events("tool_finished");
    let result =
        |event: &&Value| (event["is_error"] == true, words_of(event["content"].as_str().unwrap_or_default()));
    finished.iter().map(result).collect()
}

/// E1: a server of the reference implementation, in Node.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_reference_server_for_everything_works() {
    let program = peer("mcp-node-servers/node_modules/.bin/mcp-server-everything");
    let config = section(
        "everything",
        &peer("mcp-node-servers/node_modules/.bin/node"),
        &[program.to_str().unwrap(), "stdio"],
    );

    let results = results(
        &config,
        |_| (),
        &[
            call("everything__echo", &json!({"message": "hello"})),
            call("everything__get-sum", &json!({"a": 2, "b": 40})),
            call("everything__get-tiny-image", &json!({})),
        ],
    );

    assert!(results[0].1.contains("hello") && results[1].1.contains("42"), "{results:?}");
    assert!(results.iter().all(|(is_error, _)| !is_error), "{results:?}");
}

/// E1: the server for files reaches the work folder and nothing beside it: it says so itself, and the sandbox holds it to that.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_reference_server_for_files_works() {
    let program = peer("mcp-node-servers/node_modules/.bin/mcp-server-filesystem");
    let config =
        section("files", &peer("mcp-node-servers/node_modules/.bin/node"), &[program.to_str().unwrap(), "."]);
    let prepare = |work: &Path| std::fs::write(work.join("note.txt"), "what the note says").unwrap();

    let results = results(
        &config,
        prepare,
        &[
            call("files__read_text_file", &json!({"path": "note.txt"})),
            call("files__write_file", &json!({"path": "new.txt", "content": "written"})),
            call("files__read_text_file", &json!({"path": "new.txt"})),
            call("files__read_text_file", &json!({"path": "/etc/passwd"})),
        ],
    );

    assert!(results[0].1.contains("what the note says") && results[2].1.contains("written"), "{results:?}");
    assert!(results[3].0 && !results[3].1.contains("root:"), "{results:?}");
}

/// E1: two servers in Python, at once.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_reference_servers_for_git_and_time_work() {
    let git = section("git", &peer("mcp-python-servers/bin/mcp-server-git"), &["--repository", "."]);
    let time = section(
        "time",
        &peer("mcp-python-servers/bin/mcp-server-time"),
        &["--local-timezone", "Europe/Berlin"],
    );
    let prepare = |work: &Path| {
        std::fs::write(work.join("note.txt"), "one\n").unwrap();
        for arguments in [
            vec!["init", "-q"],
            vec!["add", "."],
            vec!["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "A first commit"],
        ] {
            assert!(Command::new("git").args(arguments).current_dir(work).status().unwrap().success());
        }
    };

    let results = results(
        &(git + &time),
        prepare,
        &[
            call("git__git_log", &json!({"repo_path": "."})),
            call(
                "time__convert_time",
                &json!({"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
            ),
        ],
    );

    assert!(results[0].1.contains("A first commit"), "{results:?}");
    assert!(results[1].1.contains("Asia/Tokyo") && !results[1].0, "{results:?}");
}

/// The calls of a server made with FastMCP, and what they must give.
fn check_framework(config: &str) {
    // A call that reports progress takes longer than one may take without any.
    let results = results(
        &format!("{config}timeout_s = 2\n"),
        |_| (),
        &[
            call("workshop__slow", &json!({"seconds": 0.2})),
            call("workshop__failing", &json!({"reason": "a reason"})),
            call("workshop__reporting", &json!({"steps": 6})),
            call("workshop__background", &json!({"text": "hello"})),
            call("workshop__slow", &json!({"seconds": 60})),
        ],
    );

    assert_eq!(results[0], (false, "slowly done".to_owned()));
    assert!(results[1].0 && results[1].1.contains("it broke: a reason"), "{results:?}");
    assert_eq!(results[2], (false, "6 steps done".to_owned()));
    assert_eq!(results[3], (false, "in the background: hello".to_owned()));
    assert!(results[4].0 && results[4].1.contains("did not answer within 2 s"), "{results:?}");
}

/// E1, E2: slow, failing, progress-reporting and task tools over standard input and output.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn a_server_of_a_framework_works_as_a_program() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/mcp_framework_server.py");
    // The sandbox does not show it our own source folder.
    let desk = tempfile::tempdir_in(peer("mcp-framework")).unwrap();
    let copy = desk.path().join("server.py");
    std::fs::copy(program, &copy).unwrap();

    check_framework(&section("workshop", &peer("mcp-framework/bin/python"), &[copy.to_str().unwrap()]));
}

/// E1, E2: the same over HTTP.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn a_server_of_a_framework_works_over_http() {
    let server = Server::mcp_framework();

    check_framework(&format!("[mcp.servers.workshop]\nurl = \"{}/mcp\"\n", server.url()));
}
