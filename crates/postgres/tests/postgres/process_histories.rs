//! N1, N4: the checker of histories with nodes that are processes of their own. They are killed, stopped and continued, and run with wrong
//! clocks; their connections are cut, held up and delayed, each by another time; the server ends them, crashes, or has no disk space.
//!
//! A node says on its standard output what it tries, and then what it was told. What a killed node was not told is put again by
//! its successor, under the same key, as a client does.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use longhaul_journal::{Home, Journal};
use longhaul_postgres::{DatabaseAddress, PostgresJournal, PostgresOptions};
use longhaul_testkit::{PostgresServer, SeededRandom, StopMode, faketime_library};
use rustix::process::{Pid, Signal, kill_process};

use crate::database::TestDatabase;
use crate::histories::{
    Attempt, HistoryLog, HistoryStreams, LEASE_EXPIRY, NODES, Told, check_history, play_node, play_seeds,
    put_input,
};

/// Faults in one history.
const FAULTS: u64 = 12;
const PART: &str = "process_histories::history_node";

/// Writes a history to the standard output, one line for each event. A line ends with a full stop, so that one that was cut short is
/// known.
struct PrintedLog;

impl HistoryLog for PrintedLog {
    fn begin(&self, stream: usize, name: &str, token: Option<u64>) {
        println!("try {stream} {name} {} .", token.unwrap_or(0));
    }

    fn end(&self, Attempt { stream, name, token, told }: Attempt) {
        let told = match told {
            Told::Committed(seq, hash) => format!("committed {seq} {hash}"),
            Told::Duplicate(seq) => format!("duplicate {seq}"),
            Told::Read(seq, hash) => format!("read {seq} {hash}"),
            Told::Refused => "refused".to_owned(),
            Told::Unknown => "unknown".to_owned(),
        };
        println!("told {stream} {name} {} {told} .", token.unwrap_or(0));
    }
}

/// What a node printed, as the attempts of a history. The last one is unknown if the node didn't live to say more.
fn parse_history(lines: &[String]) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    let mut open: Option<Attempt> = None;
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let (["try" | "told", stream, name, token, told @ ..], Some(&".")) = (&words[..], words.last())
        else {
            continue;
        };
        let token: u64 = token.parse().unwrap();
        let told = match told {
            ["committed", seq, hash, "."] => Told::Committed(seq.parse().unwrap(), hash.parse().unwrap()),
            ["duplicate", seq, "."] => Told::Duplicate(seq.parse().unwrap()),
            ["read", seq, hash, "."] => Told::Read(seq.parse().unwrap(), hash.parse().unwrap()),
            ["refused", "."] => Told::Refused,
            _ => Told::Unknown,
        };
        let stream = stream.parse().unwrap();
        let attempt = Attempt { stream, name: (*name).to_owned(), token: (token > 0).then_some(token), told };
        if words[0] == "try" {
            open = Some(attempt);
        } else {
            open = None;
            attempts.push(attempt);
        }
    }
    attempts.extend(open);
    attempts
}

