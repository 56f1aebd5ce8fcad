//! What the model sees, as pure functions: no clock, no disk, no network.
//!
//! # What this crate promises
//!
//! - **Every call has exactly one result, and every result its call**, whatever the records say ([`normalise`]) and whatever
//!   a compaction keeps ([`KeptWindow`]).
//! - **A context only grows at its end.** If one list of whole steps begins with another, so do their normalised
//!   lists. So a provider's cache stays valid, and cost stays linear.
//! - **The same parts give the same prompt** ([`system_prompt`]).
//! - **A token budget holds.** Summary prompts, summaries and pins never take more tokens than they are given, by [`estimate`].
//!   Texts are truncated between characters.
//! - **A directive is in the user's own words and stays until the user withdraws it** ([`merge_summaries`]).
//! - **Nothing looks like a message of the runtime** that is not one ([`neutralise_marks`]).
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `system_prompt` | the system prompt, whose text is in `system_prompt.md`; notes on changed surroundings |
//! | `normalise` | a list of items that every provider accepts |
//! | `token_estimate` | token estimates, and their calibration by what providers count |
//! | `budget` | the token budget of a context, and compaction thresholds |
//! | `kept_window` | what a compaction keeps verbatim, and which tool outputs become stubs |
//! | `summary` | summaries: prompt, parsing, merging, rendering |
//! | `pins` | what follows the summary: first request, files changed, todo list, tasks |
//! | `skill_list` | the list of skills that a context begins with; the text of the skills in use |
//! | `task_notes` | notifications of ended tasks, and notes on running ones |
//! | `structured` | asking a model for a structured answer, again if the answer is unusable; parsing the answer |
//! | `quotable`, `pasted_text` | the passages of an input that can be quoted alone; pasted text in an input |
//! | `marked_block` | text that a user sends along and has not said, in a fenced block |
//! | `content_words` | the words that say what a text is about |
//! | `breakdown` | the tokens of a context by its parts |
//! | `truncate` | truncating texts; neutralising text that looks like the runtime's |

mod breakdown;
mod budget;
mod content_words;
#[cfg(test)]
#[path = "histories_tests.rs"]
mod histories;
mod kept_window;
mod marked_block;
mod normalise;
mod pasted_text;
mod pins;
mod quotable;
mod skill_list;
mod structured;
mod summary;
mod system_prompt;
mod task_notes;
mod token_estimate;
mod truncate;

pub use breakdown::ContextBreakdown;
pub use budget::{CompactionThresholds, ContextBudget, compaction_threshold};
pub use content_words::ContentWords;
pub use kept_window::{ContextOutline, KeptWindow, StubPlan, is_stub, stub_text};
pub use marked_block::{marked_block, with_blocks};
pub use normalise::normalise;
pub use pasted_text::UserText;
pub use pins::{
    changed_files_pin, first_request_pin, parse_first_request_pin, render_pin, render_tasks, render_todo,
};
pub use quotable::quotable_passages;
pub use skill_list::{
    SkillLine, SkillList, SkillListRoom, render_active_skill, render_skill_list, unlisted_skills,
};
pub use structured::{
    AnswerForm, StructuredAsk, StructuredLimits, StructuredPrompt, answer_text, call_arguments, list_entries,
};
pub use summary::{
    ParsedSummary, SummaryMaterial, WRITE_SUMMARY, WrittenSummary, build_summary_prompt, merge_summaries,
    parse_rendered_summary, parse_summary, render_summary, user_messages,
};
pub use system_prompt::{
    DEFAULT_PROMPT_TEXT, InstructionAuthor, InstructionText, SystemPromptParts, environment_note,
    system_prompt,
};
pub use task_notes::{
    is_task_notification, running_tasks_note, task_notification, user_command_message, waiting_for_input_note,
};
pub use token_estimate::{TokenCalibration, estimate, estimate_bytes, estimate_items, estimate_text};
pub use truncate::{LINE_BREAKS, count_fitting_lines, max_bytes_for, neutralise_marks};
