//! What a session looks like to people. Events and records go in, blocks come out; blocks become plain text, styled lines or HTML.
//! Everything here is pure: no I/O, no clock, no terminal.
//!
//! # What this crate promises
//!
//! - **One interpretation.** Only the folds ([`Transcript`] for live events, [`StoredTranscript`] for records) know what events mean. A
//!   surface consumes [`Update`]s and picks a renderer.
//! - **Bounded memory.** A fold keeps what is open, nothing else. A finished [`Block`] is handed over with its update.
//! - **Safe output.** Whatever a model, a tool or a user wrote, rendered text contains no control characters that could drive a
//!   terminal, and rendered HTML contains no markup from a session.
//! - **Rows fit.** A styled line that was wrapped for a width is never wider.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `block` | [`Block`], its contents and states, and [`Update`]: what an event changed |
//! | `fold`, `stored` | from events to blocks; from the records of a stored session to blocks |
//! | `record_span` | where a fold of stored records, and a page of their blocks, may begin |
//! | `waiting_inputs` | inputs that no step has shown to the model yet |
//! | `notice` | one-line notices, in the same words on every surface |
//! | `plain` | plain output of a turn: the answer for stdout, notices for stderr |
//! | `log` | one line per update, for a process that serves many sessions |
//! | `terminal` | rows of a terminal: final ones and live ones |
//! | `page`, `html` | a stored session as a page of text, and as HTML |
//! | `record_line` | a record as one line |
//! | `call`, `reasoning`, `diff`, `todo` | tool calls, reasoning, edits and the todo list as styled lines |
//! | `markdown`, `highlight`, `wrap`, `style` | streaming Markdown, syntax highlighting, wrapping, styled text |
//! | `text`, `cost` | sanitizing and truncating, numbers and durations; tokens and cost |
//! | `local_time` | moments in the user's time zone |
//!
//! # Example
//!
//! ```
//! use longhaul_protocol::{At, Event, EventKind};
//! use longhaul_transcript::{Transcript, Verbosity, notice_text};
//!
//! let kind = EventKind::CompactStart { reason: "idle".into() };
//! let event = Event { seq: Some(7), at: At(0), session: "cli:demo".into(), turn: None, kind };
//!
//! let updates = Transcript::new().apply(&event);
//!
//! let notice = notice_text(&updates[0], Verbosity::Normal);
//! assert_eq!(notice.as_deref(), Some("compacting the context: filling up, and the session is idle"));
//! ```

mod block;
mod call;
mod cost;
mod diff;
mod fold;
mod highlight;
pub mod html;
mod local_time;
mod log;
mod markdown;
mod notice;
mod page;
mod plain;
mod question;
mod reasoning;
mod record_line;
mod record_span;
mod stored;
mod style;
mod terminal;
mod text;
mod todo;
mod waiting_inputs;
mod wrap;

pub use block::{
    Block, BlockContent, BlockId, BlockState, Call, CallResult, CompactionOutcome, Retry, TextTarget,
    TurnEnd, Update,
};
pub use call::{
    DiffHunk, call_detail_lines, call_head_lines, call_output, call_summary_line, diff_hunks,
    finished_call_lines, has_more_output, running_call_line,
};
pub use cost::{SessionCost, format_money};
pub use fold::Transcript;
pub use local_time::{format_date, format_moment, format_period, format_recent_moment, zone_name};
pub use log::log_line;
pub use notice::{
    Verbosity, call_text, compacted_by_text, mode_change_text, notice_text, question_text, task_text,
    turn_failure_text,
};
pub use page::page_text;
pub use plain::{PlainForm, PlainOutput, PlainRenderer};
pub use question::{question_lines, question_with_choices};
pub use reasoning::{reasoning_lines, reasoning_summary};
pub use record_line::record_line;
pub use record_span::{LastPage, find_fold_start, find_last_page, recorded_model};
pub use stored::{FoldStart, RunningTurn, StoredTranscript};
pub use style::{Color, Span, Style, StyledLine};
pub use terminal::{ReasoningDisplay, TerminalRenderer};
pub use text::{
    format_count, format_duration, format_elapsed, format_number, outcome_text, sanitize, shell_quoted,
    short_id, truncate,
};
pub use todo::{TodoMarks, pinned_todo_lines, todo_lines, todo_of_call};
pub use waiting_inputs::WaitingInput;
pub use wrap::{spans_width, text_width, truncate_line, wrap_line, wrap_spans};
