//! The text of an answer that a kill cuts off.

use longhaul_protocol::SessionRecord;
use longhaul_testkit::SeededRandom;
use rustix::process::Signal;
use serde_json::json;

use crate::{Desk, eventually};

/// Text that is shown and not yet on disk has at most so many bytes, and the piece that made it so many.
const CHECKPOINT_BYTES: usize = 2 << 10;

/// The text of the answer that is on disk.
fn kept(desk: &Desk) -> String {
    let text = |record| match SessionRecord::decode(record).unwrap() {
        SessionRecord::Checkpoint(checkpoint) => Some(checkpoint.text),
        _ => None,
    };
    desk.records().iter().filter_map(text).collect()
}

/// An answer in which every place is different.
fn numbered(words: usize) -> String {
    (0..words).map(|number| format!("word-{number} ")).collect()
}

/// M10: what is on disk after a kill is a prefix of what was shown, at most 2 KiB behind it.
#[test]
fn after_a_kill_the_text_on_disk_is_a_prefix_at_most_two_kibibytes_behind() {
    let mut chance = SeededRandom::new();
    let text = numbered(4_000);
    for _ in 0..4 {
        let desk = Desk::new(&json!([{"text": text, "piece_ms": 1}]));
        desk.send("go");
        let serving = desk.serve();
        let enough = 5_000 + chance.below(4_000) as usize;
        let (mut shown, mut longest) = (String::new(), 0);
        while shown.len() < enough {
            let (_, event) = serving.wait_for("text_delta");
            let delta = event["text"].as_str().unwrap();
            longest = longest.max(delta.len());
            shown += delta;
        }

        serving.end(Signal::KILL);

        let kept = kept(&desk);
        assert!(text.starts_with(&shown));
        assert!(text.starts_with(&kept), "{kept}");
        let behind = shown.len().saturating_sub(kept.len());
        assert!(behind <= CHECKPOINT_BYTES + longest, "{behind} bytes of {} are lost", shown.len());
        desk.sound_records();
    }
}

/// M10: text that comes slowly is saved after a second, long before it is 2 KiB.
#[test]
fn slow_text_is_on_disk_without_filling_a_checkpoint() {
    let text = numbered(60);
    let desk = Desk::new(&json!([{"text": text, "piece_ms": 250}]));
    desk.send("go");
    let serving = desk.serve();
    let (_, first) = serving.wait_for("text_delta");

    eventually("the first words are on disk", || !kept(&desk).is_empty());
    serving.end(Signal::KILL);

    let kept = kept(&desk);
    assert!(text.starts_with(&kept) && kept.len() < CHECKPOINT_BYTES, "{kept}");
    assert!(kept.starts_with(first["text"].as_str().unwrap()), "{kept}");
    desk.sound_records();
}
