//! Recall, measured: questions about what was said in long conversations, and how often the answer is among the first hits.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod baselines;
mod club;
mod conversation;
mod embeddings;
mod facts;
mod scopes;

use std::collections::BTreeMap;
use std::path::Path;

use baselines::{Having, PlainBm25, substrings};
use conversation::{Evidence, World, is_in_a_page, make};
use facts::{Fact, Told};
use longhaul_journal::{Home, Journal, SqliteJournal};
use longhaul_memory::{RecallBudget, RecallHit, RecallPlace, recall};
use longhaul_protocol::{At, Seq, SessionId};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/memory.md");
const BEGIN: &str =
    "<!-- The table is made by a test: UPDATE_DOCS=1 cargo test -p longhaul-memory docs -->\n";
const END: &str = "<!-- The end of the table. -->\n";

const CLUB_BEGIN: &str = "<!-- The second table, made by the same command. -->\n";
const CLUB_END: &str = "<!-- The end of the second table. -->\n";

/// When the questions of the second set are asked: 20 October 2026.
const TODAY: At = At(1_792_490_400_000);

/// Less than this, of 100, is a step back.
const LEAST_AT_5: usize = 80;

/// A journal where writing costs little, if the machine has such a place.
pub(crate) async fn journal() -> (tempfile::TempDir, SqliteJournal) {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.expect("a folder");
    let journal = open(folder.path()).await;
    (folder, journal)
}

pub(crate) async fn open(folder: &Path) -> SqliteJournal {
    SqliteJournal::open(&Home::create(&folder.join("home")).unwrap()).await.unwrap()
}

/// At which place, from 0, the proof of a fact stands.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    told: Told,
    /// By each way of searching, in the order of `WAYS`.
    places: [Option<usize>; WAYS.len()],
    /// Whether what holds stands before what was corrected.
    is_newest_first: Option<bool>,
}

const WAYS: [&str; 5] = [
    "`recall`",
    "the same, where only the best record of an entry counts",
    "BM25 over single records",
    "substring, all words",
    "substring, any word",
];

/// Whether an entry shows the proof: it is that record, or an item that rests on it, or a page that has the value.
fn shows(found: &RecallHit, fact: &Fact, evidence: &Evidence) -> bool {
    match &found.place {
        RecallPlace::Page(_) => is_in_a_page(fact) && has_line(&found.excerpt, fact),
        RecallPlace::Item { session, .. } | RecallPlace::Record { session, .. } => {
            *session == evidence.session && found.sources.contains(&evidence.seq)
        }
    }
}

/// The same, but an entry counts only by its best record.
fn is_mainly(found: &RecallHit, fact: &Fact, evidence: &Evidence) -> bool {
    match found.place {
        RecallPlace::Record { session, seq } => (session, seq) == (evidence.session, evidence.seq),
        _ => shows(found, fact, evidence),
    }
}

fn has_line(excerpt: &str, fact: &Fact) -> bool {
    let line = format!("- {}: {}", fact.attribute.name, fact.value());
    excerpt.lines().any(|shown| shown == line)
}

async fn ask(
    journal: &dyn Journal,
    world: &World,
    plain: &PlainBm25<'_>,
    fact: &Fact,
    evidence: &Evidence,
) -> Outcome {
    let question = fact.question();
    let found = recall(journal, &world.places, &question, RecallBudget::entries(10)).await.unwrap().hits;
    let place_of = |hits: Vec<(SessionId, Seq)>| {
        hits.into_iter().position(|hit| hit == (evidence.session, evidence.seq))
    };
    let place = found.iter().position(|found| shows(found, fact, evidence));
    let is_newest_first = evidence.outdated.map(|(session, seq)| {
        let is_old = |found: &RecallHit| {
            matches!(found.place, RecallPlace::Record { session: of, .. } if of == session)
                && found.sources.contains(&seq)
        };
        let old = found.iter().position(is_old);
        place.is_some_and(|place| old.is_none_or(|old| place < old))
    });
    if std::env::var_os("RECALL_MISSES").is_some() && place.is_none_or(|place| place >= 5) {
        println!("{question} ({:?}, {place:?}) {}", fact.told, fact.statement());
        found.iter().for_each(|found| println!("    {:?}", found.excerpt));
    }
    let places = [
        place,
        found.iter().position(|found| is_mainly(found, fact, evidence)),
        place_of(plain.find(&question)),
        place_of(substrings(world, &question, Having::All)),
        place_of(substrings(world, &question, Having::Any)),
    ];
    Outcome { told: fact.told, places, is_newest_first }
}

