//! A home whose journal is a PostgreSQL database, with the real program and a real server.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use longhaul_testkit::PostgresServer;
use serde_json::{Value, json};

/// A folder with a home and a script, and a database.
struct Desk {
    folder: tempfile::TempDir,
    server: PostgresServer,
    database: String,
}

impl Desk {
    fn new(server: PostgresServer) -> Self {
        let desk = Self { folder: tempfile::tempdir().unwrap(), database: server.create_database(), server };
        std::fs::create_dir(desk.path("work")).unwrap();
        let script = json!([{"text": "The tide is high at noon."}, {"text": "And again at midnight."}]);
        std::fs::write(desk.path("script.json"), script.to_string()).unwrap();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn url(&self) -> String {
        self.server.url(&self.database)
    }

    fn configure(&self, config: &str) {
        std::fs::create_dir_all(self.path("home")).unwrap();
        std::fs::write(self.path("home/config.toml"), config).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env("LONGHAUL_HOME", self.path("home"))
            .env("LONGHAUL_MODEL", format!("scripted/{}", self.path("script.json").display()))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        told(&self.command(arguments).output().unwrap())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let (code, out, errors) = self.run(arguments);
        assert_eq!(code, 0, "{errors}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.server.sql("postgres", &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.database));
    }
}

fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// N1, as far as one node goes: every command works on the database, and the home has no journal of its own.
#[test]
fn a_home_on_a_database_is_used_like_any_other() {
    let desk = Desk::new(PostgresServer::shared());
    desk.configure(&format!("[journal]\nurl = \"{}\"\n", desk.url()));

    let (code, answer, errors) = desk.run(&["run", "-s", "tide", "When is the tide high?"]);
    assert_eq!((code, answer.trim()), (0, "The tide is high at noon."), "{errors}");
    let (code, again, errors) = desk.run(&["run", "-s", "tide", "And then?"]);
    let sessions = desk.json(&["sessions", "--json"]);
    let (verified, shown, _) = desk.run(&["verify"]);
    let (_, checked, _) = desk.run(&["doctor"]);

    assert_eq!((code, again.trim()), (0, "And again at midnight."), "{errors}");
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
    assert_eq!(verified, 0, "{shown}");
    assert!(shown.starts_with("postgres://postgres@") && shown.contains("Everything is intact."), "{shown}");
    assert!(checked.contains("with 1 session"), "{checked}");
    assert!(!desk.path("home/journal.db").exists());
}

/// N5.
#[test]
fn a_home_moves_to_a_database_and_back() {
    let desk = Desk::new(PostgresServer::shared());
    let (code, _, errors) = desk.run(&["run", "-s", "tide", "When is the tide high?"]);
    assert_eq!(code, 0, "{errors}");
    let (home, back) = (desk.path("home"), desk.path("back"));
    let (home, back) = (home.to_str().unwrap(), back.to_str().unwrap());
    let with_url =
        |arguments: &[&str]| told(&desk.command(arguments).env("TIDE_URL", desk.url()).output().unwrap());

    let (there, said, errors) = with_url(&["journal", "copy", home, "env:TIDE_URL"]);
    assert_eq!(there, 0, "{errors}");
    let (returned, _, errors) = with_url(&["journal", "copy", "env:TIDE_URL", back]);
    assert_eq!(returned, 0, "{errors}");
    let (twice, _, refused) = with_url(&["journal", "copy", "env:TIDE_URL", "env:TIDE_URL"]);
    desk.configure("[journal]\nurl_env = \"TIDE_URL\"\n");
    let (listed, sessions, errors) = with_url(&["sessions"]);
    let (restored, _, hint) = with_url(&["restore", "backup.db"]);

    assert!(said.contains("compared and verified"), "{said}");
    assert_eq!(twice, 0, "a copy onto itself has nothing to do: {refused}");
    assert_eq!(listed, 0, "{errors}");
    assert!(sessions.contains("tide"), "{sessions}");
    assert_eq!(restored, 2, "{hint}");
    assert!(hint.contains("longhaul journal copy"), "{hint}");
    let original = desk.command(&["--home", back, "sessions", "--json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&original.stdout).contains("tide"));
}

/// H5: a password is in no output, and not accepted where others can read it.
#[test]
fn a_password_is_never_shown() {
    let desk = Desk::new(PostgresServer::with_password());
    let with_password =
        |password: &str| desk.url().replacen("postgres@", &format!("postgres:{password}@"), 1);
    desk.configure(&format!("[journal]\nurl = \"{}\"\n", with_password("open%20sesame")));
    let (code, _, errors) = desk.run(&["run", "-s", "tide", "When is the tide high?"]);
    assert_eq!(code, 0, "{errors}");

    let mut outputs = vec![
        desk.run(&["config"]),
        desk.run(&["verify"]),
        desk.run(&["doctor"]),
        desk.run(&["config", "--json"]),
    ];
    let argument = desk.run(&["journal", "copy", &with_password("open%20sesame"), "nowhere"]);
    desk.configure(&format!("[journal]\nurl = \"{}\"\n", with_password("hunter2")));
    let wrong = desk.run(&["sessions"]);
    outputs.extend([argument.clone(), wrong.clone()]);

    for (_, out, errors) in &outputs {
        for secret in ["sesame", "hunter2"] {
            assert!(!out.contains(secret) && !errors.contains(secret), "{out}{errors}");
        }
    }
    assert_eq!(argument.0, 2, "{argument:?}");
    assert!(argument.2.contains("env:NAME"), "{argument:?}");
    assert_eq!(wrong.0, 1, "{wrong:?}");
    assert!(wrong.2.contains("the server refuses postgres"), "{wrong:?}");
}
