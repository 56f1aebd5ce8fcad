//! `longhaul serve` with a scripted model, and the browser that visits it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::installed::{peer, start_serve};

const TOKEN: &str = "a-token-of-the-test-0123456789abcdef";
/// How long a story may take. Each step in it has a shorter limit of its own.
const MAX_STORY: Duration = Duration::from_secs(300);

/// A server with a home and a work folder.
pub(crate) struct ConsoleServer {
    folder: tempfile::TempDir,
    port: u16,
    process: Child,
    /// The token that the page signs in with.
    page_token: String,
}

impl ConsoleServer {
    /// Serves sessions whose model plays this script. Every edit and command asks.
    pub(crate) fn start(script: &Value) -> Self {
        Self::start_in_mode(script, "ask")
    }

    /// The same in another permission mode.
    pub(crate) fn start_in_mode(script: &Value, mode: &str) -> Self {
        Self::start_with(script, mode, "")
    }

    /// The same with more lines of config.
    pub(crate) fn start_with(script: &Value, mode: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "work"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("script.json"), script.to_string()).unwrap();
        let config = format!(
            "[model]\nname = \"scripted/{}\"\n[approval]\nmode = \"{mode}\"\n[memory]\nextract_at_tokens = 0\n{more}",
            folder.path().join("script.json").display()
        );
        std::fs::write(folder.path().join("home/config.toml"), config).unwrap();
        let (process, port) = start_serve(&mut command(folder.path(), &[]), 0);
        Self { folder, port, process, page_token: TOKEN.to_owned() }
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn start_again(&mut self) {
        (self.process, _) = start_serve(&mut self.command(&[]), self.port);
    }

    /// Gives a session that has had one turn many of the same, while the server is away.
    pub(crate) fn repeat_turn(&mut self, key: &str, turns: u64) {
        self.kill();
        let home = self.folder.path().join("home");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(longhaul_testkit::repeat_turn(&home, key, turns, None));
        self.start_again();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        command(self.folder.path(), arguments)
    }

    /// Has the page sign in with a token that can be revoked.
    pub(crate) fn make_page_token(&mut self, name: &str) {
        self.page_token = self.make_token(name, "admin");
    }

    pub(crate) fn make_token(&self, name: &str, scope: &str) -> String {
        let made = self.command(&["token", "new", "--scope", scope, "--name", name]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    }

    /// The name of the only memory, with a page of this text.
    pub(crate) fn write_memory(&self, page: &str, text: &str) -> String {
        let listed = self.request("GET", "/api/memory", "");
        let body = listed.split("\r\n\r\n").nth(1).unwrap_or_default();
        let memories: Value = serde_json::from_str(body).unwrap();
        let scope = memories["items"][0]["scope"].as_str().unwrap().to_owned();
        let body = serde_json::json!({"text": text, "reason": text.lines().next()}).to_string();
        let answer = self.request("PUT", &format!("/api/memory/{scope}/pages/{page}"), &body);
        assert!(answer.contains(" 200 "), "{answer}");
        scope
    }

    /// Makes a session that works in the work folder.
    pub(crate) fn make_session(&self, key: &str) {
        let body = serde_json::json!({"key": key, "work_dir": self.folder.path().join("work")});
        let answer = self.post("/api/sessions", &body);
        assert!(answer.contains(" 201 "), "{answer}");
    }

    /// The same for a session whose model plays a script of its own.
    pub(crate) fn make_session_with(&self, key: &str, script: &Value) {
        self.make_session(key);
        let body = serde_json::json!({"model": self.write_script(key, script)}).to_string();
        let answer = self.request("PATCH", &format!("/api/sessions/{key}"), &body);
        assert!(answer.contains(" 200 "), "{answer}");
    }

    /// The name of a model that plays this script.
    pub(crate) fn write_script(&self, name: &str, script: &Value) -> String {
        let path = self.folder.path().join(format!("{name}.json"));
        std::fs::write(&path, script.to_string()).unwrap();
        format!("scripted/{}", path.display())
    }

    /// Says something in a session. Returns once it is on disk.
    pub(crate) fn say(&self, key: &str, text: &str) {
        let answer = self.post(&format!("/api/sessions/{key}/inputs"), &serde_json::json!({"text": text}));
        assert!(answer.contains(" 202 "), "{answer}");
    }

    /// Waits until this many turns of a session have ended.
    pub(crate) fn wait_for_turns(&self, key: &str, turns: u64) {
        for _ in 0..3_000 {
            let answer = self.request("GET", &format!("/api/sessions/{key}"), "");
            let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
            let status: Value = serde_json::from_str(body).unwrap_or_default();
            if status["turns"].as_u64() >= Some(turns) && status["turn"].is_null() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("turn {turns} of {key} does not end");
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> String {
        self.request("POST", path, &body.to_string())
    }

    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Plays a story. `act` does what the story asks for.
    pub(crate) fn play(&mut self, story: &str, arguments: &[&str], mut act: impl FnMut(&mut Self, &str)) {
        let mut browser = Command::new("timeout");
        browser
            .arg(MAX_STORY.as_secs().to_string())
            .arg(peer("browser/node_modules/.bin/node"))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser").join(story))
            .args(arguments)
            .env("CONSOLE_URL", format!("http://127.0.0.1:{}", self.port))
            .env("CONSOLE_TOKEN", &self.page_token)
            .env("PLAYWRIGHT", peer("browser/node_modules/playwright-core/index.js"))
            .env("AXE", peer("browser/node_modules/axe-core/axe.min.js"))
            .env("CHROMIUM", "/usr/bin/chromium")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut browser = browser.spawn().unwrap();
        let mut answers = browser.stdin.take().unwrap();
        for line in BufReader::new(browser.stdout.take().unwrap()).lines().map_while(Result::ok) {
            if line.starts_with("figures:") {
                println!("{line}");
                continue;
            }
            act(self, &line);
            writeln!(answers, "done").unwrap();
        }
        assert!(browser.wait().unwrap().success(), "the story {story} failed; its reason is above");
    }
}

impl Drop for ConsoleServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command
        .args(arguments)
        .current_dir(folder.join("work"))
        .env("LONGHAUL_HOME", folder.join("home"))
        .env("LONGHAUL_TOKEN", TOKEN)
        .env_remove("LONGHAUL_MODEL")
        .stdin(Stdio::null());
    command
}
