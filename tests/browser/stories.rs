//! The stories, and what each needs from the server.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::console_server::ConsoleServer;
use crate::installed::peer;

/// A command, an edit and a task, each with a question.
fn adder() -> Value {
    json!([
        {"reasoning": "A list first.", "text": "I look.", "calls": [{"name": "exec", "arguments": {"command": "seq 1 3"}}]},
        {"text": "Now the file.", "calls": [{"name": "write_file", "arguments": {"path": "add.py", "content": "def add(a, b):\n    return a + b\n"}}]},
        {"text": "And a task.", "calls": [{"name": "exec", "arguments": {"command": "sleep 300", "run_in_background": true, "description": "count slowly"}}]},
        "# Done\n\nIt adds:\n\n```python\nadd(1, 2)\n```\n",
        "Good.",
    ])
}

fn words(count: usize) -> String {
    (0..count).map(|number| format!("word{number} ")).collect()
}

/// H8.
#[test]
#[ignore = "needs scripts/peers"]
fn a_turn_is_followed_and_approved_from_the_desk() {
    let mut server = ConsoleServer::start(&adder());
    server.make_session("story");
    server.play("story.mjs", &["desk"], |_, _| {});
}

/// H8.
#[test]
#[ignore = "needs scripts/peers"]
fn a_turn_is_followed_and_approved_from_a_phone() {
    let mut server = ConsoleServer::start(&adder());
    server.make_session("story");
    server.play("story.mjs", &["phone"], |_, _| {});
}

/// H8: the page's only state is the last record that it has shown.
#[test]
#[ignore = "needs scripts/peers"]
fn a_killed_server_leaves_no_gap_and_no_double_on_the_page() {
    let mut server = ConsoleServer::start(&json!([{"text": words(60), "piece_ms": 60}]));
    server.make_session("restart");
    server.play("restart.mjs", &[], |server, asked| match asked {
        "kill" => server.kill(),
        "start" => server.start_again(),
        other => panic!("{other}"),
    });
}

/// H8.
#[test]
#[ignore = "needs scripts/peers"]
fn no_page_has_a_violation_and_a_keyboard_is_enough() {
    let mut server = ConsoleServer::start(&adder());
    server.make_session("story");
    server.make_session("keyboard");
    server.say("story", "Write an adder.");
    server.play("accessible.mjs", &[], |_, _| {});
}

/// H8: text of models and tools never becomes markup or script.
#[test]
#[ignore = "needs scripts/peers"]
fn no_payload_runs_or_changes_the_page() {
    let payloads: Vec<String> =
        PAYLOADS.iter().map(|payload| format!("- {payload}\n\n```\n{payload}\n```\n\n{payload}\n")).collect();
    let text = format!("{}\n\nthe last payload", payloads.join("\n"));
    let names: Vec<Value> =
        PAYLOADS.iter().map(|payload| json!({"name": "read_file", "arguments": {"path": payload}})).collect();
    let mut server = ConsoleServer::start(&json!([
        {"text": "I read.", "reasoning": payloads.join("\n"), "calls": names},
        text,
    ]));
    server.make_session("payloads");
    for (index, payload) in PAYLOADS.iter().take(5).enumerate() {
        let key = format!("{index} {payload}");
        let _ = server.post("/api/sessions", &json!({"key": key}));
    }
    server.say("payloads", &payloads.join("\n"));
    server.wait_for_turns("payloads", 1);
    server.play("payloads.mjs", &[], |_, _| {});
}