/// A node in a process of its own.
struct NodeProcess {
    process: Child,
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl NodeProcess {
    fn start(history: &PlayedHistory<'_>, node: u64, unanswered: &[Attempt], clock_offset: i64) -> Self {
        let names = history.streams.all().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let inputs: Vec<String> =
            unanswered.iter().map(|attempt| format!("{} {}", attempt.stream, attempt.name)).collect();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([PART, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env("LONGHAUL_TEST_URL", history.database.url())
            .env("LONGHAUL_TEST_HOME", history.database.home.path())
            .env("LONGHAUL_TEST_STREAMS", names)
            .env("LONGHAUL_TEST_INPUTS", inputs.join(","))
            .env("LONGHAUL_TEST_NODE", node.to_string())
            .env("LONGHAUL_SEED", history.seed.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if clock_offset != 0
            && let Some(library) = faketime_library()
        {
            command.env("LD_PRELOAD", library).env("FAKETIME", format!("{clock_offset:+}s"));
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        let mut process = command.spawn().unwrap();
        let output = process.stdout.take().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&lines);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                heard.lock().unwrap().push(line);
            }
        });
        Self { process, lines, reader: Some(reader) }
    }

    fn signal(&self, signal: Signal) {
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&self.process), signal);
    }

    /// Waits for its end, and returns what it was told.
    fn finish(&mut self) -> (bool, Vec<Attempt>) {
        let status = self.process.wait().unwrap();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        (status.success(), parse_history(&self.lines.lock().unwrap()))
    }

    fn kill(&mut self) -> Vec<Attempt> {
        self.signal(Signal::KILL);
        self.finish().1
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A small disk under the tables, and a file that fills it.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Moves the database onto it. `None` where nothing can be mounted.
    fn under(database: &TestDatabase) -> Option<Self> {
        use std::os::unix::fs::{PermissionsExt, chown};
        let folder = tempfile::Builder::new().prefix("lh-disk-").tempdir().unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=96m", "none"]).arg(folder.path()).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            return None;
        }
        let disk = Self(folder);
        let tables = disk.0.path().join("tables");
        std::fs::create_dir(&tables).unwrap();
        std::fs::set_permissions(disk.0.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        chown(&tables, Some(65_534), Some(65_534)).unwrap();
        let sql = |sql: String| database.server.sql("postgres", &sql);
        sql(format!("CREATE TABLESPACE small LOCATION '{}'", tables.display()));
        sql(format!("ALTER DATABASE {} SET TABLESPACE small", database.name));
        Some(disk)
    }

    fn ballast(&self) -> PathBuf {
        self.0.path().join("ballast")
    }

    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.ballast()).unwrap();
        while file.write_all(&[0; 4_096]).is_ok() {}
    }

    fn free(&self) {
        let _ = std::fs::remove_file(self.ballast());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// One history while it is played.
struct PlayedHistory<'a> {
    database: &'a TestDatabase,
    disk: Option<&'a SmallDisk>,
    streams: HistoryStreams,
    seed: u64,
}

