//! What a command left behind when its keeper died, and its end.
//!
//! It is known by the mark in its environment, by the session of its keeper, or by the group of its command. A session's and a
//! group's number is not given to anybody else as long as one process is in it; once all are gone it may be, so nobody is ended
//! who started before the keeper, nor if another process has that number by now.

use std::fs;
use std::time::{Duration, Instant};

use longhaul_protocol::TaskId;
use rustix::process::{Signal, getpid};

use crate::format::{MARK, Process};
use crate::holder::Recorded;
use crate::process_table::{self, Entry};

/// A process that is being ended goes within this, or it is one that we may not end.
const STRAYS_KILL_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

/// Ends every process of this task, of which the keeper is dead, and says whether none is left. New ones may be made while
/// it looks, so it looks until there is none.
pub(crate) fn end(id: TaskId, recorded: Recorded) -> bool {
    let since = Instant::now();
    loop {
        let left = left_of(id, recorded);
        for entry in &left {
            process_table::send(entry, Signal::KILL);
        }
        if left.is_empty() || since.elapsed() > STRAYS_KILL_TIMEOUT {
            return left.is_empty();
        }
        std::thread::sleep(PAUSE);
    }
}

fn left_of(id: TaskId, recorded: Recorded) -> Vec<Entry> {
    let mark = format!("{MARK}={id}").into_bytes();
    let carries_mark = |entry: &Entry| {
        fs::read(format!("/proc/{}/environ", entry.pid.as_raw_nonzero()))
            .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|variable| variable == mark))
    };
    let all = process_table::all();
    let keeper = recorded.keeper.filter(|keeper| !has_another(&all, *keeper));
    let command = recorded.command.filter(|command| !has_another(&all, *command));
    let belongs = |entry: &Entry, process: Option<Process>, number: i32| {
        process.is_some_and(|process| process.pid == number && process.start_time <= entry.start_time)
    };
    let is_stray = |entry: &Entry| {
        !entry.is_over
            && entry.pid != getpid()
            && (belongs(entry, keeper, entry.session)
                || belongs(entry, command, entry.group)
                || carries_mark(entry))
    };
    all.iter().filter(|entry| is_stray(entry)).copied().collect()
}

/// Whether the number of this process is that of another one by now.
fn has_another(all: &[Entry], process: Process) -> bool {
    all.iter().any(|entry| {
        entry.pid.as_raw_nonzero().get() == process.pid && entry.start_time != process.start_time
    })
}
