//! The terminal that people look at for weeks: an inline view below what was said, whose past is the terminal's own.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `markdown`, `highlighting`, `wrapping` | answers, as they come, as lines of styled text |
//! | `calls`, `diff` | tool calls as one line, and opened; what an edit changes |
//! | `typing` | the input: several lines, history, paste, completion |
//! | `transcript`, `status`, `details` | what happens, as lines; the last row; what stands on one line, opened |
//! | `view` | all of it together, and what keys do. Pure |
//! | `viewport`, `sgr` | from frames to bytes |
//! | `running` | the thread that shows and reads |
//! | `picking` | choosing where no conversation is open yet |
//! | `picker` | choosing one of a list, by typing a part of it |

mod calls;
mod details;
mod diff;
mod highlighting;
mod markdown;
mod picker;
mod picking;
mod running;
mod sgr;
mod status;
mod transcript;
mod typing;
mod view;
mod viewport;
mod wrapping;

pub(crate) use picker::Choice;
pub(crate) use picking::{Pick, pick};
pub(crate) use running::{Screen, Tell, Telling, let_go};
pub(crate) use status::{Facts, Saved};
pub(crate) use transcript::Transcript;
pub(crate) use typing::{History, Sources, Typing};
pub(crate) use view::{Activity, Pill, View};
