//! J1, the half about power loss: an append that returned is there after the power went, and one that did not is
//! there whole or not at all. J5, the half about the disk: one that refuses loses nothing that was acknowledged.
//!
//! A journal runs on a file layer that notes every write and every sync. From the notes, the disk is built as it
//! could be had the power gone at some moment, a journal is opened on it, and what it holds is checked.
//! `LONGHAUL_POWER_CUTS` says how many such disks are tried, `LONGHAUL_SEED` with which random numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use longhaul_journal::{
    Append, Blob, Error, Head, Home, Journal, SqliteJournal, SqliteOptions, VerifyReport, records,
};
use longhaul_protocol::{BlobRef, NewRecord, Seq, SessionId, StreamName};
use rusqlite::ffi::{SQLITE_FULL, SQLITE_IOERR_FSYNC, SQLITE_IOERR_WRITE, SQLITE_OK};
use tempfile::TempDir;

use crate::damage::fast_folder;
use crate::random::TestRandom;
use crate::recording_vfs::{Call, Change, Disk, Event, Recorder, Refuse};

const JOURNAL: &str = "journal.db";
const LOG: &str = "journal.db-wal";
const TASKS: usize = 4;
const APPENDS: usize = 120;

/// J1: whatever the disk had not been told to keep may be lost, in part and out of order; nothing acknowledged is.
#[tokio::test(flavor = "multi_thread")]
async fn after_power_loss_acknowledged_appends_are_there_and_others_are_whole_or_absent() {
    let recording = Recording::make(Box::new(|_| SQLITE_OK)).await;

    let found = recording.cut_power(power_cuts()).await;

    recording.assert_nothing(found);
}

/// J1, seen directly: when an append is answered, its commit is in the log up to the mark that ends it, and a sync
/// of the log has returned since. Commits of others may be under way at that moment.
#[tokio::test(flavor = "multi_thread")]
async fn no_append_is_answered_before_the_sync_of_its_commit_has_returned() {
    let recording = Recording::make(Box::new(|_| SQLITE_OK)).await;

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
        let mut recording = Recording::make(Box::new(|_| SQLITE_OK)).await;
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
        (Call::Write, 80, SQLITE_FULL, full),
        (Call::Write, 80, SQLITE_IOERR_WRITE, failing),
        (Call::Sync, 4, SQLITE_IOERR_FSYNC, failing),
    ];
    for (refused, one_in, code, is_expected) in table {
        let mut random = TestRandom::new(TestRandom::clock());
        let refuse = move |call| if call == refused && random.below(one_in) == 0 { code } else { SQLITE_OK };
        let recording = Recording::make(Box::new(refuse)).await;

        let found = recording.cut_power(power_cuts() / 4).await;

        let refused = &recording.refused;
        assert!(!refused.is_empty() && refused.iter().all(is_expected), "{code}: {refused:?}");
        recording.assert_nothing(found);
    }
}

/// J1, J5: no answer rests on a commit that failed. Of appends with the same key in one commit, the second sees the
/// first; if the commit fails, there is no first, and to call the second a duplicate would acknowledge nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_commit_is_the_answer_to_everything_in_it() {
    let folder = fast_folder();
    let home = Home::create(folder.path()).expect("a new home");
    SqliteJournal::open(&home).await.expect("a new journal").close().await;
    let recorder =
        Recorder::install(Box::new(|call| if call == Call::Sync { SQLITE_IOERR_FSYNC } else { SQLITE_OK }));
    let options = SqliteOptions { vfs: Some(recorder.vfs.clone()), ..SqliteOptions::default() };
    let journal = Arc::new(SqliteJournal::open_with(&home, options).await.expect("no damage"));
    let stream = StreamName::inbox(SessionId::generate());

    let tasks = (0..200).map(|number| {
        let body = serde_json::from_str("{}").expect("JSON");
        let record = NewRecord { kind: "note".to_owned(), body, key: None };
        let append = match number % 2 {
            0 => Append::to(&stream).record(record.with_key("the same")),
            _ => Append::to(&stream).expecting(0).record(record),
        };
        let journal = Arc::clone(&journal);
        tokio::spawn(async move { journal.append(append).await })
    });

    for task in tasks.collect::<Vec<_>>() {
        let answer = task.await.expect("appending does not panic");
        assert!(matches!(answer, Err(Error::Io { .. })), "nothing was committed, and yet: {answer:?}");
    }
    assert_eq!(journal.head(&stream).await.expect("reading works"), Head::EMPTY);
}

/// What is appended, at some time, by some task.
struct Planned {
    stream: StreamName,
    bodies: Vec<String>,
    blob: Option<Vec<u8>>,
}

