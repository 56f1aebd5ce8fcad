//! The HTTP server of the real program: its port, its tokens, its end. What each request gets is tested in `crates/server`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::{Value, json};

use crate::{Desk, TEST_TIMEOUT, eventually, said};

/// A serving process and what it said at its start.
pub(crate) struct HttpServing {
    process: Child,
    pub(crate) address: String,
    notes: Vec<String>,
}

impl HttpServing {
    /// One that has said where it listens.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(process.stderr.take().unwrap());
        let mut notes = Vec::new();
        let address = loop {
            let mut line = String::new();
            assert!(errors.read_line(&mut line).unwrap() > 0, "it ended: {notes:?}");
            notes.push(line.trim_end().to_owned());
            let address = line.trim_end().strip_prefix("longhaul: listening on http://");
            if let Some(address) = address {
                break address.trim_end_matches('/').to_owned();
            }
        };
        // What it says of its tokens comes at once.
        let (send, rest) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            errors.lines().map_while(Result::ok).take_while(|line| send.send(line.clone()).is_ok()).count()
        });
        while let Ok(line) = rest.recv_timeout(Duration::from_millis(500)) {
            notes.push(line);
        }
        // Whoever prints to a pipe that nobody reads is ended by it.
        std::thread::spawn(move || rest.iter().count());
        Self { process, address, notes }
    }

    /// The status and the body of the answer to a GET.
    fn get(&self, path: &str, token: &str) -> (u16, String) {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        write!(stream, "{head}Authorization: Bearer {token}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// The memory that the process uses now.
    fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    pub(crate) fn end(&mut self, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
        self.process.wait().unwrap().code()
    }
}

/// A test that fails leaves nobody behind.
impl Drop for HttpServing {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn serve(desk: &Desk, listen: &str) -> Command {
    let mut command = desk.command(&["serve", "--listen", listen]);
    command.env_remove("LONGHAUL_TOKEN");
    command
}

/// H5: the first start makes a private token and says once where it is. No later start does.
#[test]
fn the_first_start_makes_a_private_token_and_says_where_it_is() {
    let desk = Desk::new(&json!(["Hello."]));

    let mut first = HttpServing::start(serve(&desk, "127.0.0.1:0"));
    let file = desk.home().join("run/http-token");
    let token = std::fs::read_to_string(&file).unwrap();
    let served = first.get("/api/tokens", token.trim());
    let notes = first.notes.join("\n");
    let code = first.end(Signal::TERM);
    let second = HttpServing::start(serve(&desk, "127.0.0.1:0"));

    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(
        notes.contains("http-token") && notes.contains("scope admin") && !notes.contains(token.trim()),
        "{notes}"
    );
    assert_eq!(served.0, 200);
    assert!(!served.1.contains(token.trim()));
    assert_eq!(code, Some(143));
    assert!(!second.notes.join("\n").contains("http-token"), "{:?}", second.notes);
    assert_eq!(second.get("/api/sessions", token.trim()).0, 200);
}

/// H5: who made tokens for programs first still gets a token of their own, and one that was revoked does not come back.
#[test]
fn the_first_start_makes_a_token_also_beside_others_and_not_again_after_its_revocation() {
    let desk = Desk::new(&json!(["Hello."]));
    let file = desk.home().join("run/http-token");
    assert!(desk.run(&["token", "new", "--scope", "act", "--name", "program"]).status.success());

    let mut first = HttpServing::start(serve(&desk, "127.0.0.1:0"));
    let token = std::fs::read_to_string(&file).unwrap();
    let served = first.get("/api/tokens", token.trim());
    first.end(Signal::TERM);
    let revoked = desk.run(&["token", "revoke", "http-token"]);
    let again = desk.run(&["token", "revoke", "http-token"]);
    let second = HttpServing::start(serve(&desk, "127.0.0.1:0"));

    assert!(first.notes.join("\n").contains("http-token"), "{:?}", first.notes);
    assert_eq!(served.0, 200, "with all rights");
    assert!(revoked.status.success(), "{}", said(&revoked));
    assert!(said(&again).contains("there is no"), "{}", said(&again));
    assert!(!second.notes.join("\n").contains("http-token"), "{:?}", second.notes);
    assert_eq!(second.get("/api/sessions", token.trim()).0, 401);
}

/// H5: a backup does not bring tokens back that were revoked since, also if the restore was killed before it could end them.
#[test]
fn the_tokens_of_a_restored_backup_do_not_count() {
    let desk = Desk::new(&json!(["Hello."]));
    let backup = desk.home().join("../backup.db").to_str().unwrap().to_owned();
    let made = desk.run(&["token", "new", "--scope", "admin", "--name", "contractor"]);
    let token = String::from_utf8(made.stdout).unwrap();
    assert!(desk.run(&["backup", &backup]).status.success());
    assert!(desk.run(&["token", "revoke", "contractor"]).status.success());
    let names = || {
        let listed = desk.run(&["token", "list", "--json"]);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        listed.as_array().unwrap().iter().map(|token| token["name"].to_string()).collect::<Vec<_>>()
    };

    let restored = desk.run(&["restore", &backup]);
    let after = names();
    let kept = desk.run(&["restore", &backup, "--keep-tokens"]);
    let moved = names();
    // A restore that was killed here has left its marker.
    std::fs::create_dir_all(desk.home().join("run")).unwrap();
    std::fs::write(desk.home().join("run/restored-tokens"), "").unwrap();
    let serving = HttpServing::start(serve(&desk, "127.0.0.1:0"));

    assert!(restored.status.success() && said(&restored).contains("no longer count"), "{}", said(&restored));
    assert!(said(&restored).contains("contractor"), "{}", said(&restored));
    assert_eq!((after, moved), (vec![], vec!["\"contractor\"".to_owned()]), "{}", said(&kept));
    assert!(serving.notes.join("\n").contains("contractor"), "{:?}", serving.notes);
    assert_eq!(serving.get("/api/sessions", token.trim()).0, 401);
}

/// H5: a token is a record with a hash; the server notices new and revoked ones while it runs.
#[test]
fn tokens_that_are_made_and_revoked_count_at_once_and_their_text_is_stored_nowhere() {
    let desk = Desk::new(&json!(["Hello."]));
    let serving = HttpServing::start(serve(&desk, "127.0.0.1:0"));

    let made = desk.run(&["token", "new", "--scope", "read", "--name", "ci"]);
    let token = String::from_utf8(made.stdout.clone()).unwrap();
    assert!(made.status.success() && made.stderr.is_empty(), "{}", said(&made));
    assert!(token.starts_with("lh_") && token.trim_end().len() == 67, "{token}");
    eventually("the new token counts", || serving.get("/api/sessions", token.trim()).0 == 200);
    let listed: Value = serde_json::from_slice(&desk.run(&["token", "list", "--json"]).stdout).unwrap();
    let again = desk.run(&["token", "new", "--scope", "act", "--name", "ci"]);
    let revoked = desk.run(&["token", "revoke", "ci"]);
    eventually("the revoked token is refused", || serving.get("/api/sessions", token.trim()).0 == 401);
    let unknown = desk.run(&["token", "revoke", "ci"]);
    let bad = desk.run(&["token", "new", "--scope", "write", "--name", "x"]);

    assert_eq!((&listed[0]["name"], &listed[0]["scope"]), (&json!("ci"), &json!("read")));
    assert!(!listed.to_string().contains("hash"), "{listed}");
    assert_eq!(again.status.code(), Some(2), "{}", said(&again));
    assert!(revoked.status.success(), "{}", said(&revoked));
    assert_eq!(unknown.status.code(), Some(2), "{}", said(&unknown));
    assert_eq!(bad.status.code(), Some(2), "{}", said(&bad));
    drop(serving);
    for file in ["journal.db", "journal.db-wal"] {
        let bytes = std::fs::read(desk.home().join(file)).unwrap_or_default();
        let needle = &token.as_bytes()[3..67];
        assert!(!bytes.windows(needle.len()).any(|window| window == needle), "{file} has the token");
    }
}

/// H5: a token that was made for less, or was revoked, does not become an admin token by being in the server's variable.
#[test]
fn the_variable_of_the_server_makes_no_token_more_than_it_was_made_for() {
    let desk = Desk::new(&json!(["Hello."]));
    let make = |name: &str, scope: &str| {
        let made = desk.run(&["token", "new", "--scope", scope, "--name", name]);
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    };
    let (act, admin) = (make("program", "act"), make("owner", "admin"));
    let start = |token: &str| {
        let mut command = serve(&desk, "127.0.0.1:0");
        command.env("LONGHAUL_TOKEN", token);
        command
    };
    let refused = |token: &str, why: &str| {
        let output = start(token).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(why) && said(&output).contains("LONGHAUL_TOKEN"), "{}", said(&output));
    };

    refused(&act, "scope act");
    desk.run(&["token", "revoke", "program"]);
    refused(&act, "was revoked");
    assert_eq!(HttpServing::start(start(&admin)).get("/api/tokens", &admin).0, 200);
}

/// P6: other machines are served only with a token that a person made, and without TLS that is warned of.
#[test]
fn an_address_for_other_machines_needs_a_token_that_a_person_made() {
    let desk = Desk::new(&json!(["Hello."]));
    let mut first = HttpServing::start(serve(&desk, "127.0.0.1:0"));
    let token = std::fs::read_to_string(desk.home().join("run/http-token")).unwrap();
    first.end(Signal::TERM);

    let refused = serve(&desk, "0.0.0.0:0").output().unwrap();
    let by_variable = {
        let mut command = serve(&desk, "0.0.0.0:0");
        command.env("LONGHAUL_TOKEN", "a-token-that-a-person-made");
        HttpServing::start(command)
    };

    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("longhaul token new"), "{}", said(&refused));
    let port = by_variable.address.rsplit(':').next().unwrap();
    let local = HttpAddress(format!("127.0.0.1:{port}"));
    assert_eq!(local.status("a-token-that-a-person-made"), 200);
    assert_eq!(local.status(token.trim()), 401, "the token of the first start is for this machine");
    assert!(by_variable.notes.join("\n").contains("without TLS"), "{:?}", by_variable.notes);
}

