//! The processes in `/proc`.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process. Its start time distinguishes it from a later one with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) pid: Pid,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    pub(crate) start_time: u64,
    /// It is a zombie.
    pub(crate) is_over: bool,
    /// It is stopped (SIGSTOP).
    pub(crate) is_stopped: bool,
}

/// All visible processes.
pub(crate) fn all() -> Vec<Entry> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(look_up).collect()
}

/// The process with this pid.
pub(crate) fn look_up(number: i32) -> Option<Entry> {
    let pid = Pid::from_raw(number).filter(|_| number > 0)?;
    parse(pid, &fs::read_to_string(format!("/proc/{number}/stat")).ok()?)
}

/// Parses `/proc/PID/stat`. The program's name is in brackets, and may itself contain brackets.
fn parse(pid: Pid, stat: &str) -> Option<Entry> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    let start_time = fields.nth(15)?.parse().ok()?;
    let (is_over, is_stopped) = (matches!(state, "Z" | "X"), matches!(state, "T" | "t"));
    Some(Entry { pid, parent, group, session, start_time, is_over, is_stopped })
}

/// All descendants of this process, without the process itself.
pub(crate) fn descendants(of: Pid) -> Vec<Entry> {
    descendants_among(all(), vec![of.as_raw_nonzero().get()])
}

/// The descendants of these processes among all others, without the processes themselves.
pub(crate) fn descendants_among(mut others: Vec<Entry>, mut parents: Vec<i32>) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    while let Some(parent) = parents.pop() {
        let (children, rest): (Vec<Entry>, Vec<Entry>) =
            others.into_iter().partition(|entry| entry.parent == parent);
        parents.extend(children.iter().map(|entry| entry.pid.as_raw_nonzero().get()));
        found.extend(children);
        others = rest;
    }
    found
}

/// Sends a signal to exactly this process, never to a later one with its pid.
pub(crate) fn send(entry: &Entry, signal: Signal) {
    let Ok(handle) = pidfd_open(entry.pid, PidfdFlags::empty()) else { return };
    let now = look_up(entry.pid.as_raw_nonzero().get());
    if now.is_some_and(|now| now.start_time == entry.start_time) {
        let _ = pidfd_send_signal(handle, signal);
    }
}

#[cfg(test)]
#[path = "process_table_tests.rs"]
mod tests;
