//! A real PostgreSQL server on a Unix socket, and PgBouncer in front of it.
//!
//! Most tests share one server: the first test starts it, each test has a database of its own, and a small process stops it and
//! removes its folder when no test has used it for a while. A test that stops or breaks its server starts one of its own.
//! PostgreSQL refuses to run as root, so root starts it as `nobody`.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// How long a server may take to start or stop on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The variable with the folder of the server's programs, for another version than the newest that the system has.
const PROGRAMS: &str = "LONGHAUL_POSTGRES_BIN";
/// Connections of a server unless a test says otherwise.
const MAX_CONNECTIONS: u32 = 200;
/// The user that root runs servers as.
const NOBODY: u32 = 65_534;

/// A running server.
pub struct PostgresServer {
    folder: PathBuf,
    /// Shared while tests use the shared server.
    _users: Option<File>,
    /// Of a server that this test has alone: removed with it.
    own: Option<tempfile::TempDir>,
    /// `on` for measurements. A crash of the server alone loses nothing without it.
    fsync: &'static str,
    max_connections: u32,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Sessions are ended, and everything is written.
    Fast,
    /// As if the power was cut: the server recovers from its log at the next start.
    Immediate,
}

impl PostgresServer {
    /// The server that all tests of this user share.
    pub fn shared() -> Self {
        let user = rustix::process::getuid().as_raw();
        // A server of another version has a folder of its own.
        let version: String = std::env::var(PROGRAMS).unwrap_or_default();
        let version: String = version.chars().filter(char::is_ascii_digit).collect();
        let folder = std::env::temp_dir().join(format!("longhaul-pg-{user}{version}"));
        fs::create_dir_all(&folder).unwrap();
        let users = open_lock(&folder.join("users.lock"));
        flock(&users, FlockOperation::LockShared).unwrap();
        let starting = open_lock(&folder.join("start.lock"));
        flock(&starting, FlockOperation::LockExclusive).unwrap();
        let server = Self {
            folder: folder.join("server"),
            _users: Some(users),
            own: None,
            fsync: "off",
            max_connections: MAX_CONNECTIONS,
        };
        if !server.is_running() {
            let _ = fs::remove_dir_all(&server.folder);
            server.initialise("trust");
            server.start();
            stop_when_unused(&folder);
        }
        server
    }

    /// A server for this test alone.
    pub fn alone() -> Self {
        Self::alone_with("trust")
    }

    /// A server for this test alone that asks everyone for a password. That of `postgres` is `open sesame`.
    pub fn with_password() -> Self {
        Self::alone_with("scram-sha-256")
    }

    /// A server for measurements, which waits for the disk at each commit.
    pub fn durable() -> Self {
        let mut server = Self::alone();
        server.stop(StopMode::Fast);
        server.fsync = "on";
        server.start();
        server
    }

    /// A server for this test alone that takes so many connections, of which PostgreSQL keeps three for superusers.
    pub fn with_connections(max_connections: u32) -> Self {
        let mut server = Self::alone();
        server.stop(StopMode::Fast);
        server.max_connections = max_connections;
        server.start();
        server
    }

    /// Ends the recovery of a replica, which takes writes from then on.
    pub fn promote(&self) {
        run(self.program("pg_ctl").args(["promote", "-w", "-t", "60", "-D"]).arg(self.data()));
    }

    /// The process of the server.
    pub fn pid(&self) -> u32 {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        file.lines().next().unwrap().parse().unwrap()
    }

