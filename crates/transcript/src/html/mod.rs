//! A stored session as HTML: fragments that need nothing from elsewhere, and whose text can't become markup.

mod style;

use std::fmt::Write;

use longhaul_protocol::At;

pub use self::style::{CONTENT_SECURITY_POLICY, STYLE_SHEET};
use crate::block::{Block, BlockContent, BlockState, Update};
use crate::local_time::format_moment;
use crate::notice::{Verbosity, notice_text};
use crate::page::turn_totals_text;
use crate::text::{format_count, sanitize};

/// A block as a fragment of HTML that stands alone. Empty if there is nothing to show.
pub fn block_html(block: &Block) -> String {
    let mut html = String::new();
    if let BlockContent::TurnStart = &block.content {
        let (turn, time) = (block.turn.unwrap_or_default(), time_element(block.started_at));
        push(&mut html, format_args!("<h2>Turn {turn} {time}</h2>\n"));
    } else if !push_content(block, &mut html)
        && let Some(notice) = notice_text(&Update::Ended(block.clone()), Verbosity::Verbose)
    {
        push_notice(&mut html, &notice);
    }
    html
}

/// Renders updates as HTML, with a section for each turn.
#[derive(Debug, Default)]
pub struct HtmlRenderer {
    is_in_turn: bool,
}

impl HtmlRenderer {
    pub fn new() -> Self {
        Self::default()
    }

    /// The fragment of an update. It may leave a section open.
    pub fn render(&mut self, update: &Update) -> String {
        let mut html = String::new();
        match update {
            Update::Ended(block) if self.push_block(block, &mut html) => {}
            update => {
                if let Some(notice) = notice_text(update, Verbosity::Verbose) {
                    push_notice(&mut html, &notice);
                }
            }
        }
        html
    }

    /// Closes what is open.
    pub fn end(&mut self) -> &'static str {
        if std::mem::take(&mut self.is_in_turn) { "</section>\n" } else { "" }
    }

    /// False if the block is a notice.
    fn push_block(&mut self, block: &Block, html: &mut String) -> bool {
        if let BlockContent::TurnStart = &block.content {
            html.push_str(self.end());
            self.is_in_turn = true;
            let (turn, time) = (block.turn.unwrap_or_default(), time_element(block.started_at));
            push(html, format_args!("<section id=\"turn-{turn}\">\n<h2>Turn {turn} {time}</h2>\n"));
            return true;
        }
        let is_shown = push_content(block, html);
        if let BlockContent::TurnEnd(_) = &block.content {
            html.push_str(self.end());
        }
        is_shown
    }
}

/// Renders what a block says. False if the block is a notice, or the beginning of a turn.
fn push_content(block: &Block, html: &mut String) -> bool {
    match &block.content {
        BlockContent::Input { text, images } => {
            push_text(html, "said", text);
            if *images > 0 {
                push_line(html, "aside", &format!("with {}", format_count(*images as u64, "image")));
            }
        }
        BlockContent::Reasoning { text } => push_details(html, "Reasoning", text),
        BlockContent::Message { text, .. } => {
            push_text(html, "answer", text);
            if block.state == BlockState::Interrupted {
                push_line(html, "aside", "[interrupted here]");
            }
        }
        BlockContent::Summary { text } => {
            push_details(html, "Start of the context from here on", text);
        }
        BlockContent::TurnEnd(end) => {
            if let Some(error) = &end.error {
                push_line(html, "aside wrong", &format!("✗ {error}"));
            }
            push_line(html, "ended", &turn_totals_text(end));
        }
        BlockContent::ErasedRecord { seq, kind, at, reason } => {
            let since = format_moment(*at);
            push_line(html, "aside", &format!("[entry {seq}, {kind}: erased on {since}: {reason}]"));
        }
        BlockContent::DamagedRecord { seq, reason } => {
            push_line(html, "aside wrong", &format!("[entry {seq} is damaged: {reason}]"));
        }
        _ => return false,
    }
    true
}

fn push(html: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = html.write_fmt(text);
}

fn push_notice(html: &mut String, text: &str) {
    push_line(html, if text.starts_with('✗') { "aside wrong" } else { "aside" }, text);
}

fn push_line(html: &mut String, class: &str, text: &str) {
    push(html, format_args!("<p class=\"{class}\">{}</p>\n", escape(text)));
}

fn push_text(html: &mut String, class: &str, text: &str) {
    let text = escape(text.trim_end());
    push(html, format_args!("<div class=\"words {class}\" dir=\"auto\">{text}</div>\n"));
}

fn push_details(html: &mut String, summary: &str, text: &str) {
    push(html, format_args!("<details><summary>{summary}</summary>\n"));
    push_text(html, "answer", text);
    html.push_str("</details>\n");
}

/// A moment, for people and for programs.
pub fn time_element(at: At) -> String {
    format!("<time datetime=\"{at}\">{}</time>", format_moment(at))
}

/// Escapes text from anywhere for an element or an attribute: nothing of it is markup, and nothing reverses the text behind it.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in sanitize(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Directional marks have no use of their own between words.
            '\u{200e}' | '\u{200f}' | '\u{061c}' => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}
