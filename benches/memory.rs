//! What it costs to find things again, as what is remembered grows. `scripts/bench` runs it; the figures with their machine are in
//! `docs/performance.md`. The number of records can be given, and that of questions:
//! `cargo bench -p longhaul-memory --bench memory -- 10000 200`.

use std::path::Path;
use std::time::{Duration, Instant};

use longhaul_journal::{Append, Home, Journal, SearchQuery, SqliteJournal};
use longhaul_memory::{PageSet, RecallBudget, RecallScope, recall};
use longhaul_protocol::{
    AttemptEnded, AttemptId, Block, Input, InputId, InputTaken, Item, JoinMode, NewRecord, Role, SessionId,
    SessionRecord, StreamName,
};

/// How much is remembered, if the command does not say it.
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// In so many sessions, where there are so many records.
const SESSIONS: usize = 1_000;
/// A session has so many records at least.
const LEAST: usize = 100;
/// So many words there are.
const VOCABULARY: f64 = 1_600.0;
const QUESTIONS: usize = 200;
/// Records that are added one by one.
const ADDED: usize = 300;
const WORDS: [&str; 40] = [
    "gate", "tide", "berth", "crane", "pilot", "radar", "tariff", "harbour", "signal", "north", "ferry",
    "ledger", "anchor", "cargo", "depot", "engine", "fender", "galley", "hatch", "island", "jetty", "keel",
    "lantern", "mast", "notice", "officer", "paint", "quay", "rope", "sail", "ticket", "unload", "valve",
    "winch", "yard", "zone", "replace", "decide", "measure", "repair",
];

fn main() {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let sizes = given.first().map_or(SIZES.to_vec(), |size| vec![*size]);
    let questions = given.get(1).copied().unwrap_or(QUESTIONS);
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for size in sizes {
        let folder = tempfile::tempdir().expect("a folder");
        tokio.block_on(measure(folder.path(), size, questions));
    }
}

/// A word: few are frequent, and most are rare, as in any language.
fn word(chance: usize) -> String {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is chance"
    )]
    let rank = VOCABULARY.powf((chance % 10_007) as f64 / 10_007.0) as usize;
    match rank / WORDS.len() {
        0 => WORDS[rank].to_owned(),
        more => format!("{}{}", WORDS[rank % WORDS.len()], WORDS[more % WORDS.len()]),
    }
}

/// Things that were said, of many words, always the same.
fn said(number: usize) -> String {
    let words: Vec<String> = (0..12 + number % 20)
        .map(|index| word((number * 97 + index * 4_099 + number / 7 * 389) ^ (index << 7)))
        .collect();
    format!("Number {number}: {}.", words.join(" "))
}

fn record(number: usize) -> [NewRecord; 2] {
    if number.is_multiple_of(2) {
        let (id, mode) = (InputId::generate(), JoinMode::Join);
        let input = InputTaken::of(Input::new(id, said(number), mode), 1);
        let turn = longhaul_protocol::TurnStarted::new(1);
        return [SessionRecord::InputTaken(input).encode(), SessionRecord::TurnStarted(turn).encode()];
    }
    let attempt = AttemptId::generate();
    let item = Item::Text { role: Role::Assistant, text: said(number) };
    let (stop, error, goes_on, too_long) = (None, None, false, None);
    let ended = AttemptEnded { attempt, kept: 1, stop, error, goes_on, too_long };
    [
        SessionRecord::Block(Block { attempt, index: 0, item }).encode(),
        SessionRecord::AttemptEnded(ended).encode(),
    ]
}

/// A question of three or four words that were said, frequent and rare ones alike.
fn question(number: usize) -> String {
    let word = |index: usize| word(number * 7_919 + index * 104_729 + (number << index));
    match number % 3 {
        0 => format!("Which {} does the {} of the {} {} use?", word(1), word(2), word(3), word(4)),
        1 => format!("What did we decide about the {} of {} {number}?", word(1), word(2)),
        _ => format!("Why was the {} of the {} {} replaced?", word(1), word(2), word(3)),
    }
}

