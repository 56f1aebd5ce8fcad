//! What the model reads of a command: one JSON object, with as much of the output as it gets to read.

use std::ops::Range;

use longhaul_keeper::{Output, Status};
use longhaul_protocol::{CallId, TaskStatus};
use serde::Serialize;

use super::Watch;
use crate::cap::{Missing, shorten};
use crate::{Cap, Finished, plain, shown};

/// How much of an output is kept for reading on, in bytes of plain text.
const WHOLE: usize = 1 << 20;
/// The line that says what is missing in the middle needs some room, too.
const LONGEST_MARKER: usize = 128;
/// An output that is cut is cut at the end of a line, if there is one within this.
const LONGEST_LINE: usize = 4096;

pub(super) const UNKNOWN: &str = "the command may or may not have started: its keeper died in that moment. Look at what it \
                                  would have changed before you run it again";
const LOST: &str =
    "the process that kept this command died, and the command with it; how far it came is not known";

/// How a command is when it doesn't run any more.
#[derive(Debug)]
pub(super) enum Over {
    Ended(Status),
    /// Its keeper died while it ran.
    Lost,
    /// Its keeper died while it was starting it.
    Unknown,
}

/// The fields of a result, in this order.
#[derive(Serialize)]
struct CommandResult {
    status: TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl CommandResult {
    fn new(status: TaskStatus) -> Self {
        Self { status, output: None, exit_code: None, duration_ms: None, message: None }
    }

    fn encode(&self) -> String {
        serde_json::to_string(self).expect("it has string keys and no fallible parts")
    }
}

/// The result of a command that doesn't run any more. Reads its output, so it blocks.
pub(super) fn finished(watch: &Watch, over: &Over) -> Finished {
    let status = match over {
        Over::Ended(status) => status,
        Over::Lost => return lost(watch, LOST),
        Over::Unknown => return lost(watch, UNKNOWN),
    };
    match status.never_started() {
        Some(reason) => Finished::error(format!("the command did not start: {reason}")),
        None => ended(watch, status),
    }
}

fn ended(watch: &Watch, status: &Status) -> Finished {
    let how = match (status.status, watch.max_runtime) {
        (TaskStatus::TimedOut, Some(seconds)) => {
            Some(format!("it was ended because it ran longer than `max_runtime` ({seconds} s)"))
        }
        (TaskStatus::Killed, _) if status.message.is_none() => Some("it was stopped".to_owned()),
        _ => None,
    };
    let said = [how, status.message.clone(), watch.note.clone()];
    let result = CommandResult {
        exit_code: status.exit_code,
        duration_ms: Some(status.duration_ms),
        ..CommandResult::new(status.status)
    };
    with_output(watch, result, said)
}

fn lost(watch: &Watch, why: &str) -> Finished {
    let said = [Some(why.to_owned()), watch.note.clone(), None];
    with_output(watch, CommandResult::new(TaskStatus::Lost), said)
}

/// Puts into a result what is to be said and what was printed.
fn with_output(watch: &Watch, mut result: CommandResult, said: [Option<String>; 3]) -> Finished {
    let mut said: Vec<String> = said.into_iter().flatten().collect();
    let text = match watch.tasks.output(watch.id()).and_then(|output| text_of(&output)) {
        Ok(text) => text,
        Err(error) => {
            said.push(format!("its output can't be read: {error}"));
            Text::default()
        }
    };
    result.message = (!said.is_empty()).then(|| said.join("; "));
    within(watch.cap, result, &text, watch.call)
}

/// The whole as one JSON object that stays within the cap, escapes and all. Where there is no room for everything, the
/// output is shortened first, then what else there is to say, and last of all fields are left out.
fn within(cap: Cap, mut result: CommandResult, text: &Text, call: CallId) -> Finished {
    result.output = Some(text.text.clone());
    let content = result.encode();
    if content.len() <= cap.bytes && text.text.lines().count() <= cap.lines {
        return Finished::ok(content);
    }
    let whole = shorten(&text.text, Cap { lines: usize::MAX, bytes: WHOLE }, |missing| {
        format!("[… {} were not kept …]", text.with_dropped(missing))
    });
    let whole = Some(whole.unwrap_or_else(|| text.text.clone()).into_bytes());
    let finished = |content| Finished { content, whole, ..Finished::default() };

    if let Some(message) = &mut result.message {
        let fits = |bytes| escaped(shown::cut(message, bytes)) <= cap.bytes / 2;
        let bytes = largest_that_fits(message.len(), fits);
        message.truncate(message.floor_char_boundary(bytes));
    }
    result.output = Some(String::new());
    if let Some(room) = cap.bytes.checked_sub(result.encode().len()) {
        result.output = Some(text.shown_within(Cap { bytes: room, ..cap }, call));
        return finished(result.encode());
    }
    for leave_out in [
        (|result| result.message = None) as fn(&mut CommandResult),
        |result| result.duration_ms = None,
        |result| result.output = None,
        |result| result.exit_code = None,
    ] {
        leave_out(&mut result);
        if result.encode().len() <= cap.bytes {
            break;
        }
    }
    finished(result.encode())
}

/// How many bytes a text has as a JSON string, without the quotes around it.
fn escaped(text: &str) -> usize {
    serde_json::to_string(text).map_or(usize::MAX, |text| text.len() - 2)
}

/// The largest number up to this that fits, if a smaller one always fits better; 0 always does.
fn largest_that_fits(most: usize, fits: impl Fn(usize) -> bool) -> usize {
    if fits(most) {
        return most;
    }
    let (mut fitting, mut too_large) = (0, most);
    while too_large - fitting > 1 {
        let between = fitting.midpoint(too_large);
        *if fits(between) { &mut fitting } else { &mut too_large } = between;
    }
    fitting
}

/// What was printed, as far as it is of use.
#[derive(Default)]
struct Text {
    text: String,
    gaps: Vec<Gap>,
}

/// A line of the text that stands for bytes that were not kept.
struct Gap {
    line: Range<usize>,
    bytes: u64,
}

impl Text {
    /// Head and tail, which have room as they are escaped.
    fn shown_within(&self, cap: Cap, call: CallId) -> String {
        let shown = |bytes| {
            let marker = |missing: &Missing| self.with_dropped(missing).marker(call);
            shorten(&self.text, Cap { bytes, ..cap }, marker).unwrap_or_else(|| self.text.clone())
        };
        shown(largest_that_fits(cap.bytes, |bytes| escaped(&shown(bytes)) <= cap.bytes))
    }

