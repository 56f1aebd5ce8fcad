//! Kills the orphans of a command whose keeper died.
//!
//! Orphans are recognised by the mark in their environment, by the session of their keeper, or by the process group
//! of their command. The system does not reuse the number of a session or a group while a process is in it, but may
//! reuse it later. So a process that started before the keeper is spared. If another process has the keeper's or the
//! command's pid by now, all of that session or group are spared.

use std::fs;
use std::time::{Duration, Instant};

use longhaul_protocol::TaskId;
use rustix::process::{Signal, getpid};

use crate::format::{MARK, Process};
use crate::liveness::RecordedProcesses;
use crate::process_table::{self, Entry};

/// How long to repeat the killing. A process that survives this is one that this user may not kill.
const ORPHAN_KILL_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

/// Kills every process of a task whose keeper is dead. Returns true if none is left. It repeats, because a process
/// may fork meanwhile.
pub(crate) fn kill_orphans(id: TaskId, recorded: RecordedProcesses) -> bool {
    let since = Instant::now();
    loop {
        let left = find_orphans(id, recorded);
        for entry in &left {
            process_table::send(entry, Signal::KILL);
        }
        if left.is_empty() || since.elapsed() > ORPHAN_KILL_TIMEOUT {
            return left.is_empty();
        }
        std::thread::sleep(PAUSE);
    }
}

fn find_orphans(id: TaskId, recorded: RecordedProcesses) -> Vec<Entry> {
    let mark = format!("{MARK}={id}").into_bytes();
    let carries_mark = |entry: &Entry| {
        fs::read(format!("/proc/{}/environ", entry.pid.as_raw_nonzero()))
            .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|variable| variable == mark))
    };
    let all = process_table::all();
    let keeper = recorded.keeper.filter(|keeper| !is_pid_reused(&all, *keeper));
    let command = recorded.command.filter(|command| !is_pid_reused(&all, *command));
    let belongs = |entry: &Entry, process: Option<Process>, number: i32| {
        process.is_some_and(|process| process.pid == number && process.start_time <= entry.start_time)
    };
    let is_orphan = |entry: &Entry| {
        !entry.is_over
            && entry.pid != getpid()
            && (belongs(entry, keeper, entry.session)
                || belongs(entry, command, entry.group)
                || carries_mark(entry))
    };
    all.iter().filter(|entry| is_orphan(entry)).copied().collect()
}

/// Whether another process has the pid of this one by now.
fn is_pid_reused(all: &[Entry], process: Process) -> bool {
    all.iter().any(|entry| {
        entry.pid.as_raw_nonzero().get() == process.pid && entry.start_time != process.start_time
    })
}