/// Of 100, how many have the proof among the first so many.
fn among(outcomes: &[&Outcome], way: usize, first: usize) -> usize {
    let is_found = |outcome: &&&Outcome| outcome.places[way].is_some_and(|place| place < first);
    // To the nearest whole.
    (200 * outcomes.iter().filter(is_found).count() / outcomes.len()).div_ceil(2)
}

fn table(world: &World, outcomes: &[Outcome]) -> String {
    let all: Vec<&Outcome> = outcomes.iter().collect();
    let mut table = format!(
        "{} questions, {} sessions, {} records, {} extracted items, {} pages.\n\n",
        outcomes.len(),
        world.places.sessions.len(),
        world.records,
        world.items,
        world.places.book.pages.len()
    );
    table.push_str("| all questions | recall@5 | recall@10 |\n| --- | --- | --- |\n");
    for (way, name) in WAYS.iter().enumerate() {
        let (at_5, at_10) = (among(&all, way, 5), among(&all, way, 10));
        table.push_str(&format!("| {name} | {at_5} % | {at_10} % |\n"));
    }
    table.push_str("\n| how it was told | questions | `recall` @5 | @10 | BM25 @5 | @10 |\n");
    table.push_str("| --- | --- | --- | --- | --- | --- |\n");
    let mut by_told: BTreeMap<Told, Vec<&Outcome>> = BTreeMap::new();
    outcomes.iter().for_each(|outcome| by_told.entry(outcome.told).or_default().push(outcome));
    for (told, outcomes) in by_told {
        let figures = [(0, 5), (0, 10), (2, 5), (2, 10)].map(|(way, first)| among(&outcomes, way, first));
        let figures = figures.map(|figure| format!("{figure} %")).join(" | ");
        table.push_str(&format!("| {} | {} | {figures} |\n", told.name(), outcomes.len()));
    }
    let corrected: Vec<bool> = outcomes.iter().filter_map(|outcome| outcome.is_newest_first).collect();
    let newest = corrected.iter().filter(|is_first| **is_first).count();
    table.push_str(&format!(
        "\nOf {} facts that were corrected, {newest} stand before what they correct.\n",
        corrected.len()
    ));
    table
}

/// Y13: the page says how well things are found again, and it is true.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_is_found_again_as_well_as_the_docs_say() {
    let (_folder, journal) = journal().await;
    let world = make(&journal).await;

    let plain = PlainBm25::new(&world.texts);
    let mut outcomes = Vec::new();
    for (fact, evidence) in world.facts.iter().zip(&world.evidence) {
        outcomes.push(ask(&journal, &world, &plain, fact, evidence).await);
    }

    let table = table(&world, &outcomes);
    println!("{table}");
    let all: Vec<&Outcome> = outcomes.iter().collect();
    assert!(outcomes.len() >= 200);
    assert!(among(&all, 0, 5) >= LEAST_AT_5, "{table}");
    the_page_says(&table, BEGIN, END);
}

/// At which place the proof of a question of the second set stands, by `recall` and by BM25.
type ClubOutcome = (club::Kind, bool, [Option<usize>; 2]);

async fn ask_club(journal: &dyn Journal, club: &club::Club) -> Vec<ClubOutcome> {
    let plain = PlainBm25::new(&club.texts);
    let mut outcomes = Vec::new();
    for asked in &club.asked {
        let proof = (asked.session, asked.seq);
        let found =
            recall(journal, &club.places, &asked.question, RecallBudget::entries(10)).await.unwrap().hits;
        let is_proof = |found: &RecallHit| matches!(found.place, RecallPlace::Record { session, seq } if (session, seq) == proof);
        let places = [
            found.iter().position(is_proof),
            plain.find(&asked.question).into_iter().position(|place| place == proof),
        ];
        if std::env::var_os("RECALL_MISSES").is_some()
            && places[0].is_none_or(|place| place >= 5)
            && !asked.is_held_out()
        {
            println!("{} ({:?}, {:?})", asked.question, asked.kind, places[0]);
            found.iter().for_each(|found| println!("    {} {:?}", found.at, found.excerpt));
        }
        outcomes.push((asked.kind, asked.is_held_out(), places));
    }
    outcomes
}