async fn measure(folder: &Path, size: usize, questions: usize) {
    let journal = SqliteJournal::open(&Home::create(folder).expect("a home")).await.expect("a journal");
    let sessions = SESSIONS.min(size / LEAST).max(1);
    let ids: Vec<SessionId> = (0..sessions).map(|number| SessionId::from_bits(1 + number as u128)).collect();
    for (number, id) in ids.iter().enumerate() {
        let each = size / sessions;
        let records = (0..each).flat_map(|index| record(number * each + index));
        let append = records.fold(Append::to(&StreamName::session(*id)), Append::record);
        journal.append(append).await.expect("an append");
    }
    let book = PageSet::load(&journal, "bench").await.expect("pages");
    let keys = ids.iter().map(|id| (*id, format!("cli:{id}"))).collect();
    let places = RecallScope { book, sessions: keys, present: None, asked_at: None };
    // Forgets how much memory the appends took.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = memory_kb("VmRSS:");

    let indexing = time_indexing(&journal).await;
    let file = std::fs::metadata(folder.join("cache/search.db")).expect("an index").len();
    let (mut times, mut work) = (Vec::new(), Vec::new());
    for number in 0..questions {
        let worked = cpu_time();
        times.push(time_recall(&journal, &places, &question(number)).await);
        work.push(cpu_time().saturating_sub(worked));
    }
    let memory = memory_kb("VmHWM:").saturating_sub(before);
    let mut one_session = Vec::new();
    for number in 0..questions {
        let streams = vec![StreamName::session(ids[number % ids.len()])];
        let since = Instant::now();
        journal.search(&SearchQuery::new(question(number), 20).within(streams)).await.expect("a search");
        one_session.push(since.elapsed());
    }
    let mut added = Vec::new();
    for number in 0..ADDED {
        let stream = StreamName::session(ids[number % ids.len()]);
        journal
            .append(record(number).into_iter().fold(Append::to(&stream), Append::record))
            .await
            .expect("an append");
        added.push(time_indexing_of(&journal, stream).await);
    }
    println!(
        "{size:>8} records, {sessions:>4} sessions: recall {:>7.1} ms median, {:>7.1} worst of {questions} (processor {:>6.1}, {:>6.1}); in one session {:>5.2} median, {:>5.2} worst; \
         indexing all {:>6.2} s, one more {:>5.2} ms p99; index {:>6.1} MB, memory {:>5.1} MB",
        milliseconds(share(&mut times, 50)),
        milliseconds(share(&mut times, 100)),
        milliseconds(share(&mut work, 50)),
        milliseconds(share(&mut work, 100)),
        milliseconds(share(&mut one_session, 50)),
        milliseconds(share(&mut one_session, 100)),
        indexing.as_secs_f64(),
        milliseconds(share(&mut added, 99)),
        megabytes(file),
        megabytes(memory * 1_024),
    );
    journal.close().await;
}

/// Indexes until nothing is left.
async fn time_indexing(journal: &SqliteJournal) -> Duration {
    let since = Instant::now();
    // A search for no hits only updates the index.
    while journal.search(&SearchQuery::new("", 0)).await.expect("a search").unindexed > 0 {}
    since.elapsed()
}

async fn time_indexing_of(journal: &SqliteJournal, stream: StreamName) -> Duration {
    let since = Instant::now();
    journal.search(&SearchQuery::new("", 0).within(vec![stream])).await.expect("a search");
    since.elapsed()
}

async fn time_recall(journal: &SqliteJournal, places: &RecallScope, question: &str) -> Duration {
    let since = Instant::now();
    let found = recall(journal, places, question, RecallBudget::entries(10)).await.expect("a search");
    let time = since.elapsed();
    assert!(!found.hits.is_empty(), "{question}");
    time
}

/// The time that this percentage of them stays within.
fn share(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * percent).div_ceil(100).max(1) - 1]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[allow(clippy::cast_precision_loss, reason = "it is shown with one digit")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The time that all threads of the process have run. Unlike the time on the wall, it doesn't grow with what else the machine does.
fn cpu_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let run = |thread: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(threads.filter_map(run).sum())
}

/// The memory of the process in kilobytes: `VmRSS:` now, `VmHWM:` at most.
fn memory_kb(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
