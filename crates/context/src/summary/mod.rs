//! Summaries: what a model is asked, what it answers, what becomes of that.
//!
//! What a model writes is believed no more than needed. A directive is one only if a person said it in these words, it stays until
//! one is named that took it back, and no line of a summary can look like a message of the runtime.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `asking` | what a model is asked, in a size that is given |
//! | `transcript` | what was said, as a text with a mark before each part |
//! | `fields` | the fields of a summary and the headings that they have |
//! | `reading` | from an answer to a summary, however it came |
//! | `merging` | a summary together with the one before it |
//! | `rendering` | the text of a summary, in a size that is given |

use std::sync::Arc;

use longhaul_protocol::{Item, Summary, ToolSchema};

mod asking;
mod fields;
mod merging;
mod reading;
mod rendering;
mod transcript;

pub use asking::build_summary_prompt;
pub use merging::{merge_summaries, user_messages};
pub use reading::parse_summary;
pub use rendering::{parse_rendered_summary, render_summary};

/// The tool with which a summary is written.
pub const WRITE_SUMMARY: &str = "write_summary";

/// How a summary is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    /// As a call of [`WRITE_SUMMARY`].
    ToolCall,
    /// M18: as text under the same headings.
    Text,
}

/// What a model is asked for a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructuredPrompt {
    /// The system prompt.
    pub system: String,
    /// The one message.
    pub text: String,
    /// The tool, where the model takes one. If there is hardly any room, none is given even then, and the text asks for text.
    pub tools: Vec<ToolSchema>,
}

/// What is to be summarised.
#[derive(Debug, Clone, Copy)]
pub struct SummaryMaterial<'a> {
    /// The summary of everything before.
    pub previous: Option<&'a Summary>,
    /// What goes.
    pub items: &'a [Arc<Item>],
    /// What the summary should dwell on.
    pub focus: Option<&'a str>,
}

/// What a model wrote when it was asked for a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenSummary {
    /// The summary.
    pub summary: Summary,
    /// What a person took back of the directives, as the model says.
    pub withdrawn: Vec<String>,
}

/// What an answer to who asked for a summary turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedSummary {
    /// A call, a JSON object, or a text with headings.
    InForm(WrittenSummary),
    /// Words without any form. They may be a summary of a model that can't do better, or talk of one that overlooked what it was
    /// asked: who asked once only can't tell.
    Prose(WrittenSummary),
}
