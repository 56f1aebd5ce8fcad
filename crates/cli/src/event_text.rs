//! Texts about sessions and tasks that several commands print. What happens in a turn is rendered by the crate `transcript`.

use std::ops::Range;

use longhaul_journal::ImportMark;

use crate::output::format_number;

/// Where an imported session came from, and how much of it belongs to another user. None for a session that began here.
pub(crate) fn imported(mark: &ImportMark) -> Option<String> {
    match (mark.seq, mark.foreign_through) {
        (0, _) => None,
        (_, 0) => Some("from a file, as your own session".to_owned()),
        (_, last) => {
            Some(format!("from a file; entries up to {} are from another user", format_number(last)))
        }
    }
}

/// A part of a task's output that was not kept.
pub(crate) fn dropped(range: &Range<u64>) -> String {
    let (bytes, from) = (format_number(range.end - range.start), format_number(range.start));
    format!("[{bytes} bytes dropped here, from byte {from}]")
}

/// The warning that commands can't be confined to the scope on this system.
pub(crate) fn not_enforced(why: &str) -> String {
    format!("commands can't be sandboxed here; sandbox.unavailable sets what happens to them. {why}")
}
