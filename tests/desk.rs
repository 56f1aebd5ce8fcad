//! A home of its own for each test, and the program in it.

use std::future::Future;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use longhaul_agent::keeper::{Launcher, Tasks};
use longhaul_journal::{Home, Journal, SqliteJournal};
use serde_json::Value;

/// A folder with a home, a work folder, and a model: a script, or what the config names.
pub(crate) struct Desk {
    folder: tempfile::TempDir,
    model: Option<String>,
}

impl Desk {
    pub(crate) fn new(script: &Value) -> Self {
        let mut desk = Self::with_model_of_config("");
        let file = desk.path("script.json");
        std::fs::write(&file, script.to_string()).unwrap();
        desk.model = Some(format!("scripted/{}", file.display()));
        desk
    }

    pub(crate) fn with_model_of_config(config: &str) -> Self {
        let desk = Self { folder: tempfile::tempdir().unwrap(), model: None };
        std::fs::create_dir(desk.path("work")).unwrap();
        // Whoever has been rung once has made what every socket of the home asks for.
        desk.with_journal(|journal| async move { drop(journal.wake_signals().await.unwrap()) });
        desk.configure(config);
        desk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn configure(&self, config: &str) {
        std::fs::write(self.path("home/config.toml"), config).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env("LONGHAUL_HOME", self.path("home"))
            .env("TERM", "xterm")
            .env("no_proxy", "127.0.0.1")
            .env_remove("LONGHAUL_MODEL")
            .envs(self.model.iter().map(|model| ("LONGHAUL_MODEL", model)))
            .stdin(Stdio::null());
        command
    }

    /// The exit code, and what stands on both outputs.
    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        told(&self.command(arguments).output().unwrap())
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let (code, out, errors) = self.run(arguments);
        assert_eq!(code, 0, "{out}{errors}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// The records of a session of this kind.
    pub(crate) fn records(&self, key: &str, kind: &str) -> Vec<Value> {
        let shown = self.json(&["sessions", "show", key, "--from", "1", "--limit", "10000", "--json"]);
        let records = shown["records_shown"].as_array().unwrap().iter();
        records.filter(|record| record["kind"] == kind).map(|record| record["body"].clone()).collect()
    }

    /// A conversation whose lines come from a pipe: the exit code, and what stands on both outputs.
    pub(crate) fn talk(&self, arguments: &[&str], lines: &str) -> (i32, String, String) {
        let mut command = self.command(arguments);
        let piped = || Stdio::piped();
        let mut process = command.stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
        process.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        told(&process.wait_with_output().unwrap())
    }

    /// The key of the session of the work folder.
    pub(crate) fn key(&self) -> String {
        let (_, _, errors) = self.talk(&[], "");
        errors.split_whitespace().find(|word| word.starts_with("cli:")).unwrap().to_owned()
    }

    /// Does something with the journal.
    pub(crate) fn with_journal<T, F: Future<Output = T>>(
        &self,
        work: impl FnOnce(Arc<SqliteJournal>) -> F,
    ) -> T {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio.block_on(async {
            let home = Home::create(&self.path("home")).unwrap();
            let journal = Arc::new(SqliteJournal::open(&home).await.unwrap());
            let done = work(journal.clone()).await;
            journal.close().await;
            done
        })
    }

    pub(crate) fn tasks(&self) -> Tasks {
        let launcher = Launcher::new(env!("CARGO_BIN_EXE_longhaul"), ["keeper-process"]);
        Tasks::at(&self.path("home/tasks"), launcher).unwrap()
    }
}

/// Whatever a test has left running is ended with it.
impl Drop for Desk {
    fn drop(&mut self) {
        let tasks = self.tasks();
        for id in tasks.all().unwrap_or_default() {
            let _ = tasks.kill(id);
        }
    }
}

pub(crate) fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}
