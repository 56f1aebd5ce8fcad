//! A stored session as HTML: fragments that need nothing from elsewhere, and whose text can't become markup.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `mod` | a block as a fragment; a session as sections of fragments |
//! | `call`, `diff` | tool calls, and the changes that they made |
//! | `markdown`, `inline` | Markdown: its blocks; paragraphs, headings and tables |
//! | `fragment` | escaping, times, long texts cut in their middle |
//! | `style` | the style sheet of a page that stands alone |

mod call;
mod diff;
mod fragment;
mod inline;
mod markdown;
mod style;

use longhaul_protocol::{Cause, TODO_MARK};

use self::call::push_call;
use self::diff::push_diff;
use self::fragment::{cut_middle, push, push_line};
pub use self::fragment::{escape, time_element};
pub use self::markdown::markdown_html;
pub use self::style::{CONTENT_SECURITY_POLICY, STYLE_SHEET};
use crate::block::{Block, BlockContent, BlockState, TurnEnd, Update};
use crate::local_time::format_moment;
use crate::notice::{Verbosity, WAITING_INPUT, notice_text};
use crate::page::turn_totals_text;
use crate::text::{cause_text, format_count, format_number};

/// Bytes of an input or a question that are shown.
const MAX_TEXT_BYTES: usize = 256 << 10;

/// Bytes of the HTML of one block.
const MAX_BLOCK_HTML: usize = 1 << 20;

/// A block as one element that stands alone: `<article class="block KIND STATE" data-seq="…">`. A block that goes on is rendered
/// as such. Empty if there is nothing to show. A block that would need more than a megabyte says only that it is not shown.
pub fn block_html(block: &Block) -> String {
    let mut content = String::new();
    push_content(block, &mut content);
    match content.len() {
        0 => content,
        1..=MAX_BLOCK_HTML => article(block, &content),
        bytes => omitted_block_html(block, &format!("{} bytes of HTML", format_number(bytes as u64))),
    }
}

/// The element of a block whose content is not shown, and why.
pub fn omitted_block_html(block: &Block, reason: &str) -> String {
    let mut content = String::new();
    push_line(&mut content, "note", &format!("[not shown: {reason}]"));
    article(block, &content)
}

fn article(block: &Block, content: &str) -> String {
    let kind = kind_name(&block.content);
    let mut html = format!("<article class=\"block {kind}{}\"", state_class(block.state));
    if let Some(seq) = block.seq {
        push(&mut html, format_args!(" data-seq=\"{seq}\""));
    }
    if let Some(label) = label(&block.content) {
        push(&mut html, format_args!(" aria-label=\"{label}\""));
    }
    html.push_str(">\n");
    html.push_str(content);
    html.push_str("</article>\n");
    html
}

/// Renders updates as HTML, with a section for each turn.
#[derive(Debug, Default)]
pub struct HtmlRenderer {
    is_in_turn: bool,
    /// Blocks that have started and not ended.
    open: Vec<Block>,
}

impl HtmlRenderer {
    pub fn new() -> Self {
        Self::default()
    }

    /// The fragment of an update. It may leave a section open.
    pub fn render(&mut self, update: &Update) -> String {
        let mut html = String::new();
        match update {
            Update::Started(block) => self.open.push(block.clone()),
            Update::Appended { .. } => {}
            Update::Ended(block) => {
                self.open.retain(|open| open.id != block.id);
                if let BlockContent::TurnStart { .. } = &block.content {
                    self.end_section(&mut html);
                    self.is_in_turn = true;
                    let turn = block.turn.unwrap_or_default();
                    push(&mut html, format_args!("<section id=\"turn-{turn}\">\n"));
                }
                html.push_str(&block_html(block));
                if let BlockContent::TurnEnd(_) = &block.content {
                    self.end_section(&mut html);
                }
            }
        }
        html
    }

    /// What goes on, and the end of what is open.
    pub fn end(&mut self) -> String {
        let mut html: String = self.open.drain(..).map(|block| block_html(&block)).collect();
        self.end_section(&mut html);
        html
    }

