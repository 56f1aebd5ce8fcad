//! Long-term memory across sessions: extracting, consolidating, recalling.
//!
//! Phase 1 ([`extract`]) reads the new records of a session and writes what is worth remembering into the session's extracts.
//! Phase 2 ([`consolidate`]) turns new extracts of all sessions into pages. Both run in the background.
//!
//! # What this crate promises
//!
//! - **Every record is extracted exactly once.** An extract covers an exact range of a session's records, and the next one
//!   begins after it. A consolidation records in the same append how far it has read.
//! - **No session waits for it.** Nothing here writes a session's stream or takes its lease.
//! - **Only the user's words say what the user wants.** The records decide who said a thing, never the model that writes it
//!   down ([`attribute_speaker`]).
//! - **Every change of a page is a version** with its author, reason and sources, and can be undone ([`undo_change`]). A line that
//!   a person wrote stays until a person changes it.
//! - **Recall never leaves its scope** ([`recall`]).
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `scope` | which sessions share a memory |
//! | `background`, `lease` | model calls in the background, with retries; a lease that is renewed meanwhile |
//! | `call_totals` | how many model calls were made, and what they cost |
//! | `utterance` | who said what, by the records of a session |
//! | `unextracted` | how far a session is extracted, and how much is new |
//! | `extraction` | phase 1: prompt, parsing, the job |
//! | `provenance`, `quotation` | whose words an item is made of; quotations of the user |
//! | `page_set`, `page` | the pages of a scope, folded from their stream; the text of one page |
//! | `consolidation` | phase 2: prompt, parsing, validating edits, the job |
//! | `edit` | editing pages by hand: change, note, undo, history, diff (`line_diff`) |
//! | `context_preface` | what a context begins with: the core page and an index |
//! | `mirror_pages` | pages as Markdown files |
//! | `recall` | finding things again in pages, extracts and records |
//! | `stream_reader`, `text` | reading a stream page by page; one-line and truncated texts |

mod background;
mod call_totals;
mod consolidation;
mod context_preface;
mod edit;
mod error;
mod excluded_records;
mod extraction;
mod lease;
mod line_diff;
mod mirror;
mod page;
mod page_set;
mod provenance;
mod quotation;
mod recall;
mod scope;
mod stream_reader;
mod text;
mod unextracted;
mod utterance;

pub use background::{BackgroundModel, CallBudget, RedactFn, ReservedCall, Unbudgeted};
pub use call_totals::{MemoryCalls, consolidation_calls, extraction_calls};
pub use consolidation::{Consolidation, WRITE_PAGES, consolidate};
pub use context_preface::context_preface;
pub use edit::{
    CitedPlace, PageEdit, PageEdited, PageLogEntry, add_note, add_token_note, change_page, cited_places,
    page_diff, page_log, pages_citing, undo_change,
};
pub use error::{Error, Result};
pub use extraction::{Extraction, WRITE_EXTRACTED, extract};
pub use mirror::{MirrorReport, mirror_pages};
pub use page::check_page_name;
pub use page_set::{CORE_PAGE, Page, PageSet, PageVersion};
pub use provenance::{SpeakerEvidence, Vocabulary, attribute_speaker};
pub use quotation::find_quotation;
pub use recall::{
    Embedder, EmbeddingFinder, Finder, RecallBudget, RecallHit, RecallPlace, RecallScope, Recalled,
    embed_session, recall, recall_with, unindexed_notice,
};
pub use scope::{ScopeFn, ScopeKind, scope_of};
pub use unextracted::{UnextractedCounter, extracted_through, failed_through};
pub use utterance::{Utterance, UtteranceReader, untrusted_recalls};
