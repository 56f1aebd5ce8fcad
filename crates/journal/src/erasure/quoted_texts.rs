//! The texts that a record may repeat from others, without what the runtime adds: its headings and the frames of
//! results are the same in many records.

use std::collections::BTreeSet;

use longhaul_protocol::{
    Carried, EpochStarted, FIRST_REQUEST_MARK, FIRST_REQUEST_PIN, Item, QUOTING_HEADINGS, Question, Record,
    SUMMARY_MARK, SessionRecord, Summary, SystemMessage, TaskEnded, TaskStarted,
};
use serde_json::Value;

/// The texts of one record that may repeat others, each of them normalised.
#[derive(Debug, Default)]
pub(super) struct QuotedTexts {
    /// Words of people, models and tools, perhaps truncated.
    pub(super) words: Vec<String>,
    /// The output in results of tools.
    pub(super) outputs: Vec<String>,
    /// Texts that the runtime composed and that contain the words of others.
    pub(super) composed: Vec<String>,
    /// The first request, perhaps only its beginning.
    pub(super) pins: Vec<String>,
    /// Lines that may quote a person or a model.
    pub(super) quotes: Vec<String>,
    /// Arguments of calls: todos, and the commands and descriptions of tasks.
    pub(super) named: Vec<String>,
    /// The lines of a summary.
    pub(super) summary: BTreeSet<String>,
}

impl QuotedTexts {
    /// The texts of a record; `None` if its kind never repeats others.
    pub(super) fn from_record(record: &Record) -> Option<Self> {
        let mut quoted = Self::default();
        match SessionRecord::decode(record).ok()? {
            SessionRecord::EpochStarted(epoch) => quoted.add_epoch(&epoch),
            SessionRecord::SystemMessage(message) => quoted.add_message(&message),
            SessionRecord::TurnEnded(ended) => {
                quoted.words.push(normalise(&ended.text));
                quoted.composed.extend(ended.error.as_deref().map(normalise));
            }
            SessionRecord::Notification(notification) => quoted.composed.push(normalise(&notification.text)),
            SessionRecord::Note(note) => quoted.composed.push(normalise(&note.text)),
            SessionRecord::Question(Question { refused: Some(refused), .. }) => {
                quoted.add_result(&refused.content);
            }
            _ => return None,
        }
        Some(quoted)
    }

    fn add_epoch(&mut self, epoch: &EpochStarted) {
        for pin in &epoch.pins {
            self.words.push(normalise(&pin.text));
            self.pins.extend((pin.name == FIRST_REQUEST_PIN).then(|| normalise(&pin.text)));
        }
        if let Some(summary) = &epoch.summary {
            self.words.extend(summary.texts().map(normalise));
            self.quotes.extend(summary.directives.iter().chain(&summary.constraints).map(|line| bare(line)));
            self.summary = lines_of(summary);
        }
        epoch.kept.iter().for_each(|kept| self.add_item(&kept.item));
        self.named.extend(epoch.todo.iter().map(|todo| normalise(&todo.text)));
        epoch.tasks.iter().for_each(|task| self.add_task(task));
        for ended in &epoch.ended {
            self.add_task(&ended.task);
            let TaskEnded { tail, message, .. } = &ended.end;
            self.outputs.push(normalise(tail));
            self.composed.extend(message.as_deref().map(normalise));
        }
        self.words.extend(epoch.questions.iter().map(|question| normalise(&question.text)));
        if let Some(carried) = &epoch.carried {
            self.add_carried(carried);
        }
    }

    fn add_carried(&mut self, carried: &Carried) {
        self.words.extend(carried.waiting.iter().map(|input| normalise(&input.text)));
        self.words.extend(carried.interrupted.as_deref().map(normalise));
        if let Some(turn) = &carried.turn {
            self.words.extend([&turn.text, &turn.carried].map(|text| normalise(text)));
            self.words.extend(turn.interrupted.as_deref().map(normalise));
        }
        let stalls = carried.tasks.iter().filter_map(|task| task.waiting.as_ref());
        self.composed.extend(stalls.map(|stall| normalise(&stall.text)));
    }