    /// The same with what the keeper had dropped in that place before. Of that nobody has counted the lines.
    fn with_dropped(&self, missing: &Missing) -> Missing {
        let is_within =
            |gap: &&Gap| missing.place.start <= gap.line.start && gap.line.end <= missing.place.end;
        let bytes = self.gaps.iter().filter(is_within).fold(missing.bytes, |bytes, gap| {
            // The line itself was not printed.
            bytes.saturating_sub(gap.line.len() as u64) + gap.bytes
        });
        let lines = missing.lines.filter(|_| self.gaps.is_empty());
        Missing { lines, bytes, ..missing.clone() }
    }
}

/// Head and tail of an output, as plain text. Never more in memory than what may be kept of it.
fn text_of(output: &Output) -> longhaul_keeper::Result<Text> {
    let printed = output.printed()?;
    let half = (WHOLE - LONGEST_MARKER) as u64 / 2;
    let (head_end, tail_start) =
        if printed <= 2 * half { (printed, printed) } else { (half, printed - half) };
    let mut pieces = Pieces::default();
    for (from, to) in [(0, head_end), (tail_start, printed)] {
        // What was dropped may reach into the tail, and then reading the head went on there.
        let mut next = from.max(pieces.next);
        while next < to {
            let limit = usize::try_from(to - next).unwrap_or(WHOLE);
            let chunk = output.read(next, limit)?;
            if chunk.next == next {
                break;
            }
            pieces.add(chunk.next - chunk.bytes.len() as u64, &chunk.bytes);
            next = chunk.next;
        }
    }
    Ok(pieces.into_text())
}

/// Parts of an output that may have gaps between them.
#[derive(Default)]
struct Pieces {
    text: Text,
    /// The part that is being collected: a character or a colour may go on in the next read.
    part: Vec<u8>,
    next: u64,
}

impl Pieces {
    fn add(&mut self, offset: u64, bytes: &[u8]) {
        let gap = offset.saturating_sub(self.next);
        if gap > 0 {
            self.part.truncate(whole_lines_before_cut(&self.part));
            self.close_part();
            let begins = self.text.text.len();
            self.text.text.push_str(&format!("[… {gap} bytes were not kept …]\n"));
            self.text.gaps.push(Gap { line: begins..self.text.text.len(), bytes: gap });
            self.part.extend_from_slice(&bytes[cut_line_at_start(bytes)..]);
        } else {
            self.part.extend_from_slice(bytes);
        }
        self.next = offset + bytes.len() as u64;
    }

    fn close_part(&mut self) {
        let part = plain(&std::mem::take(&mut self.part));
        self.text.text.push_str(&part);
        if !part.is_empty() && !part.ends_with('\n') {
            self.text.text.push('\n');
        }
    }

    fn into_text(mut self) -> Text {
        self.text.text.push_str(&plain(&self.part));
        self.text
    }
}

/// How much is left of a part that was cut off at its end: whole lines, or else whole characters.
fn whole_lines_before_cut(part: &[u8]) -> usize {
    let near_end = part.len().saturating_sub(LONGEST_LINE);
    if let Some(end) = part[near_end..].iter().rposition(|byte| *byte == b'\n') {
        return near_end + end + 1;
    }
    let is_start = |byte: &u8| byte & 0b1100_0000 != 0b1000_0000;
    let last = part.iter().rposition(is_start).unwrap_or(0);
    if str::from_utf8(&part[last..]).is_ok() { part.len() } else { last }
}

/// How much of a part that was cut off at its start does not belong to a whole line, or else to a whole character.
fn cut_line_at_start(part: &[u8]) -> usize {
    let near_start = &part[..part.len().min(LONGEST_LINE)];
    match near_start.iter().position(|byte| *byte == b'\n') {
        Some(end) if end + 1 < part.len() => end + 1,
        _ => near_start.iter().take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).take(3).count(),
    }
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
