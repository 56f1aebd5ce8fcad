//! The terminal that people look at for weeks: an inline view below what was said, whose past is the terminal's own.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `input` | the input: several lines, history, paste, completion |
//! | `transcript`, `styled_text` | the session as rows, rendered by the crate `transcript` |
//! | `status_line`, `detail_view` | the last row; calls and reasoning, opened |
//! | `pinned_todo`, `task_pill`, `mode_note` | rows above the input: the todo list, running tasks, the mode just chosen |
//! | `view` | all of it together, and what keys do. Pure |
//! | `viewport`, `sgr` | from frames to bytes |
//! | `screen`, `screen_update` | the thread that shows and reads; what it is told |
//! | `editor`, `notifier` | the user's editor with the typed text; a signal to a user who looks elsewhere |
//! | `key_table`, `repeated_key` | all keys, for `/help`; keys that act when they are pressed twice |
//! | `picker` | choosing one of a list, by typing a part of it; also where no conversation is open yet |
//! | `chat` | the conversation loop, on this screen or line by line; the slash commands |
//! | `terminal` | the terminal as it was before |

pub(crate) mod chat;
mod detail_view;
pub(crate) mod editor;
mod input;
mod key_table;
mod mode_note;
mod notifier;
mod permission_keys;
mod picker;
mod pinned_todo;
mod repeated_key;
mod screen;
mod screen_update;
mod sgr;
mod status_line;
mod styled_text;
mod task_pills;
pub(crate) mod terminal;
mod transcript;
mod view;
mod viewport;

pub(crate) use detail_view::{OutputPages, OutputPagesWriter};
pub(crate) use input::{CompletionSources, History, InputField, ServerMenu};
pub(crate) use key_table::key_help;
pub(crate) use notifier::Notifier;
pub(crate) use picker::PickerItem;
pub(crate) use picker::standalone::{PickOutcome, pick};
pub(crate) use pinned_todo::marks_from_environment;
pub(crate) use screen::{Screen, ScreenHandle, release_terminal};
pub(crate) use screen_update::{Activity, OutputUpdate, ScreenUpdate};
pub(crate) use status_line::{SaveState, StatusFacts};
pub(crate) use task_pills::TaskPill;
pub(crate) use transcript::Transcript;
pub(crate) use view::View;
