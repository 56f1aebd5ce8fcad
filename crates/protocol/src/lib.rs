//! The plain data that flows through Longhaul. No I/O, no clock, no async: a test can build every value with a literal,
//! compare it with `==`, and write it to JSON and back without a change.
//!
//! # What this crate promises
//!
//! - **One form.** The JSON of every type is pinned by a file in `fixtures/`, which a test reads back byte for byte. Every
//!   later version can read what a journal holds today.
//! - **Formats only grow.** Readers ignore unknown fields, and keep records of an unknown kind with their bytes
//!   ([`SessionRecord::Unknown`]). Nothing is serialised again on its way through.
//! - **No foreign JSON inside a body.** Text from a person, a model or a program is always a string. So the structure of a
//!   body can be trusted: [`blob_refs`] finds exactly the blobs that the runtime put there.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `id`, `hash`, `time`, `stream` | small values: typed ULIDs, 32-byte hashes, milliseconds, names of streams |
//! | `item` | what a model reads and writes: text, reasoning, calls, results, images, notes |
//! | `tool` | a tool's definition, and the names of the recall tools |
//! | `record` | one durable fact, and the macro that ties each kind to the type of its body |
//! | `blob` | references to blobs in a body |
//! | `session`, `inbox`, `names`, `memory`, `schedule`, `spend`, `tokens` | the kinds of record in each family of streams |
//! | `command_report` | how a command or a task is doing: the head of a result, for the model and for programs |
//! | `event` | what watchers see |
//! | `json_path` | paths in JSON, also those that are not UTF-8 |
//! | `printable` | paths and names from outside, escaped for display |
//! | `words` | splitting text into words, also in scripts without spaces |
//!
//! # Example
//!
//! ```
//! use longhaul_protocol::{InboxRecord, Input, InputId, JoinMode};
//!
//! let id: InputId = "01JCZ5M0000000000000000000".parse()?;
//! let input = InboxRecord::Input(Input::new(id, "hello", JoinMode::Join));
//! let record = input.encode();
//! assert_eq!(record.kind, "input");
//! assert_eq!(record.body.get(), r#"{"id":"01JCZ5M0000000000000000000","text":"hello","mode":"join"}"#);
//! # Ok::<(), longhaul_protocol::ParseError>(())
//! ```

mod blob;
mod command_report;
mod event;
mod hash;
mod id;
mod inbox;
mod item;
pub mod json_path;
mod memory;
mod names;
mod openai;
mod printable;
mod record;
mod schedule;
mod sender;
mod session;
mod single_quoted;
mod spend;
mod stream;
mod subagent;
mod time;
mod tokens;
mod tool;
mod words;

pub use blob::{BlobRef, blob_refs};
pub use command_report::CommandReport;
pub use event::{Event, EventKind};
pub use hash::Hash;
pub use id::{AttemptId, CallId, InputId, OrderId, ParseError, QuestionId, SessionId, TaskId};
pub use inbox::{ClientRequest, InboxRecord, Input, JoinMode, Order, OrderKind};
pub use item::{Image, Item, Role, with_picture_note};
pub use json_path::JsonPath;
pub use memory::{
    ChangedBy, ExtractRecord, Extracted, ExtractedItem, ExtractedKind, ExtractionFailed, ItemSource,
    MemoryRecord, PageChange, PagesChanged, Source, Speaker,
};
pub use names::{
    ForkRequested, NamesRecord, SessionDeleted, SessionNamed, SessionPinned, SessionPlaced, SessionRenamed,
    SessionRestored, SessionTrashed,
};
pub use openai::{AnsweredQuestion, ConversationBound, OpenaiRecord, ResponseDeleted};
pub use printable::{Printable, PrintablePath, is_invisible, is_misleading, printable};
pub use record::{Body, DecodeError, Gone, NewRecord, Record, Seq};
pub use schedule::{
    LastRun, MissedPolicy, OverlapPolicy, RunOutcome, ScheduleAdded, ScheduleAuthor, ScheduleBegan,
    ScheduleChanged, ScheduleCheckpoint, ScheduleDeleted, SchedulePaused, ScheduleRecord, ScheduleResumed,
    ScheduleRunRequested, ScheduleSpec, ScheduleTerms, SchedulesRecord, SlotAction, SlotDecided, SlotEnded,
    SlotFired,
};
pub use sender::Sender;
pub use session::*;
pub use single_quoted::single_quoted;
pub use spend::{
    Cause, OpenReservation, SpendHolder, SpendOpened, SpendRecord, SpendRefused, SpendReserved, SpendSettled,
    SpendSource, SpendTotal, SpentRow, SpentTokens,
};
pub use stream::StreamName;
pub use subagent::{
    Ancestor, ChildAdmitted, ChildReleased, ChildSession, ParentLink, ScopedTarget, TreeRecord,
};
pub use time::At;
pub use tokens::{TokenCreated, TokenRecord, TokenRevoked, TokenScope};
pub use tool::{
    MEMORY_NOTE, RECALL, RECALL_READ, SCHEDULE, ToolSchema, current_tool_name, former_tool_names,
    is_recall_tool, renamed_tool,
};
pub use words::{WordRun, is_hangul, is_unspaced, is_wordlike, word_runs};
