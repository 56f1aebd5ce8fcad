//! Summaries of a session: the prompt, parsing the answer, merging it with the previous summary, and rendering.
//!
//! A model's summary is trusted as little as possible. A directive counts only in the user's own words, it stays until
//! the user withdraws it, and no line of a summary can look like a message of the runtime.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `prompt` | the prompt for a summary, within a token budget |
//! | `transcript` | the conversation as text, with a marker before each part |
//! | `fields` | the fields of a summary and their headings |
//! | `parse` | from an answer to a summary |
//! | `merge_summaries` | a new summary together with the previous one |
//! | `render` | the text of a summary, within a token budget |

use std::sync::Arc;

use longhaul_protocol::{Item, Summary};

mod fields;
mod merge;
mod parse;
mod prompt;
mod render;
mod transcript;

pub use merge::{merge_summaries, user_messages};
pub use parse::parse_summary;
pub use prompt::build_summary_prompt;
pub use render::{parse_rendered_summary, render_summary};

pub const WRITE_SUMMARY: &str = "write_summary";

/// The input of a summary.
#[derive(Debug, Clone, Copy)]
pub struct SummaryMaterial<'a> {
    /// The previous summary, which covers everything before the items.
    pub previous: Option<&'a Summary>,
    /// The items that the summary replaces.
    pub items: &'a [Arc<Item>],
    /// What the summary should emphasise.
    pub focus: Option<&'a str>,
}

/// A summary as the model wrote it, before it is merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenSummary {
    pub summary: Summary,
    /// Directives that the user withdrew, in the words of the model.
    pub withdrawn: Vec<String>,
}

/// The result of parsing an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedSummary {
    /// A tool call, a JSON object, or text under headings.
    InForm(WrittenSummary),
    /// Text without headings. A weak model may mean this as the summary, or the model ignored the request. A single
    /// answer does not tell which.
    Prose(WrittenSummary),
}
