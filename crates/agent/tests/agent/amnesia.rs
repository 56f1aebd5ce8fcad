//! No amnesia, measured: two hundred turns with a model whose summaries are poor, and nothing of forty things is lost. What must be
//! kept is kept by the runtime, not by whoever writes the summaries.

mod forgetful;
mod plan;

use std::collections::HashMap;
use std::path::Path;

use forgetful::Forgetful;
use longhaul_model::Request;
use longhaul_protocol::{
    Block, CallId, CompactedBy, EpochReason, EventKind, Item, Outcome, Record, SessionRecord, Summary,
    TodoStatus,
};
use longhaul_testkit::{RecordingModel, TestHome, collect_until};
use plan::{FIRST_REQUEST, Kind, TURNS, Thing, WITHDRAWN};

use crate::compaction::{config, is_summary, open, ranges, texts};
use crate::sound_records;

/// So many tokens the model has room for.
const WINDOW: u64 = 16_000;
/// At least so many compactions make it a test of them.
const LEAST: usize = 8;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compaction.md");
const BEGIN: &str = "<!-- The table is made by a test: UPDATE_DOCS=1 cargo test -p longhaul-agent docs -->\n";
const END: &str = "<!-- The end of the table. -->\n";

/// What was measured.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    steps: usize,
    compactions: usize,
    stubbed: usize,
    calls: usize,
    directives: usize,
    files: usize,
    facts_in_last: usize,
    found: usize,
    found_first: usize,
}

impl Report {
    /// As `docs/compaction.md` has it.
    fn table(&self) -> String {
        let Self { steps, compactions, stubbed, calls, .. } = self;
        let rows = [
            ("turns", format!("{TURNS}")),
            ("model calls", format!("{calls}: {steps} steps, {compactions} summaries")),
            ("compactions", format!("{compactions}, none failed; {stubbed} more epochs by stubs alone")),
            (
                "in the last request, word for word",
                format!(
                    "the first request, {} of 11 directives that hold, the todo list, {} of 8 changed files, the task that runs",
                    self.directives, self.files
                ),
            ),
            ("facts that the last request has", format!("{} of 16", self.facts_in_last)),
            (
                "found by `recall` within three hits",
                format!("{} of 40, {} of them first", self.found, self.found_first),
            ),
        ];
        let rows = rows.iter().map(|(what, value)| format!("| {what} | {value} |\n"));
        format!("| | |\n| --- | --- |\n{}", rows.collect::<String>())
    }
}

/// C3, C4, C10, T5: a session of two hundred turns is made smaller again and again, and its model writes poor summaries. What is pinned is in the last
/// request, directives are in every summary since they were given, and all else is found by a few of its words. The page says how much.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_turns_lose_nothing_and_the_docs_say_so() {
    let place = TestHome::in_memory();
    (0..4).for_each(|number| {
        std::fs::write(place.work().join(format!("log-{number}.txt")), plan::log(number)).unwrap();
    });
    let things = plan::things();
    let model = RecordingModel::new(Forgetful { things: things.clone() });
    let runtime = open(config(&place, WINDOW), model.clone()).await;
    let session = runtime.session("long").await.unwrap();

    for turn in 1..=TURNS {
        let ended = session.send(plan::said_in(turn, &things)).await.unwrap();
        assert_eq!(ended.outcome, Outcome::Completed, "turn {turn}: {:?}", ended.error);
    }

    runtime.shutdown().await.unwrap();
    let requests = model.requests();
    let records = sound_records(&place, &session).await;
    let facts: Vec<SessionRecord> =
        records.iter().map(|record| SessionRecord::decode(record).unwrap()).collect();
    for (path, content) in plan::files() {
        assert_eq!(place.file(path), content, "{path}");
    }
    let mut report = Report { calls: requests.len(), ..Report::default() };
    count_the_calls(&facts, &requests, &mut report);
    the_chronicle_has_no_gap(&records);
    no_directive_was_ever_dropped(&facts, &things);
    look_at_the_last_request(requests.last().unwrap(), &facts, &things, &mut report);
    look_for_everything(&facts, &things, &mut report);
    println!("{}", report.table());
    // How long the paths are moves the moment of a stub, so the page is held to one place.
    if place.home().starts_with("/dev/shm") {
        the_page_says(&report.table());
    }
}

