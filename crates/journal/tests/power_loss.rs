//! J1, the half about power loss: an append that returned is there after the power went, and one that did not is
//! there whole or not at all. J5, the half about the disk: one that refuses loses nothing that was acknowledged.
//!
//! A journal runs on a file layer that notes every write and every sync. From the notes, the disk is built as it
//! could be had the power gone at some moment, a journal is opened on it, and what it holds is checked.
//! `LONGHAUL_POWER_CUTS` says how many such disks are tried, `LONGHAUL_SEED` with which random numbers.

mod recording_vfs;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use longhaul_journal::{
    Append, Blob, Error, Head, Home, Journal, Page, Report, SqliteJournal, SqliteOptions,
};
use longhaul_protocol::{BlobRef, NewRecord, Seq, SessionId, StreamName};
use recording_vfs::{Change, Disk, Event, Recorder, Refusal};
use rusqlite::ffi::{SQLITE_FULL, SQLITE_IOERR_FSYNC, SQLITE_IOERR_WRITE};
use tempfile::TempDir;

const JOURNAL: &str = "journal.db";
const LOG: &str = "journal.db-wal";
const TASKS: usize = 4;
const APPENDS: usize = 120;

/// J1: whatever the disk had not been told to keep may be lost, in part and out of order; nothing acknowledged is.
#[tokio::test(flavor = "multi_thread")]
async fn after_power_loss_acknowledged_appends_are_there_and_others_are_whole_or_absent() {
    let recording = Recording::make(None).await;

    let found = recording.cut_power(power_cuts()).await;

    recording.assert_nothing(found);
}

/// J1, seen directly: when an append is answered, its commit is in the log up to the mark that ends it, and a sync
/// of the log has returned since. Commits of others may be under way at that moment.
#[tokio::test(flavor = "multi_thread")]
async fn no_append_is_answered_before_the_sync_of_its_commit_has_returned() {
    let recording = Recording::make(None).await;

    let (mut written, mut durable) = (BTreeSet::new(), BTreeSet::new());
    let (mut committed, mut answered) = (false, 0);
    for event in &recording.events {
        match event {
            Event::File(name, Change::Written(_, bytes)) if name == LOG => {
                // Before each page comes a header, which says how large the journal is if a commit ends there.
                if bytes.len() == 24 {
                    committed = bytes[4..8] != [0; 4];
                }
                written.extend(appends_on(bytes));
            }
            Event::File(name, Change::Synced) if name == LOG && committed => durable.append(&mut written),
            Event::File(..) => {}
            Event::Acknowledged(append, _) => {
                let seed = recording.seed;
                assert!(durable.contains(append), "append {append} did not wait for its sync (seed {seed})");
                answered += 1;
            }
        }
    }
    assert_eq!(answered, APPENDS);
}

/// That the check of J1 can fail: where syncs of one of the files do nothing, it finds what is lost.
#[tokio::test(flavor = "multi_thread")]
async fn on_a_disk_that_ignores_syncs_the_check_finds_lost_appends() {
    for ignored in [LOG, JOURNAL] {
        let mut recording = Recording::make(None).await;
        let is_ignored =
            |event: &Event| matches!(event, Event::File(name, Change::Synced) if name == ignored);
        recording.events.retain(|event| !is_ignored(event));

        let found = recording.cut_power(40).await;

        let lost = found.iter().any(|(_, wrong)| matches!(wrong, Wrong::Lost { .. }));
        let seed = recording.seed;
        assert!(lost, "nothing was lost without syncs of {ignored} (seed {seed}): {found:#?}");
    }
}

/// J5: each refusal is answered as what it is, the same append goes through when it is tried again, and nothing
/// that was acknowledged is lost, even if the power goes and the disk has dropped what it refused to sync.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_refuses_writes_or_syncs_is_reported_and_loses_nothing() {
    let full: fn(&Error) -> bool = |error| matches!(error, Error::DiskFull { .. });
    let failing: fn(&Error) -> bool = |error| matches!(error, Error::Io { .. });
    let table = [
        (Refusal::Write { one_in: 45, code: SQLITE_FULL }, full),
        (Refusal::Write { one_in: 60, code: SQLITE_IOERR_WRITE }, failing),
        (Refusal::Sync { one_in: 4, code: SQLITE_IOERR_FSYNC }, failing),
    ];
    for (refusal, is_expected) in table {
        let recording = Recording::make(Some(refusal)).await;

        let found = recording.cut_power(power_cuts() / 4).await;

        let refused = &recording.refused;
        assert!(!refused.is_empty() && refused.iter().all(is_expected), "{refusal:?}: {refused:?}");
        recording.assert_nothing(found);
    }
}

/// What is appended, at some time, by some task.
struct Planned {
    stream: StreamName,
    bodies: Vec<String>,
    blob: Option<Vec<u8>>,
}