    fn add_item(&mut self, item: &Item) {
        match item {
            Item::Text { text, .. } | Item::Reasoning { text, .. } => self.words.push(normalise(text)),
            Item::ToolCall { arguments, .. } => self.words.push(normalise(arguments)),
            Item::ToolResult { content, .. } => self.add_result(content),
            Item::Note { text } => self.composed.push(normalise(text)),
            Item::Image(_) => {}
        }
    }

    fn add_result(&mut self, content: &str) {
        match fields(content) {
            Some(fields) => self.add_fields(&fields),
            None => self.words.push(normalise(content)),
        }
    }

    fn add_fields(&mut self, fields: &serde_json::Map<String, Value>) {
        for (name, value) in fields {
            match name.as_str() {
                // The status is a word of the runtime.
                "status" => {}
                "output" => self.outputs.extend(value.as_str().map(normalise)),
                _ => self.words.extend(leaves(value).into_iter().map(normalise)),
            }
        }
    }

    fn add_task(&mut self, task: &TaskStarted) {
        self.named.extend([&task.command, &task.description].map(|text| normalise(text)));
    }

    fn add_message(&mut self, message: &SystemMessage) {
        for part in &message.content {
            let (heading, rest) = part.text.split_once('\n').unwrap_or((&part.text, ""));
            if heading.starts_with(SUMMARY_MARK) {
                self.add_rendered(&part.text);
                continue;
            }
            self.words.push(normalise(rest));
            if heading.starts_with(FIRST_REQUEST_MARK) {
                self.pins.push(normalise(rest));
            } else {
                let todo = |line: &str| line.split_once("] ").map(|(_, todo)| normalise(todo));
                self.named.extend(rest.lines().filter_map(todo));
            }
        }
    }

    fn add_rendered(&mut self, text: &str) {
        let mut is_quoting = false;
        for line in body(text).lines() {
            if line.starts_with("# ") {
                is_quoting = QUOTING_HEADINGS.iter().any(|heading| line.starts_with(heading));
                continue;
            }
            self.words.push(normalise(entry(line)));
            self.quotes.extend(is_quoting.then(|| bare(line)));
        }
        self.words.push(normalise(body(text)));
        self.summary = rendered_lines(text);
    }
}

/// The lines of the summary in a message.
pub(super) fn lines_in(message: &SystemMessage) -> BTreeSet<String> {
    let parts = message.content.iter().map(|part| part.text.as_str());
    parts.filter(|text| text.starts_with(SUMMARY_MARK)).flat_map(rendered_lines).collect()
}

/// The lines of a summary.
pub(super) fn lines_of(summary: &Summary) -> BTreeSet<String> {
    let lines = summary.texts().flat_map(str::lines).map(bare);
    lines.filter(|line| !line.is_empty()).collect()
}

fn rendered_lines(text: &str) -> BTreeSet<String> {
    let lines = body(text).lines().filter(|line| !line.starts_with("# ")).map(bare);
    lines.filter(|line| !line.is_empty() && !line.contains("[shortened") && line != "shortened").collect()
}

/// The summary in a message, without the introduction, which ends with an empty line.
fn body(text: &str) -> &str {
    text.split_once("\n\n").map_or("", |(_, body)| body)
}

/// The fields of a result that is one JSON object.
pub(super) fn fields(content: &str) -> Option<serde_json::Map<String, Value>> {
    content.trim_start().starts_with('{').then(|| serde_json::from_str(content).ok())?
}

/// Every text within a value.
pub(super) fn leaves(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(leaves).collect(),
        Value::Object(fields) => fields.values().flat_map(leaves).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => vec![],
    }
}

/// An entry of a list, without its bullet and quotation marks.
fn entry(line: &str) -> &str {
    line.trim_start_matches("- ").trim_matches('"')
}

/// A normalised line without punctuation around it.
fn bare(line: &str) -> String {
    normalise(line).trim_matches(|c: char| !c.is_alphanumeric()).to_owned()
}

/// Removes the differences that the runtime and summaries introduce when they repeat a text: spaces, line breaks,
/// case, and the escapes that keep the words of others from looking like the runtime's.
pub(super) fn normalise(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    text.replace("?]", "]").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}
