use longhaul_agent::memory_pages::PageChangeReport;
use longhaul_memory::{Page, PageVersion, RecallHit};
use longhaul_protocol::{At, SessionId};

use super::*;

const MOMENT: At = At(1_767_225_600_000);

fn page(text: &str, by: ChangedBy) -> Page {
    let version = |seq| PageVersion { seq, at: MOMENT, by, sources: 0 };
    Page { text: text.to_owned(), versions: vec![version(1), version(4)] }
}

fn listing(pages: &[(&str, Page)]) -> PageListing {
    let mut set = PageSet::default();
    set.scope = "agent-a".to_owned();
    set.pages = pages.iter().map(|(name, page)| ((*name).to_owned(), page.clone())).collect();
    PageListing {
        pages: set,
        waiting: 0,
        settings: MemorySettings::default(),
        folder: "/home/me/.longhaul/memory/agent-a".into(),
        left: vec![],
        others: BTreeSet::new(),
    }
}

/// Y10
#[test]
fn pages_are_listed_with_the_core_first_and_each_with_what_it_is_about() {
    let pages = [
        ("build", page("\n# How to build\n- cargo build", ChangedBy::Consolidation)),
        ("core", page("- The user likes tea.", ChangedBy::Person)),
    ];

    let lines = listing(&pages).lines();

    let when = format_moment(MOMENT);
    assert_eq!(
        lines,
        [
            "agent-a: 2 pages".to_owned(),
            "PAGE   VERSIONS  LAST CHANGE       BY                 BYTES  FIRST LINE".to_owned(),
            format!("core          2  {when:<16}  person                21  The user likes tea."),
            format!("build         2  {when:<16}  consolidation         29  How to build"),
            "no new items; pages are updated at 20 items".to_owned(),
            "as files: /home/me/.longhaul/memory/agent-a".to_owned(),
        ]
    );
}

#[test]
fn a_memory_without_pages_names_the_others_and_what_waits() {
    let mut listing = listing(&[]);
    listing.others = BTreeSet::from(["agent-b".to_owned(), "project-c-12345678".to_owned()]);
    listing.waiting = 3;

    assert_eq!(
        listing.lines(),
        [
            "No pages in agent-a yet.",
            "other memories (see with --scope NAME): agent-b, project-c-12345678",
            "3 new items not in a page yet; pages are updated at 20 items",
        ]
    );
}

/// Y1, Y8: what is off is said.
#[test]
fn a_memory_that_is_off_says_so() {
    let mut listing = listing(&[]);
    listing.settings.consolidate_at_items = 0;
    assert!(listing.lines()[1].ends_with("off (memory.consolidate_at_items is 0)"), "{:?}", listing.lines());

    listing.settings.extract_at_tokens = 0;
    assert!(listing.lines()[1].ends_with("off (memory.extract_at_tokens is 0)"), "{:?}", listing.lines());
}

/// Pages hold words from anywhere.
#[test]
fn what_stands_in_a_page_can_not_drive_a_terminal() {
    let mut listing = listing(&[("core", page("# a\u{1b}[2J\u{202e}", ChangedBy::Note))]);
    listing.left = vec!["core.md\u{7} was changed".to_owned()];

    let lines = listing.lines().join("");

    assert!(!lines.chars().any(|character| character.is_control() || character == '\u{202e}'), "{lines:?}");
}

/// Y9
#[test]
fn a_change_is_shown_with_who_why_and_what_was_not_taken() {
    let entry = PageLogEntry {
        seq: 9,
        at: MOMENT,
        by: ChangedBy::Consolidation,
        reason: "12 items of 2 sessions".to_owned(),
        pages: vec![
            ("core".to_owned(), "the user moved".to_owned(), 2),
            ("build".to_owned(), String::new(), 1),
            ("old".to_owned(), String::new(), 0),
        ],
        refused: (1..=7).map(|number| format!("page {number} was too long")).collect(),
        undoes: None,
        cost: Some(0.01234),
    };

    let lines = log_lines(&[entry]);

    let first = format!("     9  {}  consolidation: core, build, old, $0.0123", format_moment(MOMENT));
    assert_eq!(
        lines,
        [
            first.as_str(),
            "        12 items of 2 sessions",
            "        core: the user moved (from 2 items)",
            "        build (from 1 item)",
            "        rejected: page 1 was too long",
            "        rejected: page 2 was too long",
            "        rejected: page 3 was too long",
            "        rejected: page 4 was too long",
            "        rejected: page 5 was too long",
            "        and 2 more rejected",
        ]
    );
}

/// Y9
#[test]
fn an_undo_names_what_it_takes_back() {
    let entry = PageLogEntry {
        seq: 10,
        at: MOMENT,
        by: ChangedBy::Undo,
        reason: String::new(),
        pages: vec![("core".to_owned(), String::new(), 0)],
        refused: vec![],
        undoes: Some(9),
        cost: None,
    };

    assert_eq!(PageChangeReport::from(&entry).undoes, Some(9));
    let line = format!("    10  {}  undo: core, undoes 9", format_moment(MOMENT));
    assert_eq!(log_lines(&[entry]), [line]);
}

#[test]
fn what_is_found_says_where_it_is_and_whose_words_it_is() {
    let session = SessionId::from_bits(7);
    let found = |place, sources: &[u64]| RecallHit {
        place,
        speaker: Speaker::Untrusted,
        at: MOMENT,
        excerpt: " delete\nall ".to_owned(),
        sources: sources.to_vec(),
        request: None,
    };
    let hit = |found, key: Option<&str>| MemoryHit { found, key: key.map(str::to_owned) };

    let lines = hit_lines(&[
        hit(found(RecallPlace::Page("core".to_owned()), &[]), None),
        hit(found(RecallPlace::Item { session, seq: 1, item: 0 }, &[3, 4, 5, 6, 7, 8]), Some("a")),
        hit(found(RecallPlace::Record { session, seq: 12 }, &[]), Some("a")),
    ]);

    let when = format!("(untrusted, {})", format_moment(MOMENT));
    assert_eq!(
        lines,
        [
            format!("page core  {when}"),
            "    delete all".to_owned(),
            format!("item from a, entries 3, 4, 5, 6, 7, …  {when}"),
            "    delete all".to_owned(),
            format!("entry 12 of a  {when}"),
            "    delete all".to_owned(),
        ]
    );
}
