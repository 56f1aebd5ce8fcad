//! What is remembered across sessions, and made while nobody waits for it.
//!
//! # What this crate promises
//!
//! - **Nothing is gone through twice, and nothing is left out.** An extract covers an exact range of a session's records, and the next
//!   one begins after it ([`extract`]). Consolidating carries in its one append how far it has read ([`consolidate`]).
//! - **No session waits for it.** Nothing here writes a session's stream or takes its lease.
//! - **Only a person's words say what that person wants.** Who said a thing is decided by the records that it came from, never by the
//!   model that writes it down.
//! - **Every change of a page is a version** that says who, why and from what, and can be taken back ([`undo_change`]). What a person wrote
//!   stays as it is until a person changes it.
//! - **Recall never leaves its scope** ([`recall`]).
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `scope` | whose memory a session has |
//! | `calling` | a model call that nobody waits for, with its retries; a lease that is kept meanwhile |
//! | `answering` | from an answer to the entries of the list that was asked for |
//! | `utterance`, `span` | who said what, by the records; the part of a session that has yet to be gone through |
//! | `grounding` | whose words a thing is made of |
//! | `extracting` | phase 1: what is worth remembering in a span |
//! | `book`, `preface` | pages, as folding their stream gives them; what a context begins with |
//! | `page` | one page as text: names, sizes, its items |
//! | `changing`, `difference` | what people do to pages: edit, note, undo, log, diff |
//! | `consolidating` | phase 2: extracts become pages |
//! | `mirror_pages` | pages as files |
//! | `quote` | what the user said, word for word |
//! | `paging` | records from a place on |
//! | `recall` | finding things again |
//! | `text` | cutting texts |

mod answering;
mod book;
mod calling;
mod changing;
mod consolidating;
mod difference;
mod error;
mod extracting;
mod grounding;
mod mirror;
mod page;
mod paging;
mod preface;
mod quote;
mod recall;
mod scope;
mod span;
mod text;
mod utterance;

pub use book::{CORE_PAGE, Page, PageSet, PageVersion};
pub use calling::{Asked, BackgroundModel, Form, RedactFn};
pub use changing::{
    PageEdit, PageEdited, PageLogEntry, add_note, change_page, page_diff, page_log, pages_citing, undo_change,
};
pub use consolidating::{Consolidation, WRITE_PAGES, consolidate};
pub use error::{Error, Result};
pub use extracting::{Extraction, WRITE_EXTRACTED, extract};
pub use grounding::{SpeakerEvidence, Vocabulary, attribute_speaker};
pub use mirror::{MirrorReport, mirror_pages};
pub use page::check_page_name;
pub use quote::find_quotation;
pub use recall::{Finder, LexicalFinder, RecallHit, RecallPlace, RecallScope, recall};
pub use scope::{ScopeFn, ScopeKind, scope_of};
pub use span::{UnextractedCounter, extracted_through};
pub use utterance::{Utterance, UtteranceReader, untrusted_recalls};
