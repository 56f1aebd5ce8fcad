//! The terminal that people look at for weeks: an inline view below what was said, whose past is the terminal's own.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `markdown`, `highlight`, `wrap` | answers, as they come, as lines of styled text |
//! | `calls`, `diff` | tool calls as one line, and opened; what an edit changes |
//! | `input` | the input: several lines, history, paste, completion |
//! | `transcript`, `status_line`, `detail_view` | what happens, as lines; the last row; what stands on one line, opened |
//! | `view` | all of it together, and what keys do. Pure |
//! | `viewport`, `sgr` | from frames to bytes |
//! | `screen` | the thread that shows and reads |
//! | `picker` | choosing one of a list, by typing a part of it; also where no conversation is open yet |
//! | `chat` | the conversation loop, on this screen or line by line; the slash commands |
//! | `terminal` | the terminal as it was before |

mod calls;
pub(crate) mod chat;
mod detail_view;
mod diff;
mod highlight;
mod input;
mod markdown;
mod picker;
mod screen;
mod sgr;
mod status_line;
pub(crate) mod terminal;
mod transcript;
mod view;
mod viewport;
mod wrap;

pub(crate) use input::{CompletionSources, History, InputField};
pub(crate) use picker::PickerItem;
pub(crate) use picker::standalone::{PickOutcome, pick};
pub(crate) use screen::{Screen, ScreenHandle, ScreenUpdate, release_terminal};
pub(crate) use status_line::{SaveState, StatusFacts};
pub(crate) use transcript::Transcript;
pub(crate) use view::{Activity, TaskPill, View};