impl PlayedHistory<'_> {
    async fn play(&self) {
        let mut random = SeededRandom::from_seed(self.seed);
        let proxy = self.database.proxy.as_ref().unwrap();
        let offset =
            |random: &mut SeededRandom| [0, 3_600, -3_600][usize::try_from(random.below(3)).unwrap()];
        let mut nodes: Vec<NodeProcess> =
            (0..NODES).map(|node| NodeProcess::start(self, node, &[], offset(&mut random))).collect();
        let (mut history, mut started) = (Vec::new(), NODES);
        let does_crash = random.below(10) == 0;
        let pause = |milliseconds: u64| tokio::time::sleep(Duration::from_millis(milliseconds));
        self.wait_for_first_append(&nodes).await;
        for fault in 0..FAULTS {
            pause(random.below(25)).await;
            let place = usize::try_from(random.below(NODES)).unwrap();
            match random.below(8) {
                _ if does_crash && fault == FAULTS / 2 => tokio::task::block_in_place(|| {
                    self.database.server.stop(StopMode::Immediate);
                    self.database.server.start();
                }),
                0 => {
                    let told = tokio::task::block_in_place(|| nodes[place].kill());
                    let is_input = |attempt: &&Attempt| attempt.token.is_none();
                    let unanswered: Vec<Attempt> = told
                        .last()
                        .filter(is_input)
                        .filter(|attempt| matches!(attempt.told, Told::Unknown))
                        .cloned()
                        .into_iter()
                        .collect();
                    history.extend(told);
                    nodes[place] = NodeProcess::start(self, started, &unanswered, offset(&mut random));
                    started += 1;
                }
                1 => {
                    nodes[place].signal(Signal::STOP);
                    pause(random.below(3 * 60)).await;
                    nodes[place].signal(Signal::CONT);
                }
                2 => {
                    proxy.pause(true);
                    pause(random.below(100)).await;
                    proxy.pause(false);
                }
                3 => proxy.delay(random.below(2) * random.below(20)),
                4 => proxy.cut_all(),
                5 => drop(tokio::task::block_in_place(|| {
                    self.database.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'longhaul'")
                })),
                6 if self.disk.is_some() => {
                    let disk = self.disk.unwrap();
                    disk.fill();
                    pause(random.below(60)).await;
                    disk.free();
                }
                _ => proxy.lose_next_answer(),
            }
        }
        proxy.delay(0);
        for node in &mut nodes {
            let (is_well, told) = tokio::task::block_in_place(|| node.finish());
            assert!(is_well, "seed {}: a node failed: {:#?}", self.seed, node.lines.lock().unwrap());
            history.extend(told);
        }
        check_history(self.database, &self.streams, &history, self.seed).await;
    }

    /// Faults before the first append would only hit processes that are starting.
    async fn wait_for_first_append(&self, nodes: &[NodeProcess]) {
        let has_begun = |node: &NodeProcess| {
            node.lines.lock().unwrap().iter().any(|line| line.starts_with("told"))
                || node.reader.as_ref().is_none_or(JoinHandle::is_finished)
        };
        while !nodes.iter().any(has_begun) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_faults_of_processes_lose_nothing_and_repeat_nothing() {
    let database = TestDatabase::of(PostgresServer::alone()).with_proxy();
    let disk = SmallDisk::under(&database);
    if disk.is_none() {
        println!("skipped: a full disk, because this user can't mount a small one");
    }
    if faketime_library().is_none() {
        println!("skipped: wrong clocks, because libfaketime is not installed");
    }
    database.try_open().await.unwrap().close().await;

    play_seeds(async |seed| {
        let streams = HistoryStreams::generate();
        PlayedHistory { database: &database, disk: disk.as_ref(), streams, seed }.play().await;
    })
    .await;

    // The tables are in use until the server is gone.
    drop(database);
    drop(disk);
}

/// Opens the journal, however often the faults hit just that.
async fn open(url: &str) -> PostgresJournal {
    let folder = std::env::var_os("LONGHAUL_TEST_HOME").unwrap();
    let home = Home::create(Path::new(&folder)).unwrap();
    let options = PostgresOptions { lease_expiry: LEASE_EXPIRY, ..PostgresOptions::default() };
    loop {
        let address = DatabaseAddress::parse(url).unwrap();
        match PostgresJournal::open_with(&address, &home, options.clone()).await {
            Ok(journal) => return journal,
            Err(error) => println!("not open yet: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The part of a node, which the test above starts.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part of random_faults_of_processes_lose_nothing_and_repeat_nothing"]
async fn history_node() {
    let Ok(url) = std::env::var("LONGHAUL_TEST_URL") else { return };
    // The harness has begun a line of its own.
    println!();
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let names = std::env::var("LONGHAUL_TEST_STREAMS").unwrap();
    let mut sessions: Vec<_> = names.split(' ').map(|name| name.parse().unwrap()).collect();
    let inboxes = sessions.split_off(sessions.len() / 2);
    let journal: Arc<dyn Journal> = Arc::new(open(&url).await);
    for input in std::env::var("LONGHAUL_TEST_INPUTS").unwrap().split(',').filter(|input| !input.is_empty()) {
        let (place, name) = input.split_once(' ').unwrap();
        put_input(&*journal, &inboxes, &PrintedLog, place.parse().unwrap(), name.to_owned()).await;
    }
    let streams = HistoryStreams { sessions, inboxes };
    let node = number("LONGHAUL_TEST_NODE");
    play_node(journal, streams, Arc::new(PrintedLog), node, number("LONGHAUL_SEED")).await;
}
