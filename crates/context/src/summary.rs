//! Summaries: what a model is asked, what it answers, what becomes of that.

use std::sync::Arc;

use longhaul_protocol::{Item, Summary, ToolSchema};

/// The tool with which a summary is written.
pub const WRITE_SUMMARY: &str = "write_summary";

/// How a summary is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a call of [`WRITE_SUMMARY`].
    Call,
    /// M18: as text under the same headings.
    Text,
}

/// What a model is asked for a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The system prompt.
    pub system: String,
    /// The one message.
    pub text: String,
    /// The tool, where the model takes one.
    pub tools: Vec<ToolSchema>,
}

/// What is to be summarised.
#[derive(Debug, Clone, Copy)]
pub struct Material<'a> {
    /// The summary of everything before.
    pub previous: Option<&'a Summary>,
    /// What goes.
    pub items: &'a [Arc<Item>],
    /// What the summary should dwell on.
    pub focus: Option<&'a str>,
}

/// What a model is asked, in at most so many tokens before anything is learnt (`estimate`): long outputs are shortened first, then everything, then
/// the oldest goes. Always at most that many, whatever there is to say.
pub fn ask_for_summary(_material: &Material<'_>, _form: Form, _most: u64) -> Asked {
    todo!()
}

/// What a model answered, as a summary. The error says what is wrong with it.
pub fn read_summary(_answer: &[Arc<Item>]) -> Result<Summary, String> {
    todo!()
}

/// A summary together with the one before it: directives are never dropped, unless it names the ones that were withdrawn; what it
/// calls a directive and nobody said in these words becomes a constraint.
pub fn merge(_previous: Option<&Summary>, _newer: Summary, _said: &[&str]) -> Summary {
    todo!()
}

/// The text of a summary, which begins with `[Compacted context summary]`, in at most so many tokens: what matters least is
/// shortened first. `dropped` is what is said about what went without a summary.
pub fn render_summary(_summary: Option<&Summary>, _dropped: Option<&str>, _most: u64) -> String {
    todo!()
}
