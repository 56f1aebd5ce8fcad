//! A call with everything: its outcome, its arguments and its result.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use super::command_result::CommandResult;
use super::file_diff::FileDiff;
use super::outcome::CallOutcome;
use super::summary::{file_language, is_edit, list_edits, plain_value, text_field};
use super::{outcome_line, parse_arguments};
use crate::block::Call;
use crate::diff::{diff, more_lines_notice, truncate_bytes};
use crate::highlight::Highlighter;
use crate::style::{Span, StyledLine};
use crate::wrap::{truncate_line, wrap_spans};

/// Lines of one text that are shown. The model gets no more of them either.
const MAX_TEXT_LINES: usize = 2_000;

const INDENT: &str = "  ";

/// The whole call: how it ended, its arguments as text, and its result. A call without a result is still running.
pub fn call_detail_lines(call: &Call, took: Duration, width: u16) -> Vec<StyledLine> {
    let arguments = parse_arguments(&call.arguments);
    let mut detail = CallDetail::with_arguments(call, took, arguments.as_ref(), width);
    detail.push_result(call, arguments.as_ref());
    detail.trim_end();
    detail.rows
}

/// A call without its output, for a surface that shows the output itself: how it ended, its arguments, and what its result says
/// besides.
pub fn call_head_lines(call: &Call, took: Duration, width: u16) -> Vec<StyledLine> {
    let arguments = parse_arguments(&call.arguments);
    let mut detail = CallDetail::with_arguments(call, took, arguments.as_ref(), width);
    if let Some(report) = call.result.as_ref().and_then(|result| CommandResult::parse(&result.content)) {
        detail.push_report_fields(&report);
    }
    detail.trim_end();
    detail.rows.push(StyledLine::default());
    detail.rows
}

/// What the call printed, as far as the model reads it. Empty while it runs.
pub fn call_output(call: &Call) -> Cow<'_, str> {
    let Some(result) = &call.result else { return Cow::Borrowed("") };
    match CommandResult::parse(&result.content).filter(|_| !result.is_error) {
        Some(report) => Cow::Owned(report.output),
        None => Cow::Borrowed(&result.content),
    }
}

/// Whether there is more output than the model reads, or the command still runs.
pub fn has_more_output(call: &Call) -> bool {
    match &call.result {
        None => call.name == "exec",
        Some(result) if result.lines.is_some() => true,
        Some(result) => CommandResult::parse(&result.content).is_some_and(|report| {
            report.output.lines().any(|line| line.starts_with("[… ") && line.ends_with(" …]"))
        }),
    }
}

struct CallDetail {
    width: u16,
    rows: Vec<StyledLine>,
}

impl CallDetail {
    fn with_arguments(call: &Call, took: Duration, arguments: Option<&Value>, width: u16) -> Self {
        let outcome = outcome_line(call, CallOutcome::of(call), took, arguments, width);
        let mut detail = Self { width, rows: vec![outcome] };
        match (call.result.as_ref().and_then(|result| result.diff.as_deref()), arguments) {
            (Some(diff), _) => detail.rows.extend(FileDiff::parse(diff).lines(width, usize::MAX)),
            (None, Some(arguments)) => detail.push_arguments(&call.name, arguments),
            (None, None) => detail.push_text(&call.arguments, INDENT, ""),
        }
        if detail.rows.len() > 1 {
            detail.rows.push(StyledLine::default());
        }
        detail
    }

    fn trim_end(&mut self) {
        while self.rows.len() > 1 && self.rows.last().is_some_and(|row| row.spans.is_empty()) {
            self.rows.pop();
        }
    }

    fn push_report_fields(&mut self, report: &CommandResult) {
        let fields = report.fields.iter().filter(|(name, _)| name != "duration_ms");
        fields.for_each(|(name, value)| self.push_field(name, value));
    }

    fn push_arguments(&mut self, name: &str, arguments: &Value) {
        match name {
            "exec" => {
                self.push_command(text_field(arguments, "command").unwrap_or_default());
                self.push_fields(arguments, &["command"]);
            }
            "edit_file" | "write_file" => {
                for (index, (old, new)) in list_edits(name, arguments).into_iter().enumerate() {
                    if index > 0 {
                        self.rows.push(truncate_line(&StyledLine::dim("…"), self.width));
                    }
                    self.rows.extend(diff(old, new, file_language(arguments), self.width));
                }
            }
            // Its result is the list.
            "todo" => {}
            _ => self.push_fields(arguments, &[]),
        }
    }

    fn push_result(&mut self, call: &Call, arguments: Option<&Value>) {
        let (content, is_error) = match &call.result {
            Some(result) => (result.content.as_str(), result.is_error),
            None => (super::outcome::RUNNING, false),
        };
        match CommandResult::parse(content) {
            Some(report) if !is_error => {
                self.push_report_fields(&report);
                if !report.output.trim().is_empty() {
                    self.rows.push(StyledLine::default());
                    self.push_text(&report.output, INDENT, "");
                }
            }
            _ if is_edit(&call.name) && !is_error => {}
            _ => {
                let is_code = call.name == "read_file" && !is_error;
                let language = arguments.and_then(file_language).filter(|_| is_code);
                self.push_text(content, INDENT, language.unwrap_or_default());
            }
        }
    }

    fn push_command(&mut self, command: &str) {
        let mut highlighter = Highlighter::new("sh");
        for (index, line) in command.lines().take(MAX_TEXT_LINES).enumerate() {
            let mark = if index == 0 { "  $ " } else { "    " };
            let spans = highlighter.highlight_line(&truncate_bytes(line));
            self.rows.extend(wrap_spans(&spans, self.width, &[Span::dim(mark)], &["    ".into()]));
        }
        self.push_left_out(command);
    }

    /// One line per field; a text of several lines below its name.
    fn push_fields(&mut self, object: &Value, except: &[&str]) {
        let fields = object.as_object().into_iter().flatten();
        for (key, value) in fields.filter(|(key, _)| !except.contains(&key.as_str())) {
            self.push_field(key, &plain_value(value));
        }
    }

    fn push_field(&mut self, name: &str, value: &str) {
        let is_short = value.lines().count() <= 1;
        let mut spans = vec![Span::dim(format!("{}:", truncate_bytes(name)))];
        if is_short {
            spans.push(Span::raw(format!(" {}", truncate_bytes(value.trim_end()))));
        }
        self.rows.extend(wrap_spans(&spans, self.width, &[INDENT.into()], &["    ".into()]));
        if !is_short {
            self.push_text(value, "    ", "");
        }
    }

    fn push_text(&mut self, text: &str, indent: &str, language: &str) {
        let mut highlighter = Highlighter::new(language);
        for line in text.lines().take(MAX_TEXT_LINES) {
            let spans = highlighter.highlight_line(&truncate_bytes(line));
            self.rows.extend(wrap_spans(&spans, self.width, &[indent.into()], &[indent.into()]));
        }
        self.push_left_out(text);
    }

    fn push_left_out(&mut self, text: &str) {
        let left_out = text.lines().count().saturating_sub(MAX_TEXT_LINES);
        self.rows.extend(more_lines_notice(left_out).map(|line| truncate_line(&line, self.width)));
    }
}
