//! The stories, and what each needs from the server.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::console_server::ConsoleServer;
use crate::installed::peer;

/// A command, an edit and a task, each with a question.
fn adder() -> Value {
    json!([
        {
            "reasoning": "A list first.", "text": "I look.", "usage": {"input": 2_000, "output": 20},
            "calls": [{"name": "exec", "arguments": {"command": "seq 1 3"}}],
        },
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
    let mut server = ConsoleServer::start(&json!([{"text": words(60), "piece_ms": 60}, "Got it."]));
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
    let memory = server.write_memory("habits", "# Habits\n\n- tabs, not spaces\n");
    server.play("accessible.mjs", &[&memory], |_, _| {});
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
    let print = format!("cat > /dev/null; printf '%s\\n' {}", quote(&payloads.join("\n")));
    let calls: Vec<Value> = names
        .into_iter()
        .chain([
            json!({"name": "exec", "arguments": {"command": print}}),
            json!({"name": "exec", "arguments": {
                "command": format!("{print}; sleep 300"), "run_in_background": true, "description": PAYLOADS[1],
            }}),
        ])
        .collect();
    let script = json!([
        {"text": "I read.", "reasoning": payloads.join("\n"), "calls": calls},
        text.clone(),
        {"text": format!("{text}\n\n{}", words(400)), "piece_ms": 8},
    ]);
    let mut server = ConsoleServer::start_in_mode(&script, "auto");
    server.make_session("payloads");
    // Where a key may not be like this, the payload harms nobody.
    let keys = PAYLOADS.iter().enumerate().filter(|(index, payload)| {
        let key = format!("{index} {payload}");
        server.post("/api/sessions", &json!({"key": key})).contains(" 201 ")
    });
    let keys = keys.filter(|(_, payload)| payload.contains("attacks++")).count();
    assert!(keys > 20, "{keys} keys");
    server.say("payloads", &payloads.join("\n"));
    server.wait_for_turns("payloads", 1);
    let memory = server.write_memory("payloads", &payloads.join("\n"));
    server.play("payloads.mjs", &[&memory, &keys.to_string()], |_, _| {});
}

/// A word of a shell that stands for this text.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
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

/// Turns of a session that has been used for months.
const MANY_TURNS: u64 = 5_000;

/// H8: the cost of a page does not grow with the session's age.
#[test]
#[ignore = "needs scripts/peers"]
fn a_long_session_opens_like_a_short_one_and_stays_smooth() {
    let sessions = [("brief", 10), ("aged", MANY_TURNS)];
    let mut answers: Vec<Value> = (0..=MANY_TURNS).map(|_| json!("Answer, **as always**.")).collect();
    for (_, turns) in sessions {
        answers[usize::try_from(turns).unwrap()] = json!({"text": words(600), "piece_ms": 8});
    }
    let mut server = ConsoleServer::start(&json!(answers));
    for (key, turns) in sessions {
        server.make_session(key);
        server.say(key, "Next.");
        server.wait_for_turns(key, 1);
        server.repeat_turn(key, turns);
    }
    server.play("long.mjs", &["brief", "aged"], |_, _| {});
}

/// H8: whatever a visitor does, nothing is shown twice, vanishes, or belongs to another session.
#[test]
#[ignore = "needs scripts/peers"]
fn a_visitor_hops_kills_cancels_and_answers_twice_and_sees_each_thing_once() {
    let count = |word: &str| json!({"text": words(120).replace("word", word), "piece_ms": 25});
    let write = json!({"name": "write_file", "arguments": {"path": "once.txt", "content": "once\n"}});
    let mut server =
        ConsoleServer::start(&json!([count("word"), count("term"), count("item"), "I stopped."]));
    for key in ["killed", "left", "right"] {
        server.make_session(key);
    }
    server.make_session_with("asked", &json!([{"text": "I write.", "calls": [write]}, "It is over."]));
    let keys = ["a b", "a/b", "100%", "x#y?z&w=1", "schlüssel 🗝", "q'\"<b>"];
    for key in keys {
        server.make_session(key);
    }
    server.play("visitor.mjs", &keys, |server, asked| match asked {
        "kill" => server.kill(),
        "start" => server.start_again(),
        other => panic!("{other}"),
    });
}

/// A schedule of the config.
const NIGHTLY: &str = r#"
[[schedule]]
name = "nightly"
cron = "0 3 * * *"
zone = "Europe/Berlin"
prompt = "Is the backup there?"
"#;

/// H8, W3.
#[test]
#[ignore = "needs scripts/peers"]
fn schedules_are_made_run_paused_changed_and_deleted_on_the_page() {
    let script = json!([{"text": "The builds are fine.", "piece_ms": 20}, "nothing to do", "Nothing to do."]);
    let mut server = ConsoleServer::start_with(&script, "auto", NIGHTLY);
    let reader = server.make_token("reader", "read");
    server.make_session_with("pulse", &json!(["Hello.", "nothing to do", "Nothing to do.", "Look there."]));
    let pulse = json!({"name": "pulse", "every": "8h", "session": "pulse", "prompt": "Is there news?", "heartbeat": true});
    assert!(server.post("/api/schedules", &pulse).contains(" 201 "));
    server.say("pulse", "Hello?");
    server.wait_for_turns("pulse", 1);
    server.play("schedules.mjs", &[&reader], |server, asked| {
        let turns = asked.strip_prefix("pulse ").unwrap_or_else(|| panic!("{asked}")).parse().unwrap();
        assert!(server.post("/api/schedules/pulse/run", &json!({})).contains(" 202 "));
        server.wait_for_turns("pulse", turns);
    });
}

/// H8, A3.
#[test]
#[ignore = "needs scripts/peers"]
fn a_tree_of_subagents_is_seen_opened_and_stopped_on_the_page() {
    let agent = |model: &str, prompt: &str| json!({"name": "agent", "arguments": {"prompt": prompt, "background": true, "model": model}});
    let mut server = ConsoleServer::start_in_mode(&json!(["Hello."]), "auto");
    let quick = server.write_script("quick", &json!(["Seven files."]));
    let slow = server.write_script("slow", &json!([{"text": words(600), "piece_ms": 500}]));
    let calls = [agent(&quick, "Count the files."), agent(&slow, "Read <b>all</b> of them.")];
    server.make_session_with(
        "parent",
        &json!([{"text": "I ask two.", "calls": calls}, "They work.", "Seven.", "Over."]),
    );
    server.say("parent", "How many files are there?");
    server.play("subagents.mjs", &[], |_, asked| panic!("{asked}"));
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

    let bytes: usize = longhaul_console::FILES.iter().map(packed_len).sum();
    println!("the page has {bytes} bytes");
    assert!(bytes < 60_000, "{bytes} bytes");
}

/// Bytes of a file as it is served, compressed.
fn packed_len(file: &longhaul_console::ConsoleFile) -> usize {
    let mut packer =
        Command::new("gzip").args(["-9", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    packer.stdin.take().unwrap().write_all(file.bytes()).unwrap();
    packer.wait_with_output().unwrap().stdout.len()
}

/// H8: what the browser asks for is asked once, and nobody answers a question that they have not seen.
#[test]
#[ignore = "needs scripts/peers"]
fn a_question_is_shown_once_and_the_message_box_answers_it() {
    let mut script = adder();
    script[1]["calls"][0]["arguments"]["content"] =
        json!("def add(a, b):\n    return a + b  # \u{202e}tuo nruter\n");
    let mut server = ConsoleServer::start(&script);
    for key in ["asked", "elsewhere"] {
        server.make_session(key);
    }
    server.play("questions.mjs", &[], |server, asked| match asked {
        "ask elsewhere" => server.say("elsewhere", "Write an adder."),
        other => panic!("{other}"),
    });
}

/// H8.
#[test]
#[ignore = "needs scripts/peers"]
fn sessions_are_forked_renamed_retried_deleted_and_restored() {
    let failure = json!({"error": "the server failed: boom"});
    let mut server = ConsoleServer::start(
        &json!([{"text": words(30), "piece_ms": 60}, "Second answer.", failure, "Never reached."]),
    );
    let reader = server.make_token("reader", "read");
    server.make_session("life");
    server.play("sessions.mjs", &[&reader], |server, asked| match asked {
        "rename life-fork renamed" => {
            let answer = server.request("PATCH", "/api/sessions/life-fork", r#"{"key": "renamed"}"#);
            assert!(answer.contains(" 200 "), "{answer}");
        }
        other => panic!("{other}"),
    });
}

/// H8.
#[test]
#[ignore = "needs scripts/peers"]
fn what_goes_wrong_shows_as_a_clear_state() {
    let items: String = (0..5_000).map(|number| format!("- item {number}\n")).collect();
    let print = json!({"name": "exec", "arguments": {"command": "seq 1 1300000"}});
    let todo = json!({"name": "todo", "arguments": {
        "items": [{"text": "sweep", "status": "done"}, {"text": "mop", "status": "in_progress"}],
    }});
    let script = json!([
        "Said while hidden.", "שלום", {"calls": [print]}, items, "Still quick.", "Back.", {"calls": [todo]}, "Good.",
    ]);
    let mut server = ConsoleServer::start_in_mode(&script, "auto");
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
        "restore" => {
            let answer = server.request("POST", "/api/sessions/trashed/restore", "");
            assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
        }
        "send" => {
            server.say("hidden", "Say it.");
            server.wait_for_turns("hidden", 1);
        }
        "say more" => {
            server.say("hidden", "Anything new?");
            server.wait_for_turns("hidden", 6);
        }
        "kill" => server.kill(),
        "start" => server.start_again(),
        "revoke" => {
            assert!(server.command(&["token", "revoke", "page"]).status().unwrap().success());
        }
        other => panic!("{other}"),
    });
}
