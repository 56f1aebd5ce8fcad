//! The pictures of the documentation: the real program, with a scripted model, in an emulated terminal.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use longhaul_agent::keeper::{Launcher, Tasks};
use longhaul_testkit::Terminal;
use serde_json::{Value, json};

const WIDE: (u16, u16) = (92, 48);
const NARROW: (u16, u16) = (42, 48);

/// A project whose place, and so whose session, has the same name in every run.
struct Stage(tempfile::TempDir);

impl Stage {
    fn new(story: &Value, config: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("longhaul-picture").rand_bytes(0).tempdir();
        let stage = Self(folder.expect("nobody else makes pictures"));
        let home = stage.path("home");
        std::fs::create_dir_all(stage.path("project/src")).unwrap();
        std::fs::create_dir(&home).unwrap();
        let window = "[model]\ncontext_window = 200000\n";
        std::fs::write(home.join("config.toml"), format!("{window}{config}")).unwrap();
        std::fs::write(stage.path("project/story.json"), story.to_string()).unwrap();
        std::fs::write(stage.path("project/src/parse.rs"), PARSER).unwrap();
        std::fs::write(stage.path("project/check.sh"), "echo '12 tests, all passed'\n").unwrap();
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn open(&self, size: (u16, u16), model: &str) -> Terminal {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command
            .args(["--model", model])
            .current_dir(self.path("project"))
            .env("LONGHAUL_HOME", self.path("home"))
            .env("TERM", "xterm-256color")
            .env("no_proxy", "127.0.0.1")
            .env_remove("NO_COLOR")
            .env_remove("LONGHAUL_MODEL");
        let mut terminal = Terminal::of_size(command, size);
        terminal.wait_to_see("session cli:");
        terminal.wait_for_row(">");
        terminal
    }

    fn tasks(&self) -> Tasks {
        let launcher = Launcher::new(env!("CARGO_BIN_EXE_longhaul"), ["keeper-process"]);
        Tasks::at(&self.path("home/tasks"), launcher).unwrap()
    }

    /// The short names of its tasks, which are others in each run.
    fn task_names(&self) -> Vec<String> {
        let ids = self.tasks().all().unwrap();
        ids.iter().map(|id| id.to_string()).map(|id| id[id.len() - 6..].to_lowercase()).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let tasks = self.tasks();
        for id in tasks.all().unwrap_or_default() {
            let _ = tasks.kill(id);
        }
    }
}

/// What can be seen now, as a file of the documentation.
fn keep(terminal: &Terminal, file: &str, title: &str, replaced: &[(&str, &str)]) {
    let turning = ["⠇", "⠋", "⠙", "⠸", "⢰", "⣠", "⣄", "⡆"].map(|sign| (sign, "⠋"));
    let replaced: Vec<_> = replaced.iter().copied().chain(turning).collect();
    let picture = terminal.screen().to_svg(title, &replaced);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
    std::fs::write(folder.join(file), picture).unwrap();
}

/// Waits until this can be read, nothing runs and everything is saved.
fn wait_for_end(terminal: &mut Terminal, text: &str) {
    terminal.wait_to_see(text);
    terminal.wait_for_row(">");
    let is_over = |row: &str| row.ends_with("· saved") || row.ends_with("/help");
    terminal.wait_until("everything is saved", |seen| seen.lines().last().is_some_and(is_over));
    terminal.watch_for(Duration::from_millis(300));
}

const PARSER: &str = "/// The number that a line begins with.
pub fn number(line: &str) -> Option<u64> {
    let word = line.split(' ').next().unwrap();
    Some(word.parse().unwrap())
}
";

const STORY: &str = "scripted/story.json";

fn story() -> Value {
    json!([
        {
            "reasoning": "A panic in the parser, then. I look at it first.",
            "text": "I look at the parser first.",
            // It thinks for two and a half seconds, which are shown as three however busy the machine is.
            "piece_ms": 220,
            "calls": [{"name": "read_file", "arguments": {"path": "src/parse.rs"}}],
            "usage": {"input": 11_840, "output": 120},
        },
        {
            "text": "Both `unwrap`s take for granted that there is a number. An `Option` is returned anyway:",
            "calls": [{"name": "edit_file", "arguments": {"path": "src/parse.rs", "edits": [{
                "old": "    let word = line.split(' ').next().unwrap();\n    Some(word.parse().unwrap())\n",
                "new": "    let word = line.split_whitespace().next()?;\n    word.parse().ok()\n",
            }]}}],
            "usage": {"input": 12_310, "output": 210},
        },
        {
            "calls": [{"name": "exec", "arguments": {"command": "sh check.sh"}}],
            "usage": {"input": 12_600, "output": 40},
        },
        {
            "text": "The crash is gone. A line **without a number** is now `None`, as the type always said:\n\n```rust\nassert_eq!(number(\"7 apples\"), Some(7));\nassert_eq!(number(\"apples\"), None); // was a panic\n```\n\n- an empty line is `None`, too\n- numbers beyond 64 bits are `None`: say if you want an error instead\n",
            "usage": {"input": 12_720, "output": 160},
        },
    ])
}

#[test]
#[ignore = "makes pictures; scripts/pictures runs it"]
fn pictures_of_a_turn() {
    for (size, file, title) in [
        (
            WIDE,
            "turn.svg",
            "A turn in the terminal: a thought, a file read, an edit as a diff, a command, and the answer with code",
        ),
        (NARROW, "narrow.svg", "The same turn in a terminal of 42 columns"),
    ] {
        let stage = Stage::new(&story(), "");
        let mut terminal = stage.open(size, STORY);

        terminal.keys("The program crashes on the line \"apples\". Can you find out why?\r");
        wait_for_end(&mut terminal, "beyond 64 bits");

        keep(&terminal, file, title, &[]);
    }
}

#[test]
#[ignore = "makes pictures; scripts/pictures runs it"]
fn pictures_of_a_task() {
    let command =
        "echo 'running 240 tests'; echo '187 of 240 passed'; while [ ! -e stop ]; do sleep 0.1; done";
    let story = json!([
        {
            "text": "All of them take a while, so they run in the background.",
            "calls": [{"name": "exec", "arguments": {"command": command, "description": "all tests", "run_in_background": true}}],
            "usage": {"input": 9_400, "output": 80},
        },
        {"text": "They run. I say how they went as soon as they have ended; until then we can go on.", "usage": {"input": 9_700, "output": 40}},
    ]);
    let stage = Stage::new(&story, "");
    let mut terminal = stage.open(WIDE, STORY);

    terminal.keys("Run all tests, and tell me when they are done.\r");
    wait_for_end(&mut terminal, "we can go on");
    terminal.wait_until("its last line", |seen| {
        seen.matches("187 of 240").count() > 1 || seen.contains("  187 of 240 passed")
    });
    terminal.keys("Meanwhile: what does @src/parse.rs do with an empty line?");
    terminal.wait_for_row("> Meanwhile: what does @src/parse.rs do with an empty line?");

    let names = stage.task_names();
    let title = "A task in the background, with the last line that it printed, while somebody types";
    let replaced: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "4k7wq2")).collect();
    keep(&terminal, "task.svg", title, &replaced);
}

