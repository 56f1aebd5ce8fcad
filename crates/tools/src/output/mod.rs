//! What a command printed, and how much of it the model reads.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `plain_text` | terminal output as plain text: without ANSI escape sequences and control codes |
//! | `truncate` | truncation of an output that is too long: its head and its tail |
//! | `reader`, `cut_edges` | reading a task's output without secrets, also where it is cut |
//! | `line_count` | how many lines a command has printed |
//! | `report` | what the model reads of a command or a task: a head, and as much of the output as fits |

mod cut_edges;
mod line_count;
mod plain_text;
mod reader;
mod report;
mod truncate;

pub(crate) use line_count::count_lines;
pub use plain_text::plain_text;
pub use reader::last_output_line;
pub(crate) use reader::{LINE_SETTLE_TIME, MAX_KEPT_OUTPUT_BYTES, OutputReader, OutputText, unix_millis_now};
pub(crate) use report::{
    FullOutput, fit_report, report_outcome, report_status, room_for_output, set_message,
};
pub use truncate::truncate_output;
pub(crate) use truncate::{TruncatedPart, truncate_middle};