/// An address of a server, other than the one that it said.
struct HttpAddress(String);

impl HttpAddress {
    fn status(&self, token: &str) -> u16 {
        let mut stream = TcpStream::connect(&self.0).unwrap();
        let head = format!("GET /api/sessions HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.0);
        write!(stream, "{head}Authorization: Bearer {token}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

/// H5: a token that other users could have read is no secret.
#[test]
fn a_token_file_that_others_can_read_is_refused() {
    let desk = Desk::new(&json!(["Hello."]));
    HttpServing::start(serve(&desk, "127.0.0.1:0")).end(Signal::TERM);
    let file = desk.home().join("run/http-token");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();

    let refused = serve(&desk, "127.0.0.1:0").output().unwrap();

    assert!(!refused.status.success());
    assert!(said(&refused).contains("can be read by other users (mode 644)"), "{}", said(&refused));
}

/// A port that is taken is said with who has it and what to do.
#[test]
fn a_port_in_use_names_the_process_that_holds_it() {
    let desk = Desk::new(&json!(["Hello."]));
    let serving = HttpServing::start(serve(&desk, "127.0.0.1:0"));

    let second = serve(&desk, &serving.address).output().unwrap();
    let nonsense = serve(&desk, "nowhere").output().unwrap();

    let text = said(&second);
    assert_eq!(second.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("in use by process {}", serving.process.id())), "{text}");
    assert!(text.contains("--listen"), "{text}");
    assert_eq!(nonsense.status.code(), Some(2), "{}", said(&nonsense));
}

/// H7: a signal ends the server in time, whatever clients do, and the next process has the port at once.
#[test]
fn a_signal_ends_the_server_and_the_next_process_goes_on_at_the_same_port() {
    let desk = Desk::new(&json!(["Hello."]));
    let mut first = HttpServing::start(serve(&desk, "127.0.0.1:0"));
    let token = std::fs::read_to_string(desk.home().join("run/http-token")).unwrap();
    let mut clients: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(&first.address).unwrap()).collect();
    clients[0].write_all(b"GET /healthz HT").unwrap();
    let login = format!(
        "POST /api/login HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        first.address
    );
    clients[1].write_all(login.as_bytes()).unwrap();

    let asked = Instant::now();
    let code = first.end(Signal::TERM);
    let took = asked.elapsed();
    let second = HttpServing::start(serve(&desk, &first.address));

    assert_eq!(code, Some(143));
    let bound = if std::env::var_os("LONGHAUL_HOLD_TIMES").is_some() { 5 } else { 30 };
    assert!(took < Duration::from_secs(bound), "{took:?}");
    assert_eq!(second.address, first.address);
    assert_eq!(second.get("/api/sessions", token.trim()).0, 200);
}

/// Waits until the server closes a connection on which nothing was sent. `false` if it sends something, or does not close it.
fn is_closed_silently(mut stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.read(&mut [0; 1]).is_ok_and(|read| read == 0)
}

/// H5: idle connections hold up nobody. `scripts/soak` opens ten thousand.
#[test]
fn many_idle_connections_hold_up_nobody() {
    let count = std::env::var("LONGHAUL_CONNECTIONS").map_or(700, |count| count.parse().unwrap());
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(count + 200, |maximum| maximum.min(count + 200));
    if limit.current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }).unwrap();
    }
    let desk = Desk::new(&json!(["Hello."]));
    let mut serving = HttpServing::start(serve(&desk, "127.0.0.1:0"));
    let token = std::fs::read_to_string(desk.home().join("run/http-token")).unwrap();
    let before = serving.resident_kib();

    let idle: Vec<TcpStream> = (0..count).map_while(|_| TcpStream::connect(&serving.address).ok()).collect();
    let answered = (0..20).all(|_| serving.get("/api/sessions", token.trim()).0 == 200);

    assert!(idle.len() as u64 >= count.min(wanted - 200), "{} of {count} connections", idle.len());
    assert!(answered);
    let grown = serving.resident_kib().saturating_sub(before);
    assert!(grown < 16 * 1024 + 32 * count, "{grown} KiB for {} connections", idle.len());
    if std::env::var_os("LONGHAUL_CONNECTIONS").is_some() {
        let closed = idle.iter().filter(|stream| is_closed_silently(stream)).count();
        println!(
            "{} connections: {before} KiB before, {grown} KiB more; {closed} closed when idle",
            idle.len()
        );
        assert_eq!(closed, idle.len(), "each is closed when its time is over, and gets nothing");
    }
    drop(idle);
    assert_eq!(serving.get("/healthz", "").0, 200);
    assert_eq!(serving.end(Signal::TERM), Some(143));
}
