//! N1–N4: several nodes on one database, as real processes. A node on another machine is a process with another host name: it can't see
//! whether the processes of the others are gone.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod addresses;
mod bound;
mod drain;
mod failover;
mod silence;

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use longhaul_testkit::{PgBouncer, PostgresServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// How long a test waits before it gives up.
const TEST_TIMEOUT: Duration = Duration::from_secs(90);

/// A database, and a folder with a home for each node and a script.
struct Site {
    folder: tempfile::TempDir,
    server: PostgresServer,
    database: String,
    pooler: Option<PgBouncer>,
}

impl Site {
    fn new(script: &Value) -> Self {
        let server = PostgresServer::shared();
        let site = Self {
            folder: tempfile::tempdir().unwrap(),
            database: server.create_database(),
            server,
            pooler: None,
        };
        std::fs::create_dir(site.path("work")).unwrap();
        std::fs::write(site.path("script.json"), script.to_string()).unwrap();
        site
    }

    /// The same behind a pooler that delivers no notifications.
    fn without_notifications(mut self) -> Self {
        self.pooler = Some(PgBouncer::start(&self.server, "transaction"));
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn url(&self) -> String {
        match &self.pooler {
            Some(pooler) => pooler.url(&self.database),
            None => self.server.url(&self.database),
        }
    }

    /// A command at a node, whose home is made at its first use.
    fn command(&self, node: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command.args(arguments);
        self.prepare(&mut command, node);
        command
    }

    fn prepare(&self, command: &mut Command, node: &str) {
        let home = self.path(node);
        if !home.exists() {
            std::fs::create_dir(&home).unwrap();
            let config = format!("[journal]\nurl = \"{}\"\n[node]\nid = \"{node}\"\n", self.url());
            std::fs::write(home.join("config.toml"), config).unwrap();
        }
        command
            .current_dir(self.path("work"))
            .env("LONGHAUL_HOME", home)
            .env("LONGHAUL_MODEL", format!("scripted/{}", self.path("script.json").display()))
            .stdin(Stdio::null());
    }

    fn run(&self, node: &str, arguments: &[&str]) -> (i32, String, String) {
        told(&self.command(node, arguments).output().unwrap())
    }

    fn ok(&self, node: &str, arguments: &[&str]) -> String {
        let (code, out, errors) = self.run(node, arguments);
        assert_eq!(code, 0, "{arguments:?}: {out}{errors}");
        out
    }

    fn json(&self, node: &str, arguments: &[&str]) -> Value {
        let out = self.ok(node, arguments);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// A session that any node may run, with an input.
    fn send_portable(&self, key: &str) {
        self.ok("visitor", &["send", "-s", key, "Go."]);
        self.ok("visitor", &["sessions", "portable", key]);
    }

    /// Starts a node on this machine.
    fn serve(&self, node: &str) -> Node {
        Node::start(self.command(node, &["serve", "--no-http"]), node)
    }

    /// Starts a node that others can't look into.
    fn serve_elsewhere(&self, node: &str) -> Node {
        let mut command = Command::new("unshare");
        let script = format!("hostname {node}.example && exec \"$@\"");
        command.args([
            "--uts",
            "sh",
            "-c",
            &script,
            "sh",
            env!("CARGO_BIN_EXE_longhaul"),
            "serve",
            "--no-http",
        ]);
        self.prepare(&mut command, node);
        Node::start(command, node)
    }

    /// The node that holds the session, if one does.
    fn holder(&self, key: &str) -> Option<String> {
        let sql = format!(
            "SELECT holder.node FROM longhaul.session JOIN longhaul.stream ON stream.name = 'session/' || session.id
             JOIN longhaul.holder ON holder.id = stream.holder WHERE session.key = '{key}'"
        );
        Some(self.sql(&sql)).filter(|node| !node.is_empty())
    }

    /// The kinds of the session's records, with the milliseconds at which they came.
    fn records(&self, key: &str) -> Vec<(String, i64)> {
        let sql = format!(
            "SELECT record.kind || ' ' || record.at FROM longhaul.session
             JOIN longhaul.stream ON stream.name = 'session/' || session.id
             JOIN longhaul.record ON record.stream = stream.id WHERE session.key = '{key}' ORDER BY record.seq"
        );
        let rows = self.sql(&sql);
        let record = |line: &str| {
            let (kind, at) = line.split_once(' ')?;
            Some((kind.to_owned(), at.parse().ok()?))
        };
        rows.lines().filter_map(record).collect()
    }

    fn count(&self, key: &str, kind: &str) -> usize {
        self.records(key).iter().filter(|(known, _)| known == kind).count()
    }

    fn wait_for_record(&self, key: &str, kind: &str) {
        eventually(kind, || self.count(key, kind) > 0);
    }

    /// Asserts that the session's records break no rule.
    fn check_records(&self, key: &str) {
        let file = self.path("export.jsonl");
        self.ok("visitor", &["sessions", "export", key, file.to_str().unwrap()]);
        let (code, _, errors) = self.run("visitor", &["verify"]);
        assert_eq!(code, 0, "{errors}");
    }

    fn sql(&self, sql: &str) -> String {
        self.server.sql(&self.database, sql)
    }

    /// The report on a node.
    fn node(&self, id: &str) -> Value {
        let nodes = self.json("visitor", &["nodes", "--json"]);
        nodes.as_array().unwrap().iter().find(|node| node["id"] == id).cloned().unwrap_or(json!(null))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.server.sql("postgres", &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.database));
    }
}

fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// A serving process. It is killed when it is dropped.
struct Node {
    process: Child,
    id: String,
}

impl Node {
    fn start(mut command: Command, id: &str) -> Self {
        let log = std::env::temp_dir().join(format!("longhaul-node-{}-{id}.log", std::process::id()));
        let log = std::fs::File::create(log).unwrap();
        let process = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Self { process, id: id.to_owned() }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    fn kill(&mut self) -> Instant {
        self.signal(Signal::KILL);
        let killed = Instant::now();
        self.process.wait().unwrap();
        killed
    }

    /// Ends it as a service manager does.
    fn end(mut self) {
        self.signal(Signal::TERM);
        self.process.wait().unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until something is so.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// Whether this test may give a process another host name.
fn can_pretend_machines() -> bool {
    Command::new("unshare").args(["--uts", "true"]).status().is_ok_and(|status| status.success())
}
