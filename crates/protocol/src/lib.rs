//! The plain data that flows through Longhaul. No I/O, no clock, no async: everything here can be built in a
//! test with a literal, compared with `==`, and written to JSON and back without a change.
//!
//! # What this crate promises
//!
//! - **One form.** The JSON of every type is pinned by a file in `fixtures/` that a test reads back byte for
//!   byte. What a journal holds today is readable by every later version.
//! - **Formats only grow.** A field that a reader doesn't know is ignored, a record of an unknown kind is kept
//!   with its bytes ([`SessionRecord::Unknown`]), and nothing is ever re-serialised on the way through.
//! - **No foreign JSON inside a body.** What a person, a model or a program wrote is always a string. So whoever
//!   walks a body can trust its structure: [`blob_refs`] finds exactly the blobs that we put there.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `id`, `hash`, `time`, `stream` | small values: typed ULIDs, 32-byte hashes, milliseconds, names of streams |
//! | `item` | what a model reads and writes: text, reasoning, calls, results, images, notes |
//! | `tool` | a tool as the model is told of it |
//! | `record` | one durable fact, and the table macro that ties a kind to its body |
//! | `session`, `inbox`, `names`, `memory` | the kinds of record in each family of streams |
//! | `event` | what watchers see |
//! | `json_path` | paths in JSON, also those that are no UTF-8 |
//! | `printable` | paths and names from outside, as they may be shown |
//!
//! # Example
//!
//! ```
//! use longhaul_protocol::{InboxRecord, Input, InputId, JoinMode};
//!
//! let id: InputId = "01JCZ5M0000000000000000000".parse()?;
//! let input = InboxRecord::Input(Input { id, text: "hello".into(), images: vec![], mode: JoinMode::Join });
//! let record = input.encode();
//! assert_eq!(record.kind, "input");
//! assert_eq!(record.body.get(), r#"{"id":"01JCZ5M0000000000000000000","text":"hello","mode":"join"}"#);
//! # Ok::<(), longhaul_protocol::ParseError>(())
//! ```

mod blob;
mod event;
mod hash;
mod id;
mod inbox;
mod item;
pub mod json_path;
mod memory;
mod names;
mod printable;
mod record;
mod session;
mod stream;
mod time;
mod tool;

pub use blob::{BlobRef, blob_refs};
pub use event::{Event, EventKind};
pub use hash::Hash;
pub use id::{AttemptId, CallId, InputId, OrderId, ParseError, QuestionId, SessionId, TaskId};
pub use inbox::{InboxRecord, Input, JoinMode, Order, OrderKind};
pub use item::{Image, Item, Role};
pub use json_path::JsonPath;
pub use memory::{
    ChangedBy, ExtractRecord, Extracted, ExtractedItem, ExtractedKind, ItemSource, MemoryRecord, PageChange,
    PagesChanged, Source, Speaker,
};
pub use names::{
    NamesRecord, SessionDeleted, SessionNamed, SessionPinned, SessionRenamed, SessionRestored, SessionTrashed,
};
pub use printable::{Printable, PrintablePath, is_misleading, printable};
pub use record::{Body, DecodeError, Gone, NewRecord, Record, Seq};
pub use session::*;
pub use stream::StreamName;
pub use time::At;
pub use tool::{
    HISTORY_READ, HISTORY_SEARCH, MEMORY_NOTE, MEMORY_READ, MEMORY_SEARCH, ToolSchema, is_recall_tool,
};