const PAYLOADS: [&str; 30] = [
    "<script>attacks++</script>",
    "<img src=x onerror=attacks++>",
    "<svg onload=attacks++>",
    "<svg><script>attacks++</script></svg>",
    "<iframe srcdoc='<script>parent.attacks++</script>'></iframe>",
    "<a href='javascript:attacks++'>open</a>",
    "[open](javascript:attacks++)",
    "[open](java\tscript:attacks++)",
    "[open](data:text/html,<script>attacks++</script>)",
    "[open](vbscript:attacks++)",
    "![x](x\" onerror=\"attacks++)",
    "![x](https://example.org/pixel.png)",
    "<https://example.org/\" onmouseover=\"attacks++>",
    "</div></article></main><script>attacks++</script>",
    "</pre><script>attacks++</script><pre>",
    "</code></pre><img src=x onerror=attacks++>",
    "```\"><img src=x onerror=attacks++>",
    "\"><script>attacks++</script>",
    "'><script>attacks++</script>",
    "<style>*{display:none}</style>",
    "<link rel=stylesheet href=//example.org/x.css>",
    "<meta http-equiv=refresh content=0;url=//example.org>",
    "<base href=//example.org/>",
    "<form action=//example.org><button>go</button></form>",
    "<details open ontoggle=attacks++>",
    "<input autofocus onfocus=attacks++>",
    "<template><script>attacks++</script></template>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=attacks++>",
    "&lt;script&gt;attacks++&lt;/script&gt;",
    "\u{202e}<script>attacks++</script>\u{2066}",
];

/// H8: the cost of a page does not grow with the session's age.
#[test]
#[ignore = "needs scripts/peers"]
fn a_long_session_opens_like_a_short_one_and_stays_smooth() {
    let turns = std::env::var("LONGHAUL_CONSOLE_TURNS").ok().and_then(|turns| turns.parse().ok());
    let turns: u64 = turns.unwrap_or(300);
    let mut answers: Vec<Value> = (0..turns).map(|turn| json!(format!("Answer **{turn}**."))).collect();
    answers.push(json!({"text": words(600), "piece_ms": 8}));
    let mut server = ConsoleServer::start(&json!(answers));
    for (key, turns) in [("brief", 1), ("aged", turns)] {
        server.make_session(key);
        for turn in 1..=turns {
            server.say(key, "Next.");
            server.wait_for_turns(key, turn);
        }
    }
    server.play("long.mjs", &[], |_, _| {});
}

/// H8: the modules agree with each other, and the whole page is small.
#[test]
#[ignore = "needs scripts/peers"]
fn the_files_pass_the_type_checker_and_are_small() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../console/files");
    let mut checker = Command::new(peer("browser/node_modules/.bin/node"));
    checker
        .arg(peer("browser/node_modules/.bin/tsc"))
        .args(["--checkJs", "--allowJs", "--noEmit", "--strict", "--target", "es2023", "--module", "esnext"])
        .args(["--moduleResolution", "bundler", "--lib", "es2023,dom,dom.iterable"])
        .arg(files.join("app.js"));
    let checked = checker.output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));

    let packed = Command::new("sh")
        .args(["-c", "for file in *; do gzip -9 -c \"$file\"; done | wc -c"])
        .current_dir(&files)
        .output()
        .unwrap();
    let bytes: usize = String::from_utf8(packed.stdout).unwrap().trim().parse().unwrap();
    assert!(bytes < 60_000, "{bytes} bytes");
}

/// H8.
#[test]
#[ignore = "needs scripts/peers"]
fn what_goes_wrong_shows_as_a_clear_state() {
    let mut server = ConsoleServer::start(&json!(["Said while hidden.", "שלום", "Good."]));
    server.make_page_token("page");
    for key in ["deleted", "hidden", "trashed"] {
        server.make_session(key);
    }
    server.play("troubles.mjs", &[], |server, asked| match asked {
        "delete" => {
            let deleted = server.command(&["sessions", "delete", "deleted", "--now"]).output().unwrap();
            assert!(deleted.status.success(), "{}", String::from_utf8_lossy(&deleted.stderr));
        }
        "trash" => {
            let answer = server.request("DELETE", "/api/sessions/trashed", "");
            assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
        }
        "send" => {
            server.say("hidden", "Say it.");
            server.wait_for_turns("hidden", 1);
        }
        "revoke" => {
            assert!(server.command(&["token", "revoke", "page"]).status().unwrap().success());
        }
        other => panic!("{other}"),
    });
}