impl Planned {
    fn new(number: usize, stream: &StreamName, random: &mut Random) -> Self {
        let blob = (random.below(4) == 0).then(|| {
            let mut bytes = vec![b'.'; 3_000 + random.below(30_000)];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            bytes
        });
        let output = blob.as_ref().map(|bytes| BlobRef::to(bytes, "text/plain"));
        let output = serde_json::to_string(&output).unwrap();
        let bodies = (0..1 + random.below(4)).map(|record| {
            let text = "word ".repeat(random.below(if record == 0 { 1_500 } else { 100 }));
            format!(r#"{{"append":{number},"record":{record},"output":{output},"text":"{text}"}}"#)
        });
        Self { stream: stream.clone(), bodies: bodies.collect(), blob }
    }

    fn append(&self) -> Append {
        let append = Append::to(&self.stream);
        let append = self.blob.iter().fold(append, |append, blob| append.blob(Blob::new(blob.clone())));
        self.bodies.iter().fold(append, |append, body| {
            let body = serde_json::from_str(body).unwrap();
            append.record(NewRecord { kind: "note".to_owned(), body, key: None })
        })
    }
}

/// The numbers of the appends that have a record on a page.
fn appends_on(page: &[u8]) -> impl Iterator<Item = usize> {
    let text = String::from_utf8_lossy(page);
    let numbers = text.split(r#"{"append":"#).skip(1).filter_map(|rest| rest.split(',').next()?.parse().ok());
    numbers.collect::<Vec<_>>().into_iter()
}

/// A run of a journal, with all that reached its disk.
struct Recording {
    seed: u64,
    empty: Vec<u8>,
    plan: Arc<Vec<Planned>>,
    events: Vec<Event>,
    refused: Vec<Error>,
}

impl Recording {
    /// Several tasks append at the same time; half-way, the journal is closed and opened again.
    async fn make(refusal: Option<Refusal>) -> Self {
        let seed = std::env::var("LONGHAUL_SEED").map_or_else(|_| by_clock(), |seed| number(&seed));
        let mut random = Random(seed);
        let folder = folder();
        let home = Home::create(folder.path()).unwrap();
        // A new journal takes its name whole, past SQLite; so it is made first, and the log begins after it.
        SqliteJournal::open(&home).await.unwrap().close().await;
        let empty = std::fs::read(home.journal_file()).unwrap();
        let streams: Vec<_> = (0..3).map(|_| StreamName::inbox(SessionId::generate())).collect();
        let plan = (0..APPENDS).map(|number| Planned::new(number, &streams[random.below(3)], &mut random));
        let plan = Arc::new(plan.collect::<Vec<_>>());
        let recorder = Recorder::install(refusal);
        let mut refused = Vec::new();
        for half in [0..APPENDS / 2, APPENDS / 2..APPENDS] {
            let vfs = Some(recorder.vfs.clone());
            let options = SqliteOptions { checkpoint_pages: 8, vfs, ..SqliteOptions::default() };
            let journal = Arc::new(SqliteJournal::open_with(&home, options).await.unwrap());
            let tasks: Vec<_> = (0..TASKS)
                .map(|task| {
                    let (journal, home, plan) = (Arc::clone(&journal), home.clone(), Arc::clone(&plan));
                    let numbers = half.clone().skip(task).step_by(TASKS);
                    tokio::spawn(append_all(journal, home, plan, numbers, recorder))
                })
                .collect();
            for task in tasks {
                refused.extend(task.await.unwrap());
            }
            journal.close().await;
        }
        Self { seed, empty, plan, events: recorder.log(), refused }
    }

    /// Lets the power go at many moments, half of them right after an append was answered. Returns the disks on
    /// which a journal has broken its promise.
    async fn cut_power(&self, cuts: usize) -> Vec<(TempDir, Wrong)> {
        let mut random = Random(self.seed);
        let is_answer = |at: &usize| matches!(self.events[*at], Event::Acknowledged(..));
        let answers: Vec<usize> = (0..self.events.len()).filter(is_answer).collect();
        let mut moment = |cut| match cut % 2 {
            0 => random.below(self.events.len() + 1),
            _ => answers[random.below(answers.len())] + 1,
        };
        let mut moments: Vec<usize> = (0..cuts).map(&mut moment).collect();
        moments.sort_unstable();
        let mut disk = Disk::default();
        disk.apply(JOURNAL, &Change::Replaced(self.empty.clone()), || true);
        let (mut at, mut acknowledged, mut found) = (0, Vec::new(), Vec::new());
        for moment in moments {
            for event in &self.events[at..moment] {
                match event {
                    Event::File(name, change) => disk.apply(name, change, || random.below(2) == 0),
                    Event::Acknowledged(append, head) => acknowledged.push((*append, *head)),
                }
            }
            at = moment;
            // From nothing of what is uncertain to all of it: those two are the likeliest in life.
            let (odds, coins) = (random.below(5), random.below(usize::MAX));
            // Looking changes the disk, so a second one is kept to be shown.
            let [looked_at, untouched] = [folder(), folder()];
            for folder in [&looked_at, &untouched] {
                let mut coins = Random(coins as u64);
                disk.after_power_loss(folder.path(), || coins.below(4) < odds);
            }
            if let Err(wrong) = self.check(looked_at.path(), &acknowledged).await {
                found.push((untouched, wrong));
            }
        }
        found
    }

    /// Fails if a promise was broken, and then keeps some of the disks that show it.
    fn assert_nothing(&self, found: Vec<(TempDir, Wrong)>) {
        let (seed, many) = (self.seed, found.len());
        let kept: Vec<_> = found.into_iter().take(3).map(|(disk, wrong)| (disk.keep(), wrong)).collect();
        assert!(kept.is_empty(), "{many} disks break the promise (seed {seed}), such as {kept:#?}");
    }

    /// What is there after power loss must be appends that were made, each whole, and all that were acknowledged.
    async fn check(&self, folder: &Path, acknowledged: &[(usize, Head)]) -> Result<(), Wrong> {
        let journal = SqliteJournal::open(&Home::existing(folder)?).await?;
        let mut streams = BTreeMap::new();
        for stream in journal.streams().await? {
            let mut records = Vec::new();
            loop {
                let page = journal.read(&stream, records.len() as Seq + 1, Page::default()).await?;
                if page.is_empty() {
                    break;
                }
                records.extend(page);
            }
            streams.insert(stream, records);
        }
        for (append, head) in acknowledged {
            let records = streams.get(&self.plan[*append].stream);
            let there =
                records.and_then(|records| records.get(head.seq as usize - 1)).map(|record| record.hash);
            if there != Some(head.hash) {
                return Err(Wrong::Lost { append: *append, seq: head.seq });
            }
        }
        let mut whole = BTreeSet::new();
        for (stream, records) in &streams {
            let mut bodies = records.iter().map(|record| record.text().unwrap_or_default()).peekable();
            while let Some(body) = bodies.peek() {
                let append = appends_on(body.as_bytes()).next();
                let planned =
                    append.and_then(|append| self.plan.get(append)).filter(|one| one.stream == *stream);
                let expected = planned.map_or(&[][..], |planned| &planned.bodies);
                let is_whole =
                    !expected.is_empty() && expected.iter().all(|body| bodies.next() == Some(body));
                if !is_whole || !whole.insert(append) {
                    return Err(Wrong::Torn { stream: stream.clone(), append });
                }
            }
        }
        let blobs = whole.iter().flatten().filter(|append| self.plan[**append].blob.is_some()).count();
        let report = journal.verify().await?;
        journal.close().await;
        if report.is_sound() && report.blobs == blobs as u64 { Ok(()) } else { Err(Wrong::Unsound(report)) }
    }
}

/// Appends what the plan says, each until it is taken. Returns the refusals on the way.
async fn append_all(
    journal: Arc<SqliteJournal>,
    home: Home,
    plan: Arc<Vec<Planned>>,
    numbers: impl Iterator<Item = usize> + Send,
    recorder: &'static Recorder,
) -> Vec<Error> {
    let mut refused = Vec::new();
    for number in numbers {
        let last = loop {
            match journal.append(plan[number].append()).await {
                Ok(mut records) => break records.pop().expect("every append of the plan has a record"),
                Err(error) => refused.push(error),
            }
        };
        // Heads that were noted by now must be there after power loss, or the tail would count as lost.
        if let Ok(heads) = std::fs::read(home.folder().join("heads.json")) {
            recorder.note(Event::File("heads.json".to_owned(), Change::Replaced(heads)));
        }
        recorder.note(Event::Acknowledged(number, Head { seq: last.seq, hash: last.hash }));
    }
    refused
}

/// How a journal can break its promise.
#[derive(Debug, thiserror::Error)]
#[error("{self:?}")]
#[allow(dead_code, reason = "the fields are for whoever reads the message of a failed test")]
enum Wrong {
    /// An append that was acknowledged is not there.
    Lost { append: usize, seq: Seq },
    /// What is there is not one whole append after another, each once and in its stream.
    Torn { stream: StreamName, append: Option<usize> },
    /// The journal says so itself.
    Unsound(Report),
    /// It can't be opened or read.
    Unreadable(#[from] Error),
}

fn folder() -> TempDir {
    // In memory where that is possible: the disk is imagined anyway, and a real one would take its time.
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn power_cuts() -> usize {
    std::env::var("LONGHAUL_POWER_CUTS").map_or(200, |cuts| number(&cuts) as usize)
}

fn number(text: &str) -> u64 {
    text.parse().expect("LONGHAUL_POWER_CUTS and LONGHAUL_SEED are numbers")
}

fn by_clock() -> u64 {
    std::time::UNIX_EPOCH.elapsed().expect("the clock is past 1970").as_micros() as u64
}

/// Random numbers that can be had again (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % end
    }
}