    fn end_section(&mut self, html: &mut String) {
        if std::mem::take(&mut self.is_in_turn) {
            html.push_str("</section>\n");
        }
    }
}

fn push_content(block: &Block, html: &mut String) {
    match &block.content {
        BlockContent::TurnStart { cause } => push_turn_start(html, block, *cause),
        BlockContent::Input { text, images, from, .. } => {
            if let Some(from) = from {
                push_line(html, "note", &format!("from {from}"));
            }
            push_text(html, "said", text);
            if *images > 0 {
                push_line(html, "note", &format!("with {}", format_count(*images as u64, "image")));
            }
            if block.state == BlockState::Running {
                push_line(html, "note state", WAITING_INPUT);
            }
            push_time(html, block);
        }
        BlockContent::Reasoning { text } => push_details(html, "Reasoning", text),
        // The model was asked again, and what it said first does not count.
        BlockContent::Message { .. } if block.state == BlockState::Discarded => {}
        BlockContent::Message { text, .. } => {
            push_answer(html, text);
            match block.state {
                BlockState::Interrupted => push_line(html, "note", "[interrupted here]"),
                BlockState::Truncated => push_line(html, "note", "[cut off here]"),
                BlockState::Running => push_line(html, "note state", "[the answer goes on]"),
                BlockState::Finished | BlockState::Failed | BlockState::Discarded => {}
            }
            push_time(html, block);
        }
        BlockContent::Summary { text } => {
            let title = match text.starts_with(TODO_MARK) {
                true => "Todo list, as the model keeps it",
                false => "Summary: what the model knows of the conversation above",
            };
            push_details(html, title, text);
        }
        BlockContent::Call(call) => push_call(html, block, call),
        BlockContent::Question { text, diff, answer, .. } => {
            push_text(html, "asked", text.as_deref().unwrap_or("A question"));
            diff.iter().for_each(|diff| push_diff(html, diff));
            match (block.state, answer) {
                (BlockState::Running, _) => push_line(html, "state", "waiting for an answer"),
                (_, Some(answer)) => push_line(html, "answered", &format!("answer: {answer}")),
                (_, None) => push_line(html, "state", "withdrawn without an answer"),
            }
            push_time(html, block);
        }
        BlockContent::Task { description, .. } => {
            push_notice(html, block);
            if let Some(description) = description.as_ref().filter(|_| block.state != BlockState::Running) {
                push_line(html, "description", description);
            }
            push_time(html, block);
        }
        BlockContent::TurnEnd(end) => push_turn_end(html, block, end),
        BlockContent::ErasedRecord { seq, kind, at, reason } => {
            let since = format_moment(*at);
            push_line(html, "notice", &format!("[entry {seq}, {kind}: erased on {since}: {reason}]"));
        }
        BlockContent::DamagedRecord { seq, reason } => {
            push_line(html, "notice wrong", &format!("[entry {seq} is damaged: {reason}]"));
        }
        _ => push_notice(html, block),
    }
}

fn push_turn_start(html: &mut String, block: &Block, cause: Option<Cause>) {
    let cause =
        cause_text(cause).map(|text| format!(" <span class=\"cause\">{text}</span>")).unwrap_or_default();
    let (turn, time) = (block.turn.unwrap_or_default(), time_element(block.started_at));
    match block.state {
        BlockState::Running => {
            push(
                html,
                format_args!("<p class=\"state\">Turn {turn}{cause} has been running since {time}</p>\n"),
            );
        }
        _ => push(html, format_args!("<h2>Turn {turn}{cause} {time}</h2>\n")),
    }
}

fn push_turn_end(html: &mut String, block: &Block, end: &TurnEnd) {
    if let Some(error) = &end.error {
        push_line(html, "notice wrong", &format!("✗ {error}"));
    }
    let (totals, time) =
        (escape(&turn_totals_text(end)), time_element(block.ended_at.unwrap_or(block.started_at)));
    push(html, format_args!("<p class=\"ended\">{totals} {time}</p>\n"));
}

