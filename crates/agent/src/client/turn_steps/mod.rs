//! One turn as a client shows it that asked for it: typed steps, the same from a live session and from its records. Surfaces map
//! these steps to their own form, and need to know nothing else about records.
//!
//! Text comes in pieces whose bounds depend on the text alone. So a client that comes back gets the same pieces, however
//! the model's server had split the text.
//!
//! | a model call ends | is on record | a client that comes later gets |
//! | --- | --- | --- |
//! | whole | its text | the same pieces |
//! | broken, and is retried | its text as far as any client saw it | the same pieces, then that they don't count |
//! | by the death of the process | its text but for the last moment, which clients may have seen | that they don't count, and none of the pieces |
//! | the same, after a complete tool call | the text before that call | these pieces; what followed them may be lost |
//!
//! | module | what it holds |
//! | --- | --- |
//! | `fold` | from records and live events to steps; pure |
//! | `open_answer` | the text of the model call that is open, and its pieces; pure |
//! | `answer_text` | the messages of a turn as one text; pure |
//! | `follower`, `recorded` | the steps of a turn as they happen; those that are on record |
//! | `place` | where a turn is in its session |

mod answer_text;
mod fold;
mod follower;
mod open_answer;
mod place;
mod recorded;

pub use answer_text::AnswerText;
pub use fold::{TurnLocator, TurnStep, TurnTarget};
pub use follower::TurnFollower;
pub use place::{TurnPlace, find_answered, find_turn};
pub use recorded::{RecordedStep, RecordedTurn};