/// Every call is a step or a summary, and a summary costs one.
fn count_the_calls(facts: &[SessionRecord], requests: &[Request], report: &mut Report) {
    let mut done = Vec::new();
    for fact in facts {
        match fact {
            SessionRecord::StepStarted(_) => report.steps += 1,
            SessionRecord::CompactDone(compacted) => done.push(compacted.by),
            SessionRecord::CompactFailed(failed) => panic!("a compaction failed: {}", failed.reason),
            SessionRecord::EpochStarted(epoch) if epoch.reason == EpochReason::Stubbed => report.stubbed += 1,
            _ => {}
        }
    }
    report.compactions = done.len();
    assert!(done.iter().all(|by| *by == CompactedBy::Model), "{done:?}");
    assert!(done.len() >= LEAST, "{}", done.len());
    assert_eq!(requests.iter().filter(|request| is_summary(request)).count(), done.len());
    assert_eq!(report.calls, report.steps + report.compactions);
}

fn the_chronicle_has_no_gap(records: &[Record]) {
    let ranges = ranges(records);
    assert_eq!(ranges[0].0, 1);
    assert!(ranges.windows(2).all(|pair| pair[1].0 == pair[0].1 + 1), "{ranges:?}");
}

/// Each summary has every directive of the one before it, but for the one that was withdrawn, which is told instead.
fn no_directive_was_ever_dropped(facts: &[SessionRecord], things: &[Thing]) {
    let summaries: Vec<&Summary> = facts
        .iter()
        .filter_map(|fact| match fact {
            SessionRecord::EpochStarted(epoch) => epoch.summary.as_deref(),
            _ => None,
        })
        .collect();
    let is_withdrawal = |directive: &String| directive.contains(WITHDRAWN.trim_end_matches('.'));
    for pair in summaries.windows(2) {
        let [before, after] = pair else { unreachable!("they are pairs") };
        let gone = before.directives.iter().filter(|directive| !after.directives.contains(directive));
        assert!(gone.clone().all(is_withdrawal), "{gone:?}");
    }
    let last = summaries.last().unwrap();
    assert!(summaries.iter().any(|summary| summary.directives.iter().any(is_withdrawal)));
    assert!(!last.directives.iter().any(is_withdrawal), "{:?}", last.directives);
    assert!(last.decisions.iter().any(is_withdrawal), "{:?}", last.decisions);
    let all: Vec<&str> = things
        .iter()
        .filter(|thing| thing.kind == Kind::Directive && thing.said != WITHDRAWN)
        .map(|thing| thing.said.as_str())
        .collect();
    let kept: Vec<&str> = last.directives.iter().map(String::as_str).collect();
    assert_eq!(kept, all[..kept.len()], "in the order in which they were given, and nothing besides");
    assert!(kept.len() + 1 >= all.len(), "at most the newest is not in a summary yet");
}

