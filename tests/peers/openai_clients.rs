//! The official OpenAI clients, unchanged, against `longhaul serve`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::desk::Desk;
use crate::installed::{peer, start_serve};
use crate::servers::TEST_TIMEOUT;

const TOKEN: &str = "a-token-of-these-tests-0123456789";

/// `longhaul serve` on a port that stays the same when it is started again.
struct Served {
    desk: Desk,
    port: u16,
    process: Child,
}

impl Served {
    fn start(script: &Value) -> Self {
        let desk =
            Desk::new("[[approval.rule]]\ntool = \"exec\"\ncommand = \"echo ask*\"\naction = \"ask\"\n");
        std::fs::write(desk.home().join("script.json"), script.to_string()).unwrap();
        let (process, port) = Self::process(&desk, 0);
        Self { desk, port, process }
    }

    fn process(desk: &Desk, port: u16) -> (Child, u16) {
        let script = desk.home().join("script.json");
        let mut longhaul = desk.command(&[]);
        longhaul.env("LONGHAUL_MODEL", format!("scripted/{}", script.display())).env("LONGHAUL_TOKEN", TOKEN);
        start_serve(&mut longhaul, port)
    }

    /// SIGKILL, and the next process on the same port.
    fn kill_and_restart(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        (self.process, _) = Self::process(&self.desk, self.port);
    }

    /// A client that gets the address and the token.
    fn client(&self, program: &Path, script: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .arg(script)
            .env("BASE_URL", format!("http://127.0.0.1:{}/v1", self.port))
            .env("TOKEN", TOKEN)
            .env("CLIENTS", peer("node-clients"))
            .env("NO_PROXY", "127.0.0.1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null());
        command
    }

    fn ran_lines(&self) -> usize {
        std::fs::read_to_string(self.desk.work().join("ran.txt")).map_or(0, |text| text.lines().count())
    }

    /// The keys of the sessions and the ends of their turns.
    fn turns(&self) -> Vec<Value> {
        let list = self.desk.command(&["sessions", "list", "--json"]).output().unwrap();
        let list: Value = serde_json::from_slice(&list.stdout).unwrap();
        let sessions = list.as_array().or(list["sessions"].as_array()).unwrap_or_else(|| panic!("{list}"));
        let keys = sessions.iter().map(|session| session["key"].as_str().unwrap().to_owned());
        let ends = keys.flat_map(|key| {
            let shown = self
                .desk
                .command(&["sessions", "show", &key, "--from", "1", "--limit", "1000", "--json"])
                .output()
                .unwrap();
            let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
            let records = shown["records_shown"].as_array().unwrap().clone();
            records.into_iter().filter(|record| record["kind"] == "turn_ended").collect::<Vec<_>>()
        });
        ends.collect()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn script_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers").join(name)
}

/// Two answers, a call that asks, and an answer that takes longer than any test.
fn conversation() -> Value {
    let usage = json!({"input": 7, "output": 3});
    json!([
        {"text": "One two three.", "usage": usage},
        {"text": "Four five six.", "usage": usage},
        {"text": "I run it.", "calls": [{"name": "exec", "arguments": {"command": "echo ask"}}]},
        "Done.",
        {"text": "A slow one.", "piece_ms": 600_000},
    ])
}

fn all_of_it_works(mut client: Command) {
    let output = client.output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("all of it works"), "{out}{errors}");
}

/// H4.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_official_python_client_works_unchanged() {
    let served = Served::start(&conversation());

    all_of_it_works(served.client(&peer("python-clients/bin/python"), &script_file("openai_client.py")));
}

/// H4.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_official_javascript_client_and_a_framework_work_unchanged() {
    let served = Served::start(&conversation());

    all_of_it_works(
        served.client(&peer("node-clients/node_modules/.bin/node"), &script_file("openai_client.mjs")),
    );
}

/// H4: the Python examples of `docs/openai.md`, as they stand there, one after the other in one program. Only the port is
/// another one.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_python_examples_of_the_page_work() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openai.md");
    let page = std::fs::read_to_string(page).unwrap();
    let examples: Vec<&str> =
        page.split("```python\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 3, "{examples:?}");
    let served = Served::start(&conversation());
    let program = served.desk.home().join("examples.py");
    std::fs::write(&program, examples.join("\n").replace("7171", &served.port.to_string())).unwrap();

    let output = served.client(&peer("python-clients/bin/python"), &program).output().unwrap();

    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{errors}");
    let told: Vec<&str> = out.lines().collect();
    assert_eq!(told[..2], ["One two three.", "Four five six."], "{out}");
    assert!(told[2].starts_with("One two three.") && out.contains("echo ask"), "{out}");
    assert_eq!(told.last(), Some(&"Done."), "{out}");
}

/// H1, H2, T13: the client retries by itself after the server was killed in the middle of its answer, and gets the answer of
/// the one turn.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_retry_of_a_client_after_a_kill_runs_nothing_twice() {
    let call = json!({"name": "exec", "arguments": {"command": "echo ran >> ran.txt"}});
    let mut served = Served::start(&json!([
        {"text": "I run it.", "calls": [call]},
        {"text": "It ran, and this takes its time to say.", "piece_ms": 200},
        "A second turn, which must not be.",
    ]));
    let program = served.desk.home().join("client.py");
    let client = r#"
import os
from openai import OpenAI
client = OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["TOKEN"], max_retries=8)
answer = client.chat.completions.create(model="longhaul", messages=[{"role": "user", "content": "run it"}])
assert answer.choices[0].message.content.endswith("It ran, and this takes its time to say."), answer
print("all of it works")
"#;
    std::fs::write(&program, client).unwrap();
    let client = served.client(&peer("python-clients/bin/python"), &program);
    let running = std::thread::spawn(move || all_of_it_works(client));

    let deadline = Instant::now() + TEST_TIMEOUT;
    while served.ran_lines() == 0 {
        assert!(Instant::now() < deadline && !running.is_finished(), "the tool did not run");
        std::thread::sleep(Duration::from_millis(20));
    }
    served.kill_and_restart();
    running.join().unwrap();

    assert_eq!(served.ran_lines(), 1);
    let ends = served.turns();
    assert_eq!(ends.len(), 1, "{ends:?}");
}
