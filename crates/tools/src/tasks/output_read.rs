//! Reads a task's output: all of it, from an offset on, or the lines that match.

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use longhaul_keeper::{Error, Output};
use longhaul_protocol::{CommandReport, TaskNews};

use super::TaskSettings;
use super::output_search::{HasMore, OutputMatches, OutputSearch};
use super::state::{TaskState, load_task_state};
use crate::blocking_run::CancelFlag;
use crate::output::{FullOutput, OutputReader, fit_report, report_outcome, room_for_output, set_message};
use crate::{OutputLimit, SessionTask, ToolOutcome};

/// A read is not halved below this, however much replaced bytes add.
const MIN_READ_BYTES: usize = 64;

pub(super) fn compile_grep(pattern: &str) -> Result<RegexMatcher, ToolOutcome> {
    RegexMatcherBuilder::new().build(pattern).map_err(|error| {
        ToolOutcome::error(format!("the expression `{pattern}` in `grep` can't be understood: {error}"))
    })
}

/// A read of a task's output.
#[derive(Clone)]
pub(super) struct OutputRead {
    pub(super) settings: TaskSettings,
    pub(super) task: SessionTask,
    pub(super) output_limit: OutputLimit,
    pub(super) offset: Option<u64>,
    pub(super) limit: usize,
    pub(super) matcher: Option<RegexMatcher>,
    /// What the message says first.
    pub(super) notes: Vec<String>,
}

impl OutputRead {
    pub(super) fn run(&self, cancel: &CancelFlag) -> ToolOutcome {
        let state = match load_task_state(&self.settings.tasks, &self.task) {
            Ok(state) => state,
            Err(trouble) => return trouble,
        };
        if state.is_elsewhere {
            return self.elsewhere(&state);
        }
        let id = self.task.started.task_id;
        let read = match self.settings.tasks.output(id) {
            Ok(output) => self.read(&output, &state, cancel),
            Err(Error::NoSuchTask { .. }) => return self.gone(&state),
            Err(error) => Err(error),
        };
        read.unwrap_or_else(|error| {
            ToolOutcome::error(format!("the output of {id} can't be read now: {error}"))
        })
    }

    /// Another node has the output.
    pub(super) fn elsewhere(&self, state: &TaskState) -> ToolOutcome {
        let mut report = state.report(self.task.started.task_id);
        self.set_message(&mut report, state.message.clone());
        ToolOutcome { news: Some(self.news(state, 0)), ..report_outcome(report, "") }
    }

    /// The task folder is gone.
    fn gone(&self, state: &TaskState) -> ToolOutcome {
        let id = self.task.started.task_id;
        let kept = format!(
            "raw output is kept for 24 hours after the end; read_file with the path \"output:{}\" has what was kept",
            id.call()
        );
        let mut report = state.report(id);
        self.set_message(&mut report, state.message.clone().into_iter().chain([kept]));
        ToolOutcome { news: Some(self.news(state, 0)), ..report_outcome(report, "") }
    }

    fn read(
        &self,
        output: &Output,
        state: &TaskState,
        cancel: &CancelFlag,
    ) -> longhaul_keeper::Result<ToolOutcome> {
        let printed = OutputReader::new(output, &self.settings.redact);
        let (end, total) = (printed.readable_end(state.status)?, output.printed()?);
        if let Some(matcher) = &self.matcher {
            let search =
                OutputSearch { printed: &printed, output, matcher, output_limit: self.output_limit, cancel };
            let found = search.run(self.offset.unwrap_or(0), end)?;
            return Ok(ToolOutcome { news: Some(self.news(state, 0)), ..self.matches(&found, state) });
        }
        if let Some(offset) = self.offset {
            return self.from(offset, end, total, &printed, state);
        }
        let mut report = state.report(self.task.started.task_id);
        self.set_message(&mut report, position(end, total, state).into_iter().chain(state.message.clone()));
        let text = printed.read_all(end)?;
        let head_bytes = report.head().len() + 1;
        let bytes = self.limit.saturating_add(head_bytes).min(self.output_limit.bytes);
        let finished =
            fit_report(report, OutputLimit { bytes, ..self.output_limit }, &text, FullOutput::OfTask);
        Ok(ToolOutcome { news: Some(self.news(state, end)), ..finished })
    }

    /// The matching lines.
    fn matches(&self, found: &OutputMatches, state: &TaskState) -> ToolOutcome {
        let mut report = state.report(self.task.started.task_id);
        let count = match found.lines {
            0 => "no line matches".to_owned(),
            1 => "1 line matches".to_owned(),
            lines => format!("{lines} lines match"),
        };
        let reads_on = format!("`grep` with `offset` {} reads on", found.next);
        let said = match found.has_more {
            HasMore::Yes => format!("more lines match than fit; {reads_on}"),
            HasMore::No if state.has_ended() => count,
            HasMore::No => format!("{count} so far; {reads_on}"),
        };
        self.set_message(&mut report, [said].into_iter().chain(state.message.clone()));
        fit_report(report, self.output_limit, &found.text, FullOutput::OfTask)
    }

    /// Reads from an offset on, as much as fits.
    fn from(
        &self,
        offset: u64,
        end: u64,
        total: u64,
        printed: &OutputReader<'_>,
        state: &TaskState,
    ) -> longhaul_keeper::Result<ToolOutcome> {
        let mut report = state.report(self.task.started.task_id);
        if offset > total {
            self.set_message(&mut report, [format!("only {total} bytes were printed so far")]);
            return Ok(ToolOutcome { news: Some(self.news(state, 0)), ..report_outcome(report, "") });
        }
        let mut most = self.limit.min(self.output_limit.bytes);
        loop {
            let (text, next) = printed.read_from(offset, most, end)?;
            let message = state.message.clone().filter(|_| next >= end);
            self.set_message(&mut report, position(next, total, state).into_iter().chain(message));
            let fits = room_for_output(&report, self.output_limit)
                .is_some_and(|room| text.text.len() <= room.bytes && text.text.lines().count() <= room.lines);
            if fits || most <= MIN_READ_BYTES {
                let finished = fit_report(report, self.output_limit, &text, FullOutput::OfTask);
                return Ok(ToolOutcome { news: Some(self.news(state, next)), ..finished });
            }
            most /= 2;
        }
    }

    pub(super) fn set_message(&self, report: &mut CommandReport, said: impl IntoIterator<Item = String>) {
        set_message(report, self.notes.iter().cloned().chain(said));
    }

    /// What the model knows of the task after this read. It never decreases.
    fn news(&self, state: &TaskState, printed: u64) -> TaskNews {
        let told = self.task.told.map_or(0, |told| told.printed);
        TaskNews { task_id: self.task.started.task_id, printed: told.max(printed), ended: state.has_ended() }
    }
}

/// How to read on; `None` if there is nothing more to come.
pub(super) fn position(next: u64, total: u64, state: &TaskState) -> Option<String> {
    if next < total {
        return Some(format!("read through byte {next} of {total}; `offset` {next} reads on"));
    }
    (!state.has_ended()).then(|| format!("{total} bytes printed so far; `offset` {next} reads on"))
}
