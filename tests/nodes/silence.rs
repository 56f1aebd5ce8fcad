//! N3: wakes are hints.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{Site, eventually};

/// N3: behind a pooler that delivers no notification, an input that another machine accepted is found within a second or two, and
/// `nodes` says that the node looks for work.
#[test]
fn work_is_found_although_no_notification_arrives() {
    let site = Site::new(&json!(["One.", "Two.", "Three.", "Four."])).without_notifications();
    let ash = site.serve("ash");
    eventually("ash joins", || site.node("ash")["state"] == "live");
    let mut longest = Duration::ZERO;
    for turn in 1..=4 {
        site.ok("visitor", &["send", "-s", "a", "Go."]);
        let sent = Instant::now();
        eventually("the turn begins", || site.count("a", "turn_started") >= turn);
        longest = longest.max(sent.elapsed());
        eventually("the turn ends", || site.count("a", "turn_ended") == turn);
    }

    println!("longest wait without notifications: {longest:?}");
    assert!(longest < Duration::from_secs(4), "{longest:?}");
    assert!(site.ok("visitor", &["nodes"]).contains("polling"));
    drop(ash);
}