    fn alone_with(authentication: &str) -> Self {
        let own = tempfile::Builder::new().prefix("lh-pg-").tempdir().unwrap();
        fs::set_permissions(own.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let server = Self {
            folder: own.path().join("server"),
            _users: None,
            own: Some(own),
            fsync: "off",
            max_connections: MAX_CONNECTIONS,
        };
        server.initialise(authentication);
        server.start();
        server
    }

    /// A read-only replica of this server.
    pub fn replica(&self) -> Self {
        let own = tempfile::Builder::new().prefix("lh-pg-").tempdir().unwrap();
        fs::set_permissions(own.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let replica = Self {
            folder: own.path().join("server"),
            _users: None,
            own: Some(own),
            fsync: "off",
            max_connections: MAX_CONNECTIONS,
        };
        fs::create_dir_all(&replica.folder).unwrap();
        give_to_nobody(&replica.folder);
        run(self.program("pg_basebackup").args(["-R", "-c", "fast", "-D"]).arg(replica.data()));
        replica.start();
        replica
    }

    fn initialise(&self, authentication: &str) {
        fs::create_dir_all(&self.folder).unwrap();
        let password = self.folder.join("password");
        fs::write(&password, "open sesame\n").unwrap();
        give_to_nobody(&password);
        give_to_nobody(&self.folder);
        let mut initdb = self.program("initdb");
        initdb.args(["-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C", "-A", authentication]);
        run(initdb.arg("--pwfile").arg(&password).arg("-D").arg(self.data()));
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// A program of the newest server that is installed, or of the one that `LONGHAUL_POSTGRES_BIN` names, run as the user that
    /// the server runs as.
    fn program(&self, name: &str) -> Command {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin").join(name)).collect();
        found.retain(|program| program.exists());
        found.sort();
        let named = std::env::var_os(PROGRAMS).map(|folder| PathBuf::from(folder).join(name));
        let program =
            named.or_else(|| found.pop()).unwrap_or_else(|| panic!("no {name}: install postgresql"));
        let mut command = as_nobody(program);
        command.current_dir(&self.folder).env("PGHOST", &self.folder).env("PGUSER", "postgres");
        command.env("PGPASSWORD", "open sesame").stdin(Stdio::null());
        command
    }

    /// Starts the server, after [`Self::stop`] too.
    pub fn start(&self) {
        let options = format!(
            "-k {} -c listen_addresses= -c fsync={} -c max_connections={} -c shared_buffers=64MB -c max_wal_size=1GB",
            self.folder.display(),
            self.fsync,
            self.max_connections
        );
        let log = self.folder.join("log");
        let mut start = self.program("pg_ctl");
        start.args(["start", "-w", "-t", "60", "-D"]).arg(self.data());
        run(start.arg("-l").arg(log).arg("-o").arg(options));
    }

    /// Stops the server.
    pub fn stop(&self, mode: StopMode) {
        let mode = match mode {
            StopMode::Fast => "fast",
            StopMode::Immediate => "immediate",
        };
        run(self.program("pg_ctl").args(["stop", "-w", "-t", "60", "-m", mode, "-D"]).arg(self.data()));
    }

    fn is_running(&self) -> bool {
        self.data().exists() && is_ok(self.program("pg_ctl").arg("status").arg("-D").arg(self.data()))
    }

    /// The URL of a database of this server, without a password.
    pub fn url(&self, database: &str) -> String {
        url_of(&self.folder, 5432, database)
    }

    /// A new database with a name of its own.
    pub fn create_database(&self) -> String {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("t_{}_{number}", std::process::id());
        self.sql("postgres", &format!("DROP DATABASE IF EXISTS {name}"));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// What a statement prints, as text.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let output =
            self.program("psql").args(["-X", "-q", "-A", "-t", "-d", database, "-c", sql]).output().unwrap();
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The folder with the socket.
    pub fn socket_folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if self.own.is_some() {
            let _ = self.program("pg_ctl").args(["stop", "-m", "immediate", "-D"]).arg(self.data()).output();
        }
    }
}

fn url_of(folder: &Path, port: u16, database: &str) -> String {
    format!("postgres://postgres@/{database}?host={}&port={port}", folder.display())
}

/// Stops the shared server when nothing has used it for some seconds.
fn stop_when_unused(folder: &Path) {
    let script = "while sleep 10; do flock -n -x users.lock sh -c '\
                  kill -INT $(head -n 1 server/data/postmaster.pid); sleep 1; rm -rf server' && break; done";
    let mut watcher = Command::new("sh");
    watcher.args(["-c", script]).current_dir(folder).process_group(0);
    watcher.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // It outlives this test, on purpose.
    drop(watcher.spawn().unwrap());
}

/// PgBouncer in front of a server.
pub struct PgBouncer {
    folder: tempfile::TempDir,
    process: Child,
}

impl PgBouncer {
    /// Starts it with this `pool_mode`.
    pub fn start(server: &PostgresServer, pool_mode: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("lh-pb-").tempdir().unwrap();
        let settings = format!(
            "[databases]\n* = host={} user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\nunix_socket_dir = {}\n\
             auth_type = any\npool_mode = {pool_mode}\ndefault_pool_size = 10\nmax_client_conn = 200\n",
            server.folder.display(),
            folder.path().display()
        );
        let file = folder.path().join("pgbouncer.ini");
        fs::write(&file, settings).unwrap();
        give_to_nobody(&file);
        give_to_nobody(folder.path());
        let mut command = as_nobody("pgbouncer");
        command.arg("-q").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("install pgbouncer");
        let socket = folder.path().join(".s.PGSQL.6432");
        let since = Instant::now();
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(since.elapsed() < TEST_TIMEOUT, "pgbouncer does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { folder, process }
    }

    /// The URL of a database behind it.
    pub fn url(&self, database: &str) -> String {
        url_of(self.folder.path(), 6432, database)
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn as_nobody(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    if rustix::process::getuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn give_to_nobody(path: &Path) {
    if rustix::process::getuid().is_root() {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

fn open_lock(path: &Path) -> File {
    File::options().create(true).append(true).open(path).unwrap()
}

fn is_ok(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs a program to its end. What it prints goes to a file: the server that `pg_ctl` starts would hold a pipe open.
fn run(command: &mut Command) {
    let said = tempfile::NamedTempFile::new().unwrap();
    command.stdout(said.reopen().unwrap()).stderr(said.reopen().unwrap());
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {}", fs::read_to_string(said.path()).unwrap());
}
