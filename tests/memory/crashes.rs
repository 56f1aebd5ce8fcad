//! `kill -9` of a process that goes through sessions and puts pages in order.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::{Duration, Instant};

use longhaul_journal::{Journal, Page};
use longhaul_protocol::{ExtractRecord, MemoryRecord, StreamName};
use serde_json::{Value, json};

use super::{Desk, SAID, extracted};

const KEYS: [&str; 4] = ["a", "b", "c", "d"];
/// How long a process lives, in milliseconds: from the first check on, and through everything that follows.
const LIVES: [u64; 5] = [2_100, 2_400, 2_700, 3_100, 3_600];

/// What the extracts of each session cover.
type Ranges = Vec<Vec<(u64, u64)>>;

/// Answers that take their time.
fn slowly(mut answer: Value) -> Value {
    answer["wait_ms"] = json!(250);
    answer
}

fn desk() -> Desk {
    let line = "# Tea\n- The user likes tea\n";
    let pages = json!([{"page": "tea", "text": line, "reason": "new", "items": [1]}]);
    let pages = json!({"calls": [{"name": "write_pages", "arguments": {"pages": pages}}]});
    let desk = Desk::new(&json!(["Hello.", slowly(extracted("The user likes tea.", SAID)), slowly(pages)]));
    desk.configure("[memory]\ncheck_interval_s = 1\nextract_min_tokens = 0\nconsolidate_at_items = 2\n");
    for key in KEYS {
        assert_eq!(desk.run(&["run", "-s", key, "I like tea"]).0, 0);
    }
    desk
}

/// Whether every session is gone through, and too few items wait for pages.
fn is_settled(desk: &Desk) -> bool {
    let is_through = |key: &&str| {
        let memory = &desk.json(&["status", "-s", key, "--json"])["memory"];
        memory["extracted_through"] == memory["records"]
    };
    KEYS.iter().all(is_through) && desk.json(&["memory", "--json"])["waiting"].as_u64().unwrap() < 2
}

/// What extracts cover, and what of them pages have read, each in its order.
fn remembered(desk: &Desk) -> (Ranges, Vec<(String, u64)>) {
    desk.with_journal(|journal| async move {
        let (mut ranges, mut read) = (Vec::new(), Vec::new());
        let mut before: BTreeMap<String, u64> = BTreeMap::new();
        for key in KEYS {
            let id = journal.session(key).await.unwrap().unwrap().id;
            let records = journal.read(&StreamName::extract(id), 1, Page::default()).await.unwrap();
            let range = |record| match ExtractRecord::decode(record).unwrap() {
                ExtractRecord::Extracted(extracted) => (extracted.from, extracted.through),
                ExtractRecord::ExtractionFailed(_) | ExtractRecord::Unknown { .. } => {
                    panic!("nobody writes anything else")
                }
            };
            ranges.push(records.iter().map(range).collect());
        }
        let of_memory = |stream: &StreamName| stream.as_str().starts_with("memory/");
        for stream in journal.streams().await.unwrap().into_iter().filter(of_memory) {
            for record in journal.read(&stream, 1, Page::default()).await.unwrap() {
                let Ok(MemoryRecord::PagesChanged(changed)) = MemoryRecord::decode(&record) else { continue };
                for source in changed.extracts {
                    let session = source.session.to_string();
                    let from = before.insert(session.clone(), source.through).unwrap_or(0);
                    read.extend((from + 1..=source.through).map(|seq| (session.clone(), seq)));
                }
            }
        }
        (ranges, read)
    })
}

/// Y6, Y8: nothing is gone through twice or left out, and no item is read twice, wherever it dies.
#[test]
fn a_process_that_is_killed_loses_and_doubles_nothing() {
    let desk = desk();
    for life in LIVES {
        let mut serving = desk.command(&["serve", "--no-http"]).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(life));
        serving.kill().unwrap();
        serving.wait().unwrap();
    }
    let mut serving = desk.command(&["serve", "--no-http"]).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !is_settled(&desk) {
        assert!(begun.elapsed() < Duration::from_secs(120), "it does not come to an end");
        std::thread::sleep(Duration::from_millis(200));
    }
    serving.kill().unwrap();
    serving.wait().unwrap();

    let (ranges, read) = remembered(&desk);
    for (key, ranges) in KEYS.iter().zip(ranges) {
        let records = desk.json(&["sessions", "show", key, "--json"])["records"].as_u64().unwrap();
        assert_eq!(ranges, [(1, records)], "{key}");
    }
    assert_eq!(read.iter().collect::<BTreeSet<_>>().len(), read.len(), "{read:?}");
    assert!(read.len() > 2, "{read:?}");
    assert!(desk.run(&["memory", "show", "tea"]).1.contains("The user likes tea"));
    assert_eq!(desk.run(&["verify"]).0, 0);
}
