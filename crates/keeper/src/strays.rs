//! What a command left behind when its keeper died: found by the mark in its environment, and ended.

use std::fs;
use std::time::{Duration, Instant};

use longhaul_protocol::TaskId;
use rustix::process::Signal;

use crate::format::MARK;
use crate::process_table::{self, Entry};

/// A process that is being ended goes within this, or it is one that we may not end.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

/// Ends every process that carries the mark of this task. New ones may be made while it looks, so it looks until none is left.
pub(crate) fn end(id: TaskId) {
    let since = Instant::now();
    loop {
        let marked = marked(id);
        for entry in &marked {
            process_table::send(entry, Signal::KILL);
        }
        if marked.is_empty() || since.elapsed() > PATIENCE {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

fn marked(id: TaskId) -> Vec<Entry> {
    let mark = format!("{MARK}={id}").into_bytes();
    let carries = |entry: &Entry| {
        fs::read(format!("/proc/{}/environ", entry.pid.as_raw_nonzero()))
            .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|variable| variable == mark))
    };
    process_table::all().into_iter().filter(|entry| !entry.is_over && carries(entry)).collect()
}
