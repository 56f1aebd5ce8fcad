//! MCP servers through the program: the example of the page, lists and checks, logins, and what a killed runtime leaves.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

#[allow(dead_code, reason = "other tests use the rest of it")]
mod desk;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use desk::Desk;
use longhaul_agent::keeper::{Launcher, Tasks};
use longhaul_testkit::{McpHttpServer, write_mcp_server};
use serde_json::{Value, json};

/// How long a test waits before it gives up; nothing depends on it but how soon a failure is told.
const WAIT_LIMIT: Duration = Duration::from_secs(120);

const TEST_SERVER: &str = "[mcp.servers.test]\ncommand = \"python3\"\nargs = [\"server.py\"]\n";

fn desk(config: &str, answers: &Value) -> Desk {
    let desk = Desk::new(answers);
    desk.configure(config);
    write_mcp_server(&desk.path("work"));
    desk
}

/// Servers whose keepers live.
fn running_servers(desk: &Desk) -> usize {
    let launcher = Launcher::new(env!("CARGO_BIN_EXE_longhaul"), ["keeper-process"]);
    let tasks = Tasks::existing(&desk.path("home/mcp/servers"), launcher).unwrap();
    tasks.map_or(0, |tasks| tasks.all().unwrap().into_iter().filter(|id| tasks.is_kept(*id).unwrap()).count())
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + WAIT_LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: it never came to that");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// E1: the commands at the beginning of docs/mcp.md, with a server of our own in place of the one that `uvx` would fetch.
#[test]
fn the_example_of_the_page_works() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mcp.md");
    let page = fs::read_to_string(page).unwrap();
    let example = page.split("```console\n").nth(1).unwrap().split("```").next().unwrap();
    let lines: Vec<&str> = example.lines().map(|line| line.strip_prefix("$ longhaul ").unwrap()).collect();
    let desk = desk("", &json!([]));
    let programs = desk.path("work/bin");
    fs::create_dir(&programs).unwrap();
    fs::write(programs.join("uvx"), "#!/bin/sh\nexec python3 server.py\n").unwrap();
    fs::set_permissions(programs.join("uvx"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());

    let mut printed = Vec::new();
    for line in &lines {
        let words: Vec<&str> = line.split(' ').collect();
        let (code, out, errors) = desk::told(&desk.command(&words).env("PATH", &path).output().unwrap());
        assert_eq!(code, 0, "{line}: {out}{errors}");
        printed.push(out);
    }

    let checked = lines.iter().position(|line| line.starts_with("mcp check")).unwrap();
    let listed = lines.iter().position(|line| *line == "mcp list").unwrap();
    assert!(printed[checked].starts_with("time: ready, 10 tools"), "{printed:?}");
    assert_eq!(printed[listed], "time  uvx mcp-server-time\n");
    assert_eq!(desk.json(&["mcp", "list", "--json"]), json!([]));
}

/// E1: a check of one server starts no other, and its exit code tells how it went.
#[test]
fn a_check_by_name_starts_only_that_server() {
    let other = "[mcp.servers.other]\ncommand = \"touch\"\nargs = [\"started\"]\n[mcp.servers.off]\ncommand = \"x\"\nenabled = false\n";
    let desk = desk(&format!("{TEST_SERVER}{other}"), &json!([]));

    let one = desk.json(&["mcp", "check", "test", "--json"]);
    let was_other_started = desk.path("work/started").exists();
    let all = desk.run(&["mcp", "check"]);
    let disabled = desk.run(&["mcp", "check", "off"]);
    let unknown = desk.run(&["mcp", "check", "nobody"]);

    assert_eq!((&one[0]["name"], &one[0]["state"]), (&json!("test"), &json!("ready")));
    assert!(!was_other_started);
    assert!(all.0 == 1 && all.1.contains("other: failed") && all.1.contains("test: ready"), "{all:?}");
    assert!(disabled.0 == 2 && disabled.2.contains("off is not enabled"), "{disabled:?}");
    assert!(unknown.0 == 2 && unknown.2.contains("there are: other, test"), "{unknown:?}");
    wait_until("the servers end", || running_servers(&desk) == 0);
}

/// E1, P7: each server is listed with the file that it is from, and one that gives way to another with the reason.
#[test]
fn the_servers_of_a_projects_files_are_listed_beside_the_users() {
    let desk = desk("[mcp.servers.both]\ncommand = \"mine\"\n", &json!([]));
    let config = "[mcp.servers.both]\ncommand = \"a\"\n[mcp.servers.toml]\ncommand = \"b\"\n";
    fs::write(desk.path("work/longhaul.toml"), config).unwrap();
    let servers = json!({"mcpServers": {"toml": {"command": "c"}, "json": {"command": "d"}}});
    fs::write(desk.path("work/.mcp.json"), servers.to_string()).unwrap();
    assert_eq!(desk.run(&["trust", "--yes"]).0, 0);

    let listed = desk.json(&["mcp", "list", "--json"]);

    let shown = |row: &Value| {
        let source = row["source"].as_str().unwrap().rsplit('/').next().unwrap();
        let used = if row["used"] == true { "used" } else { row["unused_because"].as_str().unwrap() };
        format!("{} ({source}): {used}", row["target"].as_str().unwrap())
    };
    assert_eq!(
        listed.as_array().unwrap().iter().map(shown).collect::<Vec<_>>(),
        [
            "mine (config): used",
            "a (longhaul.toml): you have a server of this name",
            "b (longhaul.toml): used",
            "d (.mcp.json): used",
            "c (.mcp.json): longhaul.toml has a server of this name",
        ]
    );
}

/// E1: a runtime that is killed in the middle of a call leaves no server behind.
#[test]
fn no_server_is_left_after_the_runtime_is_killed() {
    let call = json!({"calls": [{"name": "test__hang", "arguments": {"text": ""}}]});
    let desk = desk(&format!("[approval]\nmode = \"auto\"\n{TEST_SERVER}"), &json!([call, "Done."]));
    let mut process =
        desk.command(&["run", "go"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let log = desk.path("work/calls.log");
    wait_until("the server has the call", || fs::read_to_string(&log).is_ok_and(|log| log.contains("hang")));
    assert_eq!(running_servers(&desk), 1);

    process.kill().unwrap();
    process.wait().unwrap();

    wait_until("the server ends", || running_servers(&desk) == 0);
}

/// E1: a server that needs a login says so in the list, and the commands give and take it back.
#[test]
fn a_login_is_given_and_taken_back_by_commands() {
    let folder = tempfile::tempdir().unwrap();
    let server = McpHttpServer::start(folder.path(), &["--login"]);
    let desk = desk(&format!("[mcp.servers.web]\nurl = \"{}\"\n", server.url()), &json!([]));
    let refused = desk.run(&["mcp", "check", "web"]);
    let listed = desk.run(&["mcp", "list"]).1;

    // The browser: it follows the address that is printed, and comes back.
    let mut login =
        desk.command(&["mcp", "login", "web"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(login.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let back = redirect(url.trim());
    redirect(&back);
    assert!(login.wait().unwrap().success());
    let checked = desk.run(&["mcp", "check", "web"]);
    let logged_in = desk.run(&["mcp", "list"]).1;
    let shown = desk.run(&["config", "show"]).1;

    assert!(refused.0 == 1 && refused.1.contains("run `longhaul mcp login web`"), "{refused:?}");
    assert!(listed.contains("# needs a login: `longhaul mcp login web`"), "{listed}");
    assert!(checked.0 == 0 && checked.1.contains("web: ready"), "{checked:?}");
    assert!(logged_in.contains("# logged in"), "{logged_in}");
    for token in server.given_tokens() {
        assert!(!shown.contains(&token) && !checked.1.contains(&token));
    }
    assert_eq!(desk.run(&["mcp", "logout", "web"]).0, 0);
    assert_eq!(desk.run(&["mcp", "check", "web"]).0, 1);
}

/// E1: on a machine without a browser, the address that the browser ends at is pasted.
#[test]
fn a_login_can_be_finished_by_pasting_the_address() {
    let folder = tempfile::tempdir().unwrap();
    let server = McpHttpServer::start(folder.path(), &["--login"]);
    let desk = desk(&format!("[mcp.servers.web]\nurl = \"{}\"\n", server.url()), &json!([]));
    let mut command = desk.command(&["mcp", "login", "web", "--paste"]);
    let mut login =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(login.stdout.take().unwrap()).read_line(&mut url).unwrap();

    let back = redirect(url.trim());
    writeln!(login.stdin.take().unwrap(), "{back}").unwrap();

    assert!(login.wait().unwrap().success());
    assert_eq!(desk.run(&["mcp", "check", "web"]).0, 0);
}

/// Where a page sends the browser on to; empty if it does not.
fn redirect(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let location = answer.lines().find_map(|line| line.strip_prefix("Location: "));
    location.unwrap_or_default().trim().to_owned()
}
