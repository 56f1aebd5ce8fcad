//! What the model sees, as pure functions: no clock, no disk, no network.
//!
//! # What this crate promises
//!
//! - **Every call has exactly one result, and every result its call**, whatever the records say ([`normalise`]), and also in what
//!   a compaction keeps ([`ContextOutline`]).
//! - **A context only grows at its end.** What [`normalise`] makes of a list of whole steps is the beginning of what it makes
//!   of any longer one, so a provider's cache holds and cost stays linear.
//! - **The same parts, the same prompt.** [`system_prompt`] depends on nothing but what it is given.
//! - **What is given a size has it.** Whatever there is to say, a request for a summary, a summary and what is pinned take no more
//!   tokens than they may, by [`estimate`], and are cut between characters.
//! - **A directive is what a person said, and stays until it is withdrawn** ([`merge_summaries`]), however many summaries come after it.
//! - **Nobody's words look like the runtime's.** What programs printed and what models wrote can't begin a message of its own.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `prompt` | the system prompt |
//! | `notices` | what it is told of tasks: notifications of their ends, notes on those that run |
//! | `normalise` | a list of items that every provider accepts |
//! | `tokens` | how much room it takes: an estimate that learns from what providers count |
//! | `room` | how much room there is, and from where on a context should be made smaller |
//! | `outline` | what of it stays when it is made smaller, and which outputs become stubs |
//! | `summary` | what a model is asked for a summary, what it answers, and what becomes of that |
//! | `preface` | what a compacted context begins with after its summary: pins, the todo list, tasks |
//! | `quotable_passages`, `pasted` | what of an input can be quoted alone; what of it the user only pasted |
//! | `words` | the words that say what a text is about |
//! | `breakdown` | what a context is made of, for people |
//! | `text` | cutting texts, and taking from them what could be mistaken |

mod breakdown;
#[cfg(test)]
#[path = "histories_tests.rs"]
mod histories;
mod normalise;
mod notices;
mod outline;
mod passages;
mod pasted;
mod preface;
mod prompt;
mod room;
mod summary;
mod text;
mod tokens;
mod words;

pub use breakdown::ContextBreakdown;
pub use normalise::normalise;
pub use notices::{is_task_notification, running_tasks_note, task_notification, waiting_for_input_note};
pub use outline::{ContextOutline, KeptWindow, StubPlan, is_stub, stub_text};
pub use passages::quotable_passages;
pub use pasted::UserText;
pub use preface::{
    FIRST_REQUEST_PIN, MEMORY_MARK, changed_files_pin, first_request_pin, parse_first_request_pin,
    render_pin, render_tasks, render_todo,
};
pub use prompt::{SystemPromptParts, system_prompt};
pub use room::{CompactionThresholds, ContextBudget, compaction_threshold};
pub use summary::{
    AnswerForm, ParsedSummary, StructuredPrompt, SummaryMaterial, WRITE_SUMMARY, WrittenSummary,
    build_summary_prompt, merge_summaries, parse_rendered_summary, parse_summary, render_summary,
    user_messages,
};
pub use text::{max_bytes_for, neutralise_marks};
pub use tokens::{TokenCalibration, estimate, estimate_bytes, estimate_items, estimate_text};
pub use words::ContentWords;
