//! What the journal costs, each figure against its floor in the same run. `scripts/bench` runs it; the figures with
//! their machine are in `docs/performance.md`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use longhaul_journal::{Append, Blob, Home, Journal, SqliteJournal, records};
use longhaul_protocol::{
    BlobRef, EpochReason, EpochStarted, NewRecord, Note, Seq, SessionId, SessionRecord, StreamName,
};

const BODY: usize = 300;
const ROUNDS: usize = 7;
const APPENDS: u32 = 1_000;
const SESSIONS: usize = 100;
const APPENDS_EACH: u32 = 100;
const PAST: u64 = 1_000_000;
const NEWEST: u64 = 200;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, part, home] = &arguments[..]
        && part == "read-all"
    {
        return read_all(Path::new(home));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        appending(folder.path()).await;
        opening(folder.path()).await;
    });
    reading(folder.path());
}

fn note() -> NewRecord {
    SessionRecord::Note(Note::new("x".repeat(BODY - 11))).encode()
}

fn stream(number: u128) -> StreamName {
    StreamName::session(SessionId::from_bits(number))
}

async fn open(folder: &Path) -> SqliteJournal {
    SqliteJournal::open(&Home::create(folder).expect("a home")).await.expect("a journal")
}

/// The middle of several measurements, taken in turn with others so that a slow moment hits all alike.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn figure(name: &str, value: &str, ratio: f64, target: f64, at_least: bool) {
    let met = if at_least { ratio >= target } else { ratio <= target };
    let (sign, verdict) = (if at_least { "≥" } else { "≤" }, if met { "met" } else { "MISSED" });
    println!("{name:<52} {value:>16}   ratio {ratio:>6.2}   target {sign} {target:<5} {verdict}");
}

fn per_second(count: u32, time: Duration) -> f64 {
    f64::from(count) / time.as_secs_f64()
}

/// One session's durable appends against raw append+fdatasync, and many sessions against one.
async fn appending(folder: &Path) {
    let journal = open(&folder.join("appending")).await;
    let (mut raw, mut one, mut many) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        raw.push(raw_appends(&folder.join(format!("raw-{round}"))));
        one.push(one_session(&journal).await);
        many.push(many_sessions(&journal).await);
    }
    let (raw, one, many) = (median(raw), median(one), median(many));
    let floor = per_second(APPENDS, raw);
    let single = per_second(APPENDS, one);
    let together = per_second(APPENDS_EACH * u32::try_from(SESSIONS).unwrap_or(0), many);
    println!("{:<52} {:>14.0}/s   the floor", "raw append + fdatasync, 300 bytes", floor);
    figure("one session, one record an append", &format!("{single:.0}/s"), single / floor, 0.6, true);
    figure(
        "100 sessions together, one record an append",
        &format!("{together:.0}/s"),
        together / single,
        4.0,
        true,
    );
    journal.close().await;
}

fn raw_appends(path: &Path) -> Duration {
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("a file");
    let bytes = vec![b'x'; BODY];
    let since = Instant::now();
    for _ in 0..APPENDS {
        file.write_all(&bytes).and_then(|()| File::sync_data(&file)).expect("a write");
    }
    since.elapsed()
}

async fn one_session(journal: &SqliteJournal) -> Duration {
    let since = Instant::now();
    appends(journal, stream(1), APPENDS).await;
    since.elapsed()
}

/// What a session's worker does: it holds the lease and knows the head.
async fn appends(journal: &SqliteJournal, stream: StreamName, count: u32) {
    let lease = journal.acquire_lease(&stream).await.expect("the lease");
    let mut head = journal.head(&stream).await.expect("the head").seq;
    for _ in 0..count {
        let append = Append::under(&lease).expecting(head).record(note());
        head = journal.append(append).await.expect("an append")[0].seq;
    }
    journal.release_lease(&lease).await.expect("a release");
}

async fn many_sessions(journal: &SqliteJournal) -> Duration {
    let since = Instant::now();
    let each = (0..SESSIONS).map(|number| appends(journal, stream(1_000 + number as u128), APPENDS_EACH));
    join_all(each.collect()).await;
    since.elapsed()
}

/// Drives futures together until all are done.
async fn join_all(mut futures: Vec<impl Future<Output = ()>>) {
    let mut pinned: Vec<_> = futures.drain(..).map(Box::pin).collect();
    std::future::poll_fn(|context| {
        pinned.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if pinned.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// Opening a session with a long past against one that has only its newest epoch.
async fn opening(folder: &Path) {
    let (old, young) = (folder.join("old"), folder.join("young"));
    for (home, past) in [(&old, PAST), (&young, 0)] {
        let journal = open(home).await;
        append_notes(&journal, past).await;
        let blob = BlobRef::to(b"[]", "application/json");
        let epoch =
            SessionRecord::EpochStarted(EpochStarted::new(1, EpochReason::Compacted, blob.clone(), blob));
        let append = Append::to(&stream(1)).record(epoch.encode()).blob(Blob::new(*b"[]"));
        journal.append(append).await.expect("an append");
        append_notes(&journal, NEWEST - 1).await;
        journal.close().await;
    }
    let (mut with_past, mut without) = (Vec::new(), Vec::new());
    for _ in 0..51 {
        with_past.push(load(&old).await);
        without.push(load(&young).await);
    }
    let (with_past, without) = (median(with_past), median(without));
    println!(
        "{:<52} {:>14.0}µs   the floor",
        "open a session that has only 200 records",
        without.as_secs_f64() * 1e6
    );
    let ratio = with_past.as_secs_f64() / without.as_secs_f64();
    let value = format!("{:.0}µs", with_past.as_secs_f64() * 1e6);
    figure("open one with 1,000,000 records before those", &value, ratio, 1.5, false);
}

async fn append_notes(journal: &SqliteJournal, count: u64) {
    let mut left = count;
    while left > 0 {
        let part = left.min(1_000);
        let append = (0..part).fold(Append::to(&stream(1)), |append, _| append.record(note()));
        journal.append(append).await.expect("an append");
        left -= part;
    }
}

/// Opens the journal and reads the newest epoch of the session.
async fn load(home: &Path) -> Duration {
    let since = Instant::now();
    let journal = open(home).await;
    let epoch = journal.newest_epoch(&stream(1), u64::MAX).await.expect("an answer").expect("an epoch");
    let read = read_from(&journal, epoch).await;
    let took = since.elapsed();
    assert_eq!(read, NEWEST);
    journal.close().await;
    took
}

/// Reads the session page by page from a place on; returns how many records that were.
async fn read_from(journal: &SqliteJournal, from: Seq) -> u64 {
    let mut cursor = records(journal, &stream(1), from);
    let mut read = 0;
    while cursor.next().await.expect("a record").is_some() {
        read += 1;
    }
    read
}

/// Memory while reading a million records, in a process that does nothing else.
fn reading(folder: &Path) {
    let status = std::process::Command::new(std::env::current_exe().expect("this program"))
        .arg("read-all")
        .arg(folder.join("old"))
        .status()
        .expect("this program again");
    assert!(status.success());
}

#[tokio::main(flavor = "current_thread")]
async fn read_all(home: &Path) {
    let journal = open(home).await;
    let since = Instant::now();
    let read = read_from(&journal, 1).await;
    let took = since.elapsed();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB").trim();
    let megabytes = peak.trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0;
    let rate = read as f64 / took.as_secs_f64();
    println!("{:<52} {rate:>14.0}/s   every one checked against its hash", "read 1,000,200 records");
    figure("peak memory of that, whole process", &format!("{megabytes:.1} MB"), megabytes / 64.0, 1.0, false);
}