/// What is never summarised is there, word for word.
fn look_at_the_last_request(
    request: &Request,
    facts: &[SessionRecord],
    things: &[Thing],
    report: &mut Report,
) {
    let said = texts(request);
    let has = |words: &str| said.iter().any(|text| text.contains(words));
    assert!(has(&format!("[First request of this session, word for word]\n{FIRST_REQUEST}")), "{said:?}");
    report.directives = plan::directives().filter(|directive| has(directive)).count();
    let files = said
        .iter()
        .find(|text| text.starts_with("[Files changed in this session]"))
        .expect("they are pinned");
    report.files = plan::files().iter().filter(|(path, _)| files.lines().any(|line| line == *path)).count();
    let task = facts.iter().find_map(|fact| match fact {
        SessionRecord::TaskStarted(task) => Some(task),
        _ => None,
    });
    let task = task.expect("one runs");
    assert!(has(&format!("- {}: {}", task.task_id, plan::TASK)), "{said:?}");
    let todo =
        said.iter().find(|text| text.starts_with("[Session todo snapshot]")).expect("it is always there");
    for item in plan::plan(false).as_array().unwrap() {
        let status: TodoStatus = serde_json::from_value(item["status"].clone()).unwrap();
        let sign = match status {
            TodoStatus::Pending => " ",
            TodoStatus::InProgress => "~",
            TodoStatus::Done => "x",
        };
        let line = format!("- [{sign}] {}", item["text"].as_str().unwrap());
        assert!(todo.lines().any(|known| known == line), "{line}: {todo}");
    }
    // The results of the search are in it too, but not as somebody's words.
    let words: Vec<&str> = request
        .items
        .iter()
        .filter_map(|item| match &**item {
            Item::Text { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let in_words = |thing: &&Thing| words.iter().any(|text| text.contains(&thing.said));
    report.facts_in_last = things.iter().filter(|thing| thing.kind == Kind::Fact).filter(in_words).count();
    assert_eq!((report.directives, report.files), (11, 8), "{said:?}");
    assert!(report.facts_in_last < 8, "the summaries are poor, so that only searching helps");
}

/// C10: a few words of each are enough.
fn look_for_everything(facts: &[SessionRecord], things: &[Thing], report: &mut Report) {
    let results: HashMap<CallId, &str> = facts
        .iter()
        .filter_map(|fact| match fact {
            SessionRecord::ToolFinished(finished) => Some((finished.call, finished.content.as_str())),
            _ => None,
        })
        .collect();
    // They are reads, so they end in any order.
    let found: Vec<&str> = facts
        .iter()
        .filter_map(|fact| match fact {
            SessionRecord::Block(Block { item: Item::ToolCall { call, name, .. }, .. })
                if name == "recall" =>
            {
                results.get(call).copied()
            }
            _ => None,
        })
        .collect();
    assert_eq!(found.len(), things.len());
    for (thing, found) in things.iter().zip(found) {
        let place = found.lines().take(3).position(|hit| hit.starts_with('[') && hit.contains(thing.proof));
        assert!(place.is_some(), "{:?}: {found}", thing.said);
        report.found += 1;
        report.found_first += usize::from(place == Some(0));
    }
}

/// `docs/compaction.md` has these figures.
fn the_page_says(table: &str) {
    let path = Path::new(PAGE);
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let renewed = format!("{before}{BEGIN}\n{table}\n{END}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &renewed).unwrap();
    }

    let stored = std::fs::read_to_string(path).unwrap();

    assert!(
        stored == renewed,
        "docs/compaction.md has other figures; renew them with `UPDATE_DOCS=1 cargo test -p longhaul-agent docs`:\n{table}"
    );
}

/// The text between two marks of the page.
fn block(page: &str, opens: &str) -> String {
    let (_, rest) = page.split_once(opens).unwrap_or_else(|| panic!("the page has no {opens}"));
    rest.split_once("```").unwrap().0.to_owned()
}

/// C3: the example of the page, word for word but for how many tokens it takes, which is a matter of paths.
#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_the_docs_is_what_happens() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let place = TestHome::in_memory();
    let script = longhaul_model::ScriptedModel::from_json(&block(&page, "```json\n")).unwrap();
    let runtime = open(config(&place, 200_000), std::sync::Arc::new(script)).await;
    let session = runtime.session("a").await.unwrap();
    session.send("Count with me. Never skip a number.").await.unwrap();
    session.send("Go on.").await.unwrap();
    let mut watcher = session.watch();

    session.compact_with(Some("the numbers".to_owned())).await.unwrap().unwrap();

    let done = |kind: &EventKind| matches!(kind, EventKind::CompactDone { .. });
    let events = collect_until(&mut watcher, done).await;
    runtime.shutdown().await.unwrap();
    let of_compaction = events.iter().filter(|event| event.seq.is_some());
    let lines: String =
        of_compaction.map(|event| serde_json::to_string(&event.kind).unwrap() + "\n").collect();
    let tokens = |lines: &str| {
        let of_tokens = |line: &str| match line.split_once("\"before\":") {
            Some((begin, _)) => begin.to_owned(),
            None => line.to_owned(),
        };
        lines.lines().map(of_tokens).collect::<Vec<_>>()
    };
    assert_eq!(tokens(&block(&page, "```jsonl\n")), tokens(&lines));
}