fn club_table(club: &club::Club, outcomes: &[ClubOutcome]) -> String {
    let share = |outcomes: &[&ClubOutcome], way: usize, first: usize| {
        let found =
            outcomes.iter().filter(|(.., places)| places[way].is_some_and(|place| place < first)).count();
        format!("{} %", (200 * found / outcomes.len()).div_ceil(2))
    };
    let figures = |outcomes: &[&ClubOutcome]| {
        [(0, 1), (0, 5), (0, 10), (1, 1), (1, 5), (1, 10)]
            .map(|(way, first)| share(outcomes, way, first))
            .join(" | ")
    };
    let mut table = format!(
        "{} questions, {} sessions, {} things that were said.\n\n| told | questions | `recall` @1 | @5 | @10 | BM25 @1 | @5 | @10 |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        outcomes.len(),
        club.places.sessions.len(),
        club.texts.len()
    );
    for (name, is_held_out) in [("the half for tuning", false), ("the half that was held out", true)] {
        let half: Vec<&ClubOutcome> = outcomes.iter().filter(|outcome| outcome.1 == is_held_out).collect();
        table.push_str(&format!("| {name} | {} | {} |\n", half.len(), figures(&half)));
    }
    // Without the half that was held out: otherwise it would be looked at after all.
    let of_tuning = || outcomes.iter().filter(|outcome| !outcome.1);
    for kind in club::Kind::ALL {
        let of_kind: Vec<&ClubOutcome> = of_tuning().filter(|outcome| outcome.0 == kind).collect();
        table.push_str(&format!("| {} | {} | {} |\n", kind.name(), of_kind.len(), figures(&of_kind)));
    }
    table
}

/// Y13: people, days, corrections and paraphrases, in conversations of other material.
#[tokio::test(flavor = "multi_thread")]
async fn what_club_members_said_is_found_as_well_as_the_docs_say() {
    let (_folder, journal) = journal().await;
    let club = club::make(&journal, TODAY).await;

    let outcomes = ask_club(&journal, &club).await;

    let table = club_table(&club, &outcomes);
    println!("{table}");
    let found = |way: usize| {
        outcomes.iter().filter(|(.., places)| places[way].is_some_and(|place| place < 5)).count()
    };
    assert!(found(0) > found(1), "{table}");
    the_page_says(&table, CLUB_BEGIN, CLUB_END);
}

/// Whether two tables say the same, but for a question or two: sessions have other ids each time, and among things that fit equally well
/// that decides.
fn is_about_the_same(one: &str, other: &str) -> bool {
    const FEW: usize = 5;
    let words = |table: &str| table.split(|letter: char| letter.is_ascii_digit()).collect::<String>();
    let figures = |table: &str| -> Vec<usize> {
        let runs = table.split(|letter: char| !letter.is_ascii_digit()).filter(|run| !run.is_empty());
        runs.map(|run| run.parse().unwrap()).collect()
    };
    let (some, others) = (figures(one), figures(other));
    words(one) == words(other) && some.iter().zip(&others).all(|(one, other)| one.abs_diff(*other) <= FEW)
}

/// `docs/memory.md` has these figures.
fn the_page_says(table: &str, begin: &str, end: &str) {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let renewed = format!("{before}{begin}\n{table}\n{end}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, &renewed).unwrap();
    }

    let stored = std::fs::read_to_string(PAGE).unwrap();
    let (_, rest) = stored.split_once(begin).unwrap();
    let (stored, _) = rest.split_once(end).unwrap();

    assert!(
        is_about_the_same(stored.trim(), table.trim()),
        "docs/memory.md has other figures; renew them with `UPDATE_DOCS=1 cargo test -p longhaul-memory docs`:\n{table}"
    );
}
