//! H1, H2: a server that is killed, and a client that comes back. The server is a process of its own.
//!
//! | killed | is on disk | the client | never |
//! | --- | --- | --- | --- |
//! | before an append of the turn | everything before it | sends its input again under the same key, and reconnects with its last id | a second input, a record twice |
//! | after it, before anything was told | the record | the same; it gets that record first | a record missing |
//! | while the command runs | its start | the same; the next server waits for the keeper | the command twice |

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_agent::keeper::Launcher;
use longhaul_agent::model::ScriptedModel;
use longhaul_agent::{Config, RuntimeBuilder};
use longhaul_journal::{Home, SqliteJournal};
use longhaul_server::{Scope, Server, TokenStore};
use longhaul_testkit::{Crash, CrashMoment, FaultyJournal, TestHome};
use reqwest::Method;
use serde_json::{Value, json};

use crate::event_client::{EventStream, Message, seqs};
use crate::test_server::{ADMIN_TOKEN, test_options};

const SCRIPT: &str = r#"[
    {"text": "I run it.", "calls": [{"name": "exec", "arguments": {"command": "echo once >> log.txt"}}]},
    {"text": "All of it is done now.", "piece_ms": 5}
]"#;

/// The most appends of the turn of [`SCRIPT`], for a table that ends.
const MAX_APPENDS: usize = 60;
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A server in a process of its own.
struct ServerProcess {
    child: Child,
    address: String,
}

impl ServerProcess {
    /// Starts a server. It ends as if killed at `crash`: the number of an append, and whether that is lost.
    fn start(home: &TestHome, crash: Option<Crash>) -> Self {
        let address_file = home.home().with_file_name(format!("address-{}", fastrand_name()));
        let program = std::env::current_exe().unwrap();
        let child = Command::new(program)
            .args(["--exact", "--ignored", "--nocapture", "server_process"])
            .env("TEST_HOME", home.home())
            .env("TEST_WORK", home.work())
            .env("TEST_ADDRESS", &address_file)
            .env("TEST_CRASH", crash.map(describe).unwrap_or_default())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + TEST_TIMEOUT;
        let address = loop {
            if let Ok(address) = std::fs::read_to_string(&address_file) {
                break address;
            }
            assert!(Instant::now() < deadline, "the server does not start");
            std::thread::sleep(Duration::from_millis(5));
        };
        Self { child, address }
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // `kill` is SIGKILL.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn fastrand_name() -> String {
    longhaul_protocol::InputId::generate().to_string()
}

fn describe(crash: Crash) -> String {
    let when = if crash.when == CrashMoment::Before { "before" } else { "after" };
    format!("{} {when}", crash.append)
}

fn parse_crash(text: &str) -> Option<Crash> {
    let (append, when) = text.split_once(' ')?;
    let when = if when == "before" { CrashMoment::Before } else { CrashMoment::After };
    Some(Crash { append: append.parse().ok()?, when })
}

/// Serves until it is killed, or until the append at which it ends by itself.
pub(crate) fn serve_here() {
    let folder = |name: &str| PathBuf::from(std::env::var_os(name).unwrap());
    let crash = parse_crash(&std::env::var("TEST_CRASH").unwrap_or_default());
    let tokio = tokio::runtime::Runtime::new().unwrap();
    tokio.block_on(async {
        let launcher = Launcher::new(
            std::env::current_exe().unwrap(),
            ["--exact", "--ignored", "--nocapture", "keeper_process"],
        );
        let config = Config {
            launcher: Some(launcher),
            ..Config::at(folder("TEST_HOME")).with_work_dir(&folder("TEST_WORK"))
        };
        let journal = SqliteJournal::open(&Home::create(&folder("TEST_HOME")).unwrap()).await.unwrap();
        let journal = FaultyJournal::new(Arc::new(journal), crash);
        let model = Arc::new(ScriptedModel::from_json(SCRIPT).unwrap());
        let runtime = RuntimeBuilder::new(config).model(model).journal(journal.clone()).open().await.unwrap();
        runtime.start().await.unwrap();
        let mut tokens = TokenStore::default();
        tokens.insert("test", Scope::Admin, ADMIN_TOKEN);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server::start(listener, runtime, tokens, &test_options()).unwrap();
        publish(&folder("TEST_ADDRESS"), &server.address().to_string());
        journal.crashed().await;
        std::process::abort();
    });
}

/// Writes a file that is there whole or not at all.
fn publish(file: &Path, text: &str) {
    let draft = file.with_extension("draft");
    std::fs::write(&draft, text).unwrap();
    std::fs::rename(draft, file).unwrap();
}

/// A client that knows nothing but its last id, and starts the server again when it is gone.
pub(crate) struct Client {
    pub(crate) home: TestHome,
    server: ServerProcess,
    http: reqwest::Client,
    pub(crate) restarts: usize,
}

impl Client {
    pub(crate) fn new(home: TestHome, crash: Option<Crash>) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        let server = ServerProcess::start(&home, crash);
        Self { home, server, http, restarts: 0 }
    }

