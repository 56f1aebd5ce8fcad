//! What the model reads of a command: one JSON object, with as much of the output as it gets to read.

use longhaul_keeper::{Found, Output, Status};
use longhaul_protocol::TaskStatus;
use serde::Serialize;

use super::Watch;
use crate::cap::{Missing, shorten};
use crate::{Cap, Finished, plain};

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

/// The fields of a result, in this order.
#[derive(Serialize)]
struct CommandResult {
    status: TaskStatus,
    output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The result of a command that doesn't run any more. Reads its output, so it blocks.
pub(super) fn finished(watch: &Watch, found: &Found) -> Finished {
    match found {
        Found::Ended(status) => match status.never_started() {
            Some(reason) => Finished::error(format!("the command did not start: {reason}")),
            None => ended(watch, status),
        },
        Found::Lost => lost(watch, LOST),
        Found::Unknown => lost(watch, UNKNOWN),
        Found::NotStarted => Finished::error("the command did not start"),
        Found::Running(_) => Finished::error("the command still runs"),
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
        status: status.status,
        output: String::new(),
        exit_code: status.exit_code,
        duration_ms: Some(status.duration_ms),
        message: None,
    };
    with_output(watch, result, said)
}

fn lost(watch: &Watch, why: &str) -> Finished {
    let said = [Some(why.to_owned()), watch.note.clone(), None];
    let result = CommandResult {
        status: TaskStatus::Lost,
        output: String::new(),
        exit_code: None,
        duration_ms: None,
        message: None,
    };
    with_output(watch, result, said)
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
    let Text { text, dropped } = text;
    let call = watch.call;
    // What was dropped lies in the middle, and so does what is cut here.
    let with_dropped = |missing: Missing| Missing { bytes: missing.bytes + dropped, ..missing };
    let shown = shorten(&text, watch.cap, |missing| {
        let missing = with_dropped(missing);
        format!("[… {missing} are missing here; read_file with the path \"output:{call}\" reads the whole …]")
    });
    let whole = shown.is_some().then(|| {
        let most = Cap { lines: usize::MAX, bytes: WHOLE };
        let kept = shorten(&text, most, |missing| format!("[… {} were not kept …]", with_dropped(missing)));
        kept.unwrap_or_else(|| text.clone()).into_bytes()
    });
    result.output = shown.unwrap_or(text);
    result.message = (!said.is_empty()).then(|| said.join("; "));
    let content = serde_json::to_string(&result).expect("it has string keys and no fallible parts");
    Finished { content, whole, ..Finished::default() }
}

/// What was printed, as far as it is of use.
#[derive(Default)]
struct Text {
    text: String,
    /// How many bytes are missing within it.
    dropped: u64,
}

/// Head and tail of an output, as plain text. Never more in memory than what may be kept of it.
fn text_of(output: &Output) -> longhaul_keeper::Result<Text> {
    let printed = output.printed()?;
    let half = (WHOLE - LONGEST_MARKER) as u64 / 2;
    let (head_end, tail_start) =
        if printed <= 2 * half { (printed, printed) } else { (half, printed - half) };
    let mut pieces = Pieces::default();
    for (from, to) in [(0, head_end), (tail_start, printed)] {
        let mut next = from;
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
        let gap = offset - self.next;
        if gap > 0 {
            self.part.truncate(whole_lines_before_cut(&self.part));
            self.close_part();
            self.text.dropped += gap;
            self.text.text.push_str(&format!("[… {gap} bytes were not kept …]\n"));
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
