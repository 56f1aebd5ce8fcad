//! P1, P2: someone changes things at the worst moment, again and again.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::workplace::{SECRET, Workplace};

const ROUNDS: usize = 300;

/// Does something over and over on a thread of its own, until it is dropped.
struct Mischief {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Mischief {
    fn start(act: impl Fn() + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                act();
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Mischief {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Swaps `work/swapped`, a folder, for a link to the outside, and back.
fn swapping(place: &Workplace) -> Mischief {
    place.put("swapped/secret.txt", "harmless");
    let (folder, aside) = (place.path("swapped"), place.path("aside"));
    symlink(place.outside(), &aside).unwrap();
    Mischief::start(move || {
        renameat_with(CWD, &folder, CWD, &aside, RenameFlags::EXCHANGE).unwrap();
        std::thread::yield_now();
    })
}

/// P1
#[tokio::test]
async fn a_folder_that_is_swapped_for_a_link_leads_no_read_to_the_outside() {
    let place = Workplace::new();
    let mischief = swapping(&place);

    let mut worked = 0;
    for _ in 0..ROUNDS {
        let calls = [
            ("read_file", json!({ "path": "swapped/secret.txt" })),
            ("search_text", json!({ "pattern": "e", "path": "swapped" })),
            ("search_text", json!({ "pattern": "e" })),
            ("list_files", json!({ "path": "swapped" })),
        ];
        for (tool, arguments) in calls {
            let finished = place.call(tool, arguments).await;
            assert!(!finished.content.contains(SECRET), "{tool}: {}", finished.content);
            // The outside file is longer than the harmless one.
            assert!(!finished.content.contains("(25 bytes)"), "{tool}: {}", finished.content);
            worked += usize::from(!finished.is_error);
        }
    }
    drop(mischief);

    assert!(worked > 0);
    assert_eq!(SECRET.len(), 25);
}

/// P1
#[tokio::test]
async fn a_folder_that_is_swapped_for_a_link_leads_no_write_to_the_outside() {
    let place = Workplace::new();
    let mischief = swapping(&place);

    let (mut worked, mut round) = (0, 0);
    let since = Instant::now();
    // While the swapping thread does not run, it may be a link for all rounds.
    while round < ROUNDS || worked == 0 && since.elapsed() < Duration::from_secs(60) {
        round += 1;
        let finished = place.write("swapped/secret.txt", &format!("round {round}")).await;
        worked += usize::from(!finished.is_error);
        place.write(&format!("swapped/new-{round}.txt"), "new").await;
        let edits = json!([{ "old": "r", "new": "rr" }]);
        place.call("edit_file", json!({ "path": "swapped/secret.txt", "edits": edits })).await;
    }
    drop(mischief);

    assert!(worked > 0);
    assert_eq!(fs::read_to_string(place.outside().join("secret.txt")).unwrap(), SECRET);
    assert_eq!(place.names(&place.outside()), ["secret.txt"]);
}

/// P1: a command of a session in the folder above can do this.
#[tokio::test]
async fn a_work_folder_that_is_swapped_for_a_link_leads_nothing_to_the_outside() {
    let place = Workplace::new();
    place.put("secret.txt", "harmless");
    let (work, aside) = (place.work(), place.root.join("aside"));
    symlink(place.outside(), &aside).unwrap();
    let mischief = Mischief::start(move || {
        renameat_with(CWD, &work, CWD, &aside, RenameFlags::EXCHANGE).unwrap();
        std::thread::yield_now();
    });

    let (mut worked, mut round) = (0, 0);
    let since = Instant::now();
    while round < ROUNDS || worked == 0 && since.elapsed() < Duration::from_secs(60) {
        round += 1;
        let calls = [
            ("read_file", json!({ "path": "secret.txt" })),
            ("search_text", json!({ "pattern": "e" })),
            ("find_files", json!({ "pattern": "**" })),
            ("list_files", json!({})),
            ("write_file", json!({ "path": format!("new-{round}.txt"), "content": "new" })),
        ];
        for (tool, arguments) in calls {
            let finished = place.call(tool, arguments).await;
            assert!(!finished.content.contains(SECRET), "{tool}: {}", finished.content);
            assert!(!finished.content.contains("(25 bytes)"), "{tool}: {}", finished.content);
            worked += usize::from(!finished.is_error);
        }
    }
    drop(mischief);

    assert!(worked > 0);
    assert_eq!(place.names(&place.outside()), ["secret.txt"]);
}

/// P2: what someone else saves is replaced by an edit of it, or by their next version, and by nothing else.
#[tokio::test]
async fn a_change_that_someone_makes_meanwhile_is_never_written_over() {
    let place = Workplace::new();
    let path = place.put("version.txt", "0.");
    let aside = place.path("version.aside");
    let (other, versions) = (path.clone(), AtomicU64::new(0));
    // Saves one version after the other, the way an editor does: whole, beside it, then renamed over it.
    let mischief = Mischief::start(move || {
        let version = versions.fetch_add(1, Ordering::Relaxed) + 1;
        fs::write(&aside, format!("{version}.")).unwrap();
        fs::rename(&aside, &other).unwrap();
        std::thread::sleep(Duration::from_micros(version % 7 * 300));
    });

    let (mut newest, mut worked) = (0, 0);
    for _ in 0..ROUNDS {
        let text = fs::read_to_string(&path).unwrap();
        let version: u64 = text.trim_end_matches(['.', '+']).parse().unwrap();
        assert!(version >= newest, "{version} came after {newest}");
        newest = version;
        let edits = json!([{ "old": format!("{version}."), "new": format!("{version}.+") }]);
        let finished = place.call("edit_file", json!({ "path": "version.txt", "edits": edits })).await;
        worked += usize::from(!finished.is_error);
    }
    drop(mischief);

    eprintln!("{worked} of {ROUNDS} edits were made");
    let left: Vec<_> =
        place.names(&place.work()).into_iter().filter(|name| name.contains("longhaul")).collect();
    assert_eq!(left, Vec::<String>::new());
}