    fn restart(&mut self) {
        self.server = ServerProcess::start(&self.home, None);
        self.restarts += 1;
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("http://{}{path}", self.server.address));
        request.header("authorization", format!("Bearer {ADMIN_TOKEN}"))
    }

    /// Posts until the server answers.
    pub(crate) async fn post(&mut self, path: &str, key: &str, body: &Value) -> (u16, Value) {
        loop {
            let request = self.request(Method::POST, path).header("idempotency-key", key);
            let request = request.header("content-type", "application/json").body(body.to_string());
            let sending = tokio::time::timeout(Duration::from_secs(10), request.send());
            if let Ok(Ok(answer)) = sending.await {
                let status = answer.status().as_u16();
                if let Ok(body) = answer.bytes().await {
                    return (status, serde_json::from_slice(&body).unwrap());
                }
            }
            self.restart();
        }
    }

    /// Follows the session until the end of a turn, over as many connections as it takes. Returns the seqs of all events.
    async fn follow(&mut self) -> Vec<u64> {
        let mut seen = Vec::new();
        loop {
            let last = seen.last().copied().unwrap_or(0);
            let request = self.request(Method::GET, "/api/sessions/a/events?from=start");
            let request = request.header("last-event-id", u64::to_string(&last));
            let Some(mut stream) = EventStream::try_open(request).await else {
                self.restart();
                continue;
            };
            while let Some(message) = stream.next().await {
                let Message::Event { id, data } = message else { continue };
                seen.extend(id);
                if data["type"] == "turn_ended" {
                    return seen;
                }
            }
            if self.server.has_ended() {
                self.restart();
            }
        }
    }

    /// What a client that follows from the beginning gets, up to the end of the first turn.
    pub(crate) async fn whole(&mut self) -> Vec<Value> {
        let request = self.request(Method::GET, "/api/sessions/a/events?from=start");
        EventStream::of_request(request).await.events_until("turn_ended").await
    }
}

/// Runs the turn over HTTP with a server that ends at `crash`. Returns whether it did.
async fn run_row(crash: Option<Crash>) -> bool {
    let mut client = Client::new(TestHome::in_memory(), crash);
    let folder = json!({"key": "a", "work_dir": client.home.work()});
    let (made, _) = client.post("/api/sessions", "make", &folder).await;
    assert!(matches!(made, 201 | 409), "{crash:?}: {made}");

    let first = client.post("/api/sessions/a/inputs", "once", &json!({"text": "go"})).await;
    let seen = client.follow().await;
    let again = client.post("/api/sessions/a/inputs", "once", &json!({"text": "go"})).await;

    let whole = client.whole().await;
    assert_eq!(seen, seqs(&whole), "{crash:?}: every record once, in order");
    assert_eq!((first.0, &again), (202, &first), "{crash:?}");
    let taken = whole.iter().filter(|event| event["type"] == "input_taken").count();
    assert_eq!((taken, client.home.file("log.txt").as_str()), (1, "once\n"), "{crash:?}");
    assert_eq!(whole.last().unwrap()["text"], "All of it is done now.", "{crash:?}");
    client.restarts > 0
}

/// H1, H2: the kill table.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_over_http_survives_a_kill_at_every_append() {
    play_table(run_row).await;
}

/// Plays a row without a kill, then one with a kill before and one with a kill after each append. A row says whether the server died.
pub(crate) async fn play_table<F>(run_row: fn(Option<Crash>) -> F)
where
    F: Future<Output = bool> + Send + 'static,
{
    assert!(!run_row(None).await);
    let mut killed = 0;
    for append in 1..MAX_APPENDS {
        let rows = [CrashMoment::Before, CrashMoment::After]
            .map(|when| tokio::spawn(run_row(Some(Crash { append, when }))));
        let mut died = false;
        for row in rows {
            died |= row.await.unwrap();
        }
        if !died {
            break;
        }
        killed += 1;
    }
    assert!((8..MAX_APPENDS - 1).contains(&killed), "{killed} appends");
}

/// H1: the same key is one input over a real kill between two posts.
#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_is_repeated_after_a_kill_is_one_input() {
    let mut client = Client::new(TestHome::in_memory(), None);
    client.post("/api/sessions", "make", &json!({"key": "a"})).await;

    let first = client.post("/api/sessions/a/inputs", "k", &json!({"text": "go"})).await;
    client.restart();
    let second = client.post("/api/sessions/a/inputs", "k", &json!({"text": "go"})).await;

    assert_eq!((first.0, &second), (202, &first));
    let whole = client.whole().await;
    assert_eq!(whole.iter().filter(|event| event["type"] == "input_taken").count(), 1);
}