#[test]
#[ignore = "makes pictures; scripts/pictures runs it"]
fn pictures_of_a_question() {
    let story = json!([{
        "text": "Both `unwrap`s take for granted that there is a number. An `Option` is returned anyway:",
        "calls": [{"name": "edit_file", "arguments": {"path": "src/parse.rs", "edits": [{
            "old": "    let word = line.split(' ').next().unwrap();\n    Some(word.parse().unwrap())\n",
            "new": "    let word = line.split_whitespace().next()?;\n    word.parse().ok()\n",
        }]}}],
        "usage": {"input": 14_200, "output": 60},
    }]);
    let stage = Stage::new(&story, "[approval]\nmode = \"ask\"\n");
    let mut terminal = stage.open(WIDE, STORY);

    terminal.keys("It crashes on a line without a number. Fix that.\r");
    terminal.wait_to_see("or type why not");
    terminal.watch_for(Duration::from_millis(300));

    keep(&terminal, "question.svg", "A question before an edit, with its diff", &[]);
}

/// A server that has enough of everybody for a while, and its port.
fn throttling_server() -> (String, String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut connection in listener.incoming().map_while(Result::ok) {
            let head = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 252\r\nconnection: close";
            let body = json!({"error": {"message": "all seats are taken"}}).to_string();
            let _ = connection.read(&mut [0; 65_536]);
            let _ = write!(connection, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        }
    });
    (format!("http://{address}/v1"), address.port().to_string())
}

#[test]
#[ignore = "makes pictures; scripts/pictures runs it"]
fn pictures_of_a_wait() {
    let (address, port) = throttling_server();
    let stage = Stage::new(&json!([]), &format!("base_url = \"{address}\"\n"));
    let mut terminal = stage.open(WIDE, "custom/large-model");

    terminal.keys("Which of the three ways would you take?\r");
    terminal.wait_to_see("retrying in 4 min 8 s");

    let title = "A provider is busy: the wait is counted down, and there are ways out of it";
    keep(&terminal, "wait.svg", title, &[(&port, "40000")]);
}
