//! What records that repeat others say in the words of others, without what the runtime puts around them: its headings, and the frames
//! of results, are the same in many records.

use std::collections::BTreeSet;

use longhaul_protocol::{
    Carried, EpochStarted, Item, Record, SessionRecord, Summary, SystemMessage, TaskEnded, TaskStarted,
};
use serde_json::Value;

/// What a message about the context before begins with, and the request that is pinned.
const SUMMARY: &str = "[Compacted context summary]";
const FIRST_REQUEST: &str = "[First request of this session";
/// The name of that pin in an epoch.
const FIRST_REQUEST_PIN: &str = "first_request";
/// The headings under which a summary quotes.
const QUOTING: [&str; 2] = ["# Directives", "# Constraints"];

/// The texts of one record, each of them plain.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// What persons, models and tools said. Some of it may lack its middle.
    pub(super) words: Vec<String>,
    /// What the tools' results have as their output.
    pub(super) outputs: Vec<String>,
    /// What the runtime composed, with words of others in it.
    pub(super) composed: Vec<String>,
    /// The first request, perhaps only its beginning.
    pub(super) pins: Vec<String>,
    /// Lines that may be a sentence of somebody.
    pub(super) quotes: Vec<String>,
    /// What a call gave: todos, and what tasks are and run.
    pub(super) named: Vec<String>,
    /// The lines of a summary.
    pub(super) summary: BTreeSet<String>,
}

impl Told {
    /// Of a record that may repeat others.
    pub(super) fn by(record: &Record) -> Option<Self> {
        let mut told = Self::default();
        match SessionRecord::decode(record).ok()? {
            SessionRecord::EpochStarted(epoch) => told.see_epoch(&epoch),
            SessionRecord::SystemMessage(message) => told.see_message(&message),
            SessionRecord::TurnEnded(ended) => {
                told.words.push(plain(&ended.text));
                told.composed.extend(ended.error.as_deref().map(plain));
            }
            SessionRecord::Notification(notification) => told.composed.push(plain(&notification.text)),
            SessionRecord::Note(note) => told.composed.push(plain(&note.text)),
            _ => return None,
        }
        Some(told)
    }

    fn see_epoch(&mut self, epoch: &EpochStarted) {
        for pin in &epoch.pins {
            self.words.push(plain(&pin.text));
            self.pins.extend((pin.name == FIRST_REQUEST_PIN).then(|| plain(&pin.text)));
        }
        if let Some(summary) = &epoch.summary {
            self.words.extend(texts(summary).into_iter().map(plain));
            self.quotes.extend(summary.directives.iter().chain(&summary.constraints).map(|line| bare(line)));
            self.summary = lines_of(summary);
        }
        epoch.kept.iter().for_each(|kept| self.see_item(&kept.item));
        self.named.extend(epoch.todo.iter().map(|todo| plain(&todo.text)));
        epoch.tasks.iter().for_each(|task| self.see_task(task));
        for ended in &epoch.ended {
            self.see_task(&ended.task);
            let TaskEnded { tail, message, .. } = &ended.end;
            self.outputs.push(plain(tail));
            self.composed.extend(message.as_deref().map(plain));
        }
        self.words.extend(epoch.questions.iter().map(|question| plain(&question.text)));
        if let Some(carried) = &epoch.carried {
            self.see_carried(carried);
        }
    }

    fn see_carried(&mut self, carried: &Carried) {
        self.words.extend(carried.waiting.iter().map(|input| plain(&input.text)));
        self.words.extend(carried.interrupted.as_deref().map(plain));
        if let Some(turn) = &carried.turn {
            self.words.extend([&turn.text, &turn.carried].map(|text| plain(text)));
            self.words.extend(turn.interrupted.as_deref().map(plain));
        }
        let stalls = carried.tasks.iter().filter_map(|task| task.waiting.as_ref());
        self.composed.extend(stalls.map(|stall| plain(&stall.text)));
    }

