//! The JSON object in which the model reads of a command or a task, with as much of the output as fits.

use longhaul_protocol::{CallId, TaskId, TaskStatus};
use serde::Serialize;

use crate::output::{OutputText, TruncatedPart, truncate_middle};
use crate::{OutputLimit, ToolOutcome, display};

/// The fields of a result, in this order.
#[derive(Debug, Default, Serialize)]
pub(crate) struct CommandReport {
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

/// Where the model can read the full output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FullOutput {
    /// `read_file` reads it as the output of this call.
    OfCall(CallId),
    /// `task_output` reads it from the task.
    OfTask,
}

impl CommandReport {
    pub(crate) fn new(status: TaskStatus) -> Self {
        Self { status: status.word(), ..Self::default() }
    }

    pub(crate) fn set_message(&mut self, said: impl IntoIterator<Item = String>) {
        let said: Vec<String> = said.into_iter().collect();
        self.message = (!said.is_empty()).then(|| said.join("; "));
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("it has string keys and no fallible parts")
    }

    /// Encodes the report as JSON within `output_limit`, escapes included. Where there is no room for everything, the output is
    /// truncated first, then the message; last of all, fields are left out.
    pub(crate) fn fit_within(
        mut self,
        output_limit: OutputLimit,
        text: &OutputText,
        rest: FullOutput,
    ) -> ToolOutcome {
        self.output = Some(text.text.clone());
        let content = self.to_json();
        if content.len() <= output_limit.bytes && text.text.lines().count() <= output_limit.lines {
            return ToolOutcome::ok(content);
        }
        let whole = match rest {
            FullOutput::OfCall(_) => Some(text.kept().into_bytes()),
            FullOutput::OfTask => None,
        };
        let finished = |content| ToolOutcome { content, whole, ..ToolOutcome::default() };

        self.shorten_message(output_limit);
        self.output = Some(String::new());
        if let Some(room) = output_limit.bytes.checked_sub(self.to_json().len()) {
            self.output = Some(truncate_escaped(text, OutputLimit { bytes: room, ..output_limit }, rest));
            return finished(self.to_json());
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
            if self.to_json().len() <= output_limit.bytes {
                break;
            }
        }
        finished(self.to_json())
    }

    fn shorten_message(&mut self, output_limit: OutputLimit) {
        if let Some(message) = &mut self.message {
            let fits =
                |bytes| json_string_len(display::truncate_str(message, bytes)) <= output_limit.bytes / 2;
            let bytes = largest_that_fits(message.len(), fits);
            message.truncate(message.floor_char_boundary(bytes));
        }
    }
}

/// Head and tail that fit into `output_limit` once they are escaped.
fn truncate_escaped(text: &OutputText, output_limit: OutputLimit, rest: FullOutput) -> String {
    let shown = |bytes| {
        let marker = |missing: &TruncatedPart| rest.marker(&text.with_dropped_bytes(missing));
        truncate_middle(&text.text, OutputLimit { bytes, ..output_limit }, marker)
            .unwrap_or_else(|| text.text.clone())
    };
    shown(largest_that_fits(output_limit.bytes, |bytes| json_string_len(&shown(bytes)) <= output_limit.bytes))
}

impl FullOutput {
    fn marker(self, missing: &TruncatedPart) -> String {
        match self {
            Self::OfCall(call) => missing.marker(call),
            Self::OfTask => {
                format!("[… {missing} are missing here; task_output with `offset` or `grep` reads them …]")
            }
        }
    }
}

/// Bytes of a text as a JSON string, without the quotes around it.
pub(crate) fn json_string_len(text: &str) -> usize {
    serde_json::to_string(text).map_or(usize::MAX, |text| text.len() - 2)
}

/// The largest number up to `most` that fits, by binary search. If a number fits, each smaller one does; 0 always
/// fits.
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