/// What the terminal says of the block in one line, if anything.
fn push_notice(html: &mut String, block: &Block) {
    let update = match block.state {
        BlockState::Running => Update::Started(block.clone()),
        _ => Update::Ended(block.clone()),
    };
    if let Some(notice) = notice_text(&update, Verbosity::Verbose) {
        let is_wrong = notice.starts_with('✗') || block.state == BlockState::Failed;
        let class = if is_wrong { "notice wrong" } else { "notice" };
        push_line(html, class, &notice);
    }
}

/// Text as a person typed it.
fn push_text(html: &mut String, class: &str, text: &str) {
    let text = escape(&cut_middle(text.trim_end(), MAX_TEXT_BYTES));
    push(html, format_args!("<div class=\"words {class}\" dir=\"auto\">{text}</div>\n"));
}

/// Markdown of a model. Each part has its own direction. If the whole had one as well, a browser would look for it again at each part,
/// which takes seconds in a long list.
fn push_answer(html: &mut String, text: &str) {
    push(html, format_args!("<div class=\"markdown\">\n{}</div>\n", markdown_html(text)));
}

fn push_details(html: &mut String, summary: &str, text: &str) {
    push(html, format_args!("<details>\n<summary>{summary}</summary>\n"));
    push_answer(html, text);
    html.push_str("</details>\n");
}

fn push_time(html: &mut String, block: &Block) {
    push(html, format_args!("<footer>{}</footer>\n", time_element(block.started_at)));
}

/// The name of the kind, as in the JSON of a block.
fn kind_name(content: &BlockContent) -> &'static str {
    match content {
        BlockContent::TurnStart { .. } => "turn_start",
        BlockContent::Input { .. } => "input",
        BlockContent::WithdrawnInput => "withdrawn_input",
        BlockContent::Message { .. } => "message",
        BlockContent::Reasoning { .. } => "reasoning",
        BlockContent::Call(_) => "call",
        BlockContent::Task { .. } => "task",
        BlockContent::Question { .. } => "question",
        BlockContent::Retry(_) => "retry",
        BlockContent::Compaction { .. } => "compaction",
        BlockContent::Summary { .. } => "summary",
        BlockContent::Stubs { .. } => "stubs",
        BlockContent::PromptChange => "prompt_change",
        BlockContent::Model { .. } => "model",
        BlockContent::ModeChange { .. } => "mode_change",
        BlockContent::ModelChange { .. } => "model_change",
        BlockContent::AttemptFailure { .. } => "attempt_failure",
        BlockContent::Order(_) => "order",
        BlockContent::MemoryChange { .. } => "memory_change",
        BlockContent::Extraction { .. } => "extraction",
        BlockContent::Notification { .. } => "notification",
        BlockContent::Note { .. } => "note",
        BlockContent::Warning { .. } => "warning",
        BlockContent::Import { .. } => "import",
        BlockContent::TurnEnd(_) => "turn_end",
        BlockContent::UnfinishedTurn { .. } => "unfinished_turn",
        BlockContent::ErasedRecord { .. } => "erased_record",
        BlockContent::DamagedRecord { .. } => "damaged_record",
    }
}

fn state_class(state: BlockState) -> &'static str {
    match state {
        BlockState::Finished => "",
        BlockState::Running => " running",
        BlockState::Failed => " failed",
        BlockState::Truncated => " truncated",
        BlockState::Discarded => " discarded",
        BlockState::Interrupted => " interrupted",
    }
}

/// What a screen reader says at the beginning of the block.
fn label(content: &BlockContent) -> Option<&'static str> {
    Some(match content {
        BlockContent::Input { .. } => "Input",
        BlockContent::Message { .. } => "Answer",
        BlockContent::Reasoning { .. } => "Reasoning",
        BlockContent::Call(_) => "Tool call",
        BlockContent::Task { .. } => "Background task",
        BlockContent::Question { .. } => "Question",
        BlockContent::Compaction { .. } | BlockContent::Summary { .. } => "Compaction",
        BlockContent::Warning { .. } => "Warning",
        BlockContent::TurnEnd(_) => "End of the turn",
        _ => return None,
    })
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
