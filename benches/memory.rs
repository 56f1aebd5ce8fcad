//! What it costs to find things again, as what is remembered grows. `scripts/bench` runs it; the figures with their machine are in
//! `docs/performance.md`. The largest number of items can be given: `cargo bench -p longhaul-memory --bench memory -- 10000`.

use std::path::Path;
use std::time::{Duration, Instant};

use longhaul_journal::{Append, Home, Journal, MatchMode, SearchQuery, SqliteJournal};
use longhaul_memory::{PageSet, RecallScope, recall};
use longhaul_protocol::{
    AttemptEnded, AttemptId, Block, InputId, InputTaken, Item, JoinMode, NewRecord, Role, SessionId,
    SessionRecord, StreamName,
};

/// How much is remembered.
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// In so many sessions, where there are so many records.
const SESSIONS: usize = 1_000;
/// A session has so many records at least.
const LEAST: usize = 100;
/// So many words there are.
const VOCABULARY: f64 = 1_600.0;
const ROUNDS: usize = 21;
const QUESTIONS: [&str; 3] = [
    "Which berth does the pilot of the northern crane use?",
    "What did we decide about the tariff of signal 217?",
    "Why was the radar of the harbour gate replaced?",
];
const WORDS: [&str; 40] = [
    "gate", "tide", "berth", "crane", "pilot", "radar", "tariff", "harbour", "signal", "north", "ferry",
    "ledger", "anchor", "cargo", "depot", "engine", "fender", "galley", "hatch", "island", "jetty", "keel",
    "lantern", "mast", "notice", "officer", "paint", "quay", "rope", "sail", "ticket", "unload", "valve",
    "winch", "yard", "zone", "replace", "decide", "measure", "repair",
];

fn main() {
    let most = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(usize::MAX);
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for size in SIZES.into_iter().filter(|size| *size <= most) {
        let folder = tempfile::tempdir().expect("a folder");
        tokio.block_on(measure(folder.path(), size));
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
        let (id, images, mode) = (InputId::generate(), vec![], JoinMode::Join);
        let input = InputTaken { id, inbox_through: 1, text: said(number), images, mode, client: None };
        let turn = longhaul_protocol::TurnStarted { turn: 1 };
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

async fn measure(folder: &Path, size: usize) {
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
    let places = RecallScope { book, sessions: keys, present: None };

    let first = ask(&journal, &places, 0).await;
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        times.push(ask(&journal, &places, round).await);
    }
    let mut after = Vec::new();
    for round in 0..ROUNDS {
        let append =
            record(round * 2).into_iter().fold(Append::to(&StreamName::session(ids[0])), Append::record);
        journal.append(append).await.expect("an append");
        after.push(ask(&journal, &places, round).await);
    }
    let mut plain = Vec::new();
    for round in 0..ROUNDS {
        plain.push(look_in_one(&journal, ids[round % ids.len()], round).await);
    }
    let [times, after, plain] = [times, after, plain].map(median);
    println!(
        "{size:>7} items, {sessions:>4} sessions: indexing {:>8.1} ms, recall in memory {:>7.1} ms, after one more record {:>7.1} ms, words in one session {:>6.2} ms",
        milliseconds(first.saturating_sub(times)),
        milliseconds(times),
        milliseconds(after),
        milliseconds(plain)
    );
    journal.close().await;
}

async fn ask(journal: &SqliteJournal, places: &RecallScope, round: usize) -> Duration {
    let question = QUESTIONS[round % QUESTIONS.len()];
    let since = Instant::now();
    let found = recall(journal, places, question, 10).await.expect("a search");
    let time = since.elapsed();
    assert!(!found.is_empty());
    time
}

/// What `recall` does in this session: words as they are, in one session.
async fn look_in_one(journal: &SqliteJournal, id: SessionId, round: usize) -> Duration {
    let (words, streams) = (QUESTIONS[round % QUESTIONS.len()].to_owned(), vec![StreamName::session(id)]);
    let search = SearchQuery { words, matching: MatchMode::Any, streams, limit: 20 };
    let since = Instant::now();
    journal.search(&search).await.expect("a search");
    since.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