    fn see_item(&mut self, item: &Item) {
        match item {
            Item::Text { text, .. } | Item::Reasoning { text, .. } => self.words.push(plain(text)),
            Item::ToolCall { arguments, .. } => self.words.push(plain(arguments)),
            Item::ToolResult { content, .. } => match fields(content) {
                Some(fields) => self.see_fields(&fields),
                None => self.words.push(plain(content)),
            },
            Item::Note { text } => self.composed.push(plain(text)),
            Item::Image(_) => {}
        }
    }

    fn see_fields(&mut self, fields: &serde_json::Map<String, Value>) {
        for (name, value) in fields {
            match name.as_str() {
                // The runtime's own word.
                "status" => {}
                "output" => self.outputs.extend(value.as_str().map(plain)),
                _ => self.words.extend(leaves(value).into_iter().map(plain)),
            }
        }
    }

    fn see_task(&mut self, task: &TaskStarted) {
        self.named.extend([&task.command, &task.description].map(|text| plain(text)));
    }

    fn see_message(&mut self, message: &SystemMessage) {
        for part in &message.content {
            let (heading, rest) = part.text.split_once('\n').unwrap_or((&part.text, ""));
            if heading.starts_with(SUMMARY) {
                self.see_rendered(&part.text);
                continue;
            }
            self.words.push(plain(rest));
            if heading.starts_with(FIRST_REQUEST) {
                self.pins.push(plain(rest));
            } else {
                let todo = |line: &str| line.split_once("] ").map(|(_, todo)| plain(todo));
                self.named.extend(rest.lines().filter_map(todo));
            }
        }
    }

    fn see_rendered(&mut self, text: &str) {
        let mut is_quoting = false;
        for line in body(text).lines() {
            if line.starts_with("# ") {
                is_quoting = QUOTING.iter().any(|heading| line.starts_with(heading));
                continue;
            }
            self.words.push(plain(entry(line)));
            self.quotes.extend(is_quoting.then(|| bare(line)));
        }
        self.words.push(plain(body(text)));
        self.summary = rendered_lines(text);
    }
}

/// The lines of the summary in a message, if it has one.
pub(super) fn lines_in(message: &SystemMessage) -> BTreeSet<String> {
    let parts = message.content.iter().map(|part| part.text.as_str());
    parts.filter(|text| text.starts_with(SUMMARY)).flat_map(rendered_lines).collect()
}

/// The lines of a summary.
pub(super) fn lines_of(summary: &Summary) -> BTreeSet<String> {
    let lines = texts(summary).into_iter().flat_map(str::lines).map(bare);
    lines.filter(|line| !line.is_empty()).collect()
}

fn rendered_lines(text: &str) -> BTreeSet<String> {
    let lines = body(text).lines().filter(|line| !line.starts_with("# ")).map(bare);
    lines.filter(|line| !line.is_empty() && !line.contains("[shortened") && line != "shortened").collect()
}

/// A summary that a message shows, without what the message says about itself: that ends with an empty line.
fn body(text: &str) -> &str {
    text.split_once("\n\n").map_or("", |(_, body)| body)
}

fn texts(summary: &Summary) -> Vec<&str> {
    let Summary {
        goal,
        directives,
        constraints,
        decisions,
        done,
        in_progress,
        next_action,
        blocked,
        files,
        commands,
        notes,
    } = summary;
    let lists = [directives, constraints, decisions, done, in_progress, blocked, files, commands];
    let lists = lists.into_iter().flatten().map(String::as_str);
    [goal, next_action, notes].into_iter().map(String::as_str).chain(lists).collect()
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

/// A line of a list without the signs of the list.
fn entry(line: &str) -> &str {
    line.trim_start_matches("- ").trim_matches('"')
}

/// A line without the signs around its words.
fn bare(line: &str) -> String {
    plain(line).trim_matches(|c: char| !c.is_alphanumeric()).to_owned()
}

/// A text in which what the runtime and summaries change of what they repeat is the same: spaces, line breaks, case, and the signs
/// that keep words of others from looking like its own.
pub(super) fn plain(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    text.replace("?]", "]").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}
