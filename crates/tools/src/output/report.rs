//! What the model reads of a command or a task: one JSON object, with as much of the output as it gets to read.

use longhaul_protocol::{CallId, TaskId, TaskStatus};
use serde::Serialize;

use crate::output::{Missing, shorten};
use crate::output::{Text, WHOLE};
use crate::{Cap, Finished, display};

/// The fields of a result, in this order.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task_id: Option<TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) matches: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) printed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

/// How what is not shown can be read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rest {
    /// It is kept as the output of this call.
    Kept(CallId),
    /// It is in the task's own output.
    InTask,
}

impl Report {
    pub(crate) fn new(status: TaskStatus) -> Self {
        Self { status: status.word(), ..Self::default() }
    }

    pub(crate) fn say(&mut self, said: impl IntoIterator<Item = String>) {
        let said: Vec<String> = said.into_iter().collect();
        self.message = (!said.is_empty()).then(|| said.join("; "));
    }

    pub(crate) fn encode(&self) -> String {
        serde_json::to_string(self).expect("it has string keys and no fallible parts")
    }

    /// The whole as one JSON object that stays within the cap, escapes and all. Where there is no room for everything, the
    /// output is shortened first, then what else there is to say, and last of all fields are left out.
    pub(crate) fn within(mut self, cap: Cap, text: &Text, rest: Rest) -> Finished {
        self.output = Some(text.text.clone());
        let content = self.encode();
        if content.len() <= cap.bytes && text.text.lines().count() <= cap.lines {
            return Finished::ok(content);
        }
        let whole = match rest {
            Rest::Kept(_) => Some(text.kept().into_bytes()),
            Rest::InTask => None,
        };
        let finished = |content| Finished { content, whole, ..Finished::default() };

        self.shorten_message(cap);
        self.output = Some(String::new());
        if let Some(room) = cap.bytes.checked_sub(self.encode().len()) {
            self.output = Some(text.shown_within(Cap { bytes: room, ..cap }, rest));
            return finished(self.encode());
        }
        for leave_out in [
            (|report| report.message = None) as fn(&mut Self),
            |report| report.duration_ms = None,
            |report| report.output = None,
            |report| (report.printed, report.matches) = (None, None),
            |report| report.next_offset = None,
            |report| report.exit_code = None,
        ] {
            leave_out(&mut self);
            if self.encode().len() <= cap.bytes {
                break;
            }
        }
        finished(self.encode())
    }

    fn shorten_message(&mut self, cap: Cap) {
        if let Some(message) = &mut self.message {
            let fits = |bytes| escaped(display::cut(message, bytes)) <= cap.bytes / 2;
            let bytes = largest_that_fits(message.len(), fits);
            message.truncate(message.floor_char_boundary(bytes));
        }
    }
}

impl Text {
    /// As much of it as is kept for reading on.
    pub(crate) fn kept(&self) -> String {
        let kept = shorten(&self.text, Cap { lines: usize::MAX, bytes: WHOLE }, |missing| {
            format!("[… {} were not kept …]", self.with_dropped(missing))
        });
        kept.unwrap_or_else(|| self.text.clone())
    }

    /// Head and tail, which have room as they are escaped.
    fn shown_within(&self, cap: Cap, rest: Rest) -> String {
        let shown = |bytes| {
            let marker = |missing: &Missing| rest.marker(&self.with_dropped(missing));
            shorten(&self.text, Cap { bytes, ..cap }, marker).unwrap_or_else(|| self.text.clone())
        };
        shown(largest_that_fits(cap.bytes, |bytes| escaped(&shown(bytes)) <= cap.bytes))
    }
}

impl Rest {
    fn marker(self, missing: &Missing) -> String {
        match self {
            Self::Kept(call) => missing.marker(call),
            Self::InTask => {
                format!("[… {missing} are missing here; task_output with `offset` or `grep` reads them …]")
            }
        }
    }
}

/// How many bytes a text has as a JSON string, without the quotes around it.
pub(crate) fn escaped(text: &str) -> usize {
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

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