impl Planned {
    fn new(number: usize, stream: &StreamName, random: &mut TestRandom) -> Self {
        let blob = (random.below(4) == 0).then(|| {
            let mut bytes = vec![b'.'; 3_000 + random.below(30_000)];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            bytes
        });
        let output = blob.as_ref().map(|bytes| BlobRef::to(bytes, "text/plain"));
        let output = serde_json::to_string(&output).expect("a reference is JSON");
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
            let body = serde_json::from_str(body).expect("the plan is JSON");
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
    async fn make(refuse: Refuse) -> Self {
        let seed = TestRandom::any_seed();
        let mut random = TestRandom::new(seed);
        let folder = fast_folder();
        let home = Home::create(folder.path()).expect("a new home");
        // A new journal takes its name whole, past SQLite; so it is made first, and the log begins after it.
        SqliteJournal::open(&home).await.expect("a new journal").close().await;
        let empty = std::fs::read(home.journal_file()).expect("it was just made");
        let streams: Vec<_> = (0..3).map(|_| StreamName::inbox(SessionId::generate())).collect();
        let plan = (0..APPENDS).map(|number| Planned::new(number, &streams[random.below(3)], &mut random));
        let plan = Arc::new(plan.collect::<Vec<_>>());
        let recorder = Recorder::install(refuse);
        let mut refused = Vec::new();
        for half in [0..APPENDS / 2, APPENDS / 2..APPENDS] {
            let vfs = Some(recorder.vfs.clone());
            let options = SqliteOptions { checkpoint_pages: 8, vfs, ..SqliteOptions::default() };
            let journal = Arc::new(SqliteJournal::open_with(&home, options).await.expect("no damage"));
            let tasks: Vec<_> = (0..TASKS)
                .map(|task| {
                    let (journal, home, plan) = (Arc::clone(&journal), home.clone(), Arc::clone(&plan));
                    let numbers = half.clone().skip(task).step_by(TASKS);
                    tokio::spawn(append_all(journal, home, plan, numbers, recorder))
                })
                .collect();
            for task in tasks {
                refused.extend(task.await.expect("appending does not panic"));
            }
            journal.close().await;
        }
        Self { seed, empty, plan, events: recorder.log(), refused }
    }

    /// Lets the power go at many moments, half of them right after an append was answered. Returns the disks on
    /// which a journal has broken its promise.
    async fn cut_power(&self, cuts: usize) -> Vec<(TempDir, Wrong)> {
        let mut random = TestRandom::new(self.seed);
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
        for (number, moment) in moments.into_iter().enumerate() {
            for event in &self.events[at..moment] {
                match event {
                    Event::File(name, change) => disk.apply(name, change, || random.below(2) == 0),
                    Event::Acknowledged(append, head) => acknowledged.push((*append, *head)),
                }
            }
            at = moment;
            // Of what is uncertain, now all has reached the disk, now nothing: those two are the likeliest in life.
            let (odds, coins) = (number % 5, random.below(1 << 30));
            // Looking changes the disk, so a second one is kept to be shown.
            let [looked_at, untouched] = [fast_folder(), fast_folder()];
            for folder in [&looked_at, &untouched] {
                let mut coins = TestRandom::new(coins as u64);
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
            let all = records(&journal, &stream, 1).collect().await?;
            streams.insert(stream, all);
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
                Err(error) if refused.len() < 1_000 => refused.push(error),
                Err(error) => panic!("append {number} never goes through: {error}"),
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
    Unsound(VerifyReport),
    /// It can't be opened or read.
    Unreadable(#[from] Error),
}

fn power_cuts() -> usize {
    std::env::var("LONGHAUL_POWER_CUTS")
        .map_or(200, |cuts| cuts.parse().expect("LONGHAUL_POWER_CUTS is a number"))
}

/// J1: a lease is no promise to anybody after a power cut, so taking and releasing it waits for no sync. The append that
/// relies on it does, and syncs both.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_waits_for_no_sync_and_the_append_after_it_does() {
    let folder = fast_folder();
    let home = Home::create(folder.path()).expect("a new home");
    let recorder = Recorder::install(Box::new(|_| SQLITE_OK));
    let options = SqliteOptions { vfs: Some(recorder.vfs.clone()), ..SqliteOptions::default() };
    let journal = SqliteJournal::open_with(&home, options).await.expect("no damage");
    let stream = StreamName::session(SessionId::generate());
    let body = || serde_json::from_str("{}").expect("JSON");
    let record = || NewRecord { kind: "note".to_owned(), body: body(), key: None };
    let syncs = || {
        let is_sync = |event: &&Event| matches!(event, Event::File(name, Change::Synced) if name == LOG);
        recorder.log().iter().filter(is_sync).count()
    };
    journal
        .append(Append::to(&StreamName::inbox(SessionId::generate())).record(record()))
        .await
        .expect("an append");

    let mut counts = vec![syncs()];
    let lease = journal.acquire_lease(&stream).await.expect("a lease");
    counts.push(syncs());
    journal.append(Append::under(&lease).record(record())).await.expect("an append");
    counts.push(syncs());
    journal.release_lease(&lease).await.expect("a release");
    counts.push(syncs());

    assert_eq!((counts[1], counts[3]), (counts[0], counts[2]), "{counts:?}");
    assert!(counts[2] > counts[1], "{counts:?}");
    journal.close().await;
}
