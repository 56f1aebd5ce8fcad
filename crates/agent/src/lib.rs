//! The turn: an input comes, the agent works with tools, and whatever happens to the process in between, the work is finished
//! or explained. This is also the library that other programs embed.
//!
//! # What this crate promises
//!
//! - **An input is on disk before it is acknowledged**, and before any model is asked. None is ever dropped.
//! - **After `kill -9` at any point of a turn** the session opens, shows what was open, and goes on: nothing that finished is
//!   done again, nothing that may have happened is done again blindly, and nothing is silently dropped.
//! - **One loop for everything.** [`decide`] looks at the [`State`] and says what to do; the worker does it and appends what
//!   happened. Streaming is how it is shown, not a second path.
//! - **Watchers hold up nobody**, and what they see is what is on disk.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `client` | one handle to a session, wherever it runs: send, follow, cancel, answer |
//! | `runtime` | many sessions in one process: opening, waking, the host lease, shutdown |
//! | `worker` | one session: the loop `decide → act → commit`, its waits, its inbox, its tools |
//! | `session` | pure: the state, `apply`, `decide`, what an epoch carries over, events |
//! | `turn` | acting: the model request, attempts, fallback, the outcome, tool calls, approval, the budget |
//! | `compaction` | making a context smaller: the plan (pure), the summary, the new epoch |
//! | `housekeeping` | what happens while no turn runs: idle work, retention, cleanup |
//! | `memory`, `history`, `fork` | memory jobs and tools; reading the past; a session that begins with the past of another |
//! | `replay` | from records to a state |
//! | `config`, `secrets` | what a runtime is told; the secrets that it keeps out of everything |
//!
//! # Example
//!
//! ```no_run
//! use longhaul_agent::{Config, Runtime};
//!
//! # async fn example() -> longhaul_agent::Result<()> {
//! let runtime = Runtime::open(Config::of_home("/home/me/.longhaul")?).await?;
//! let session = runtime.session("app:alice").await?;
//! let ended = session.send("hello").await?;
//! println!("{}", ended.text);
//! runtime.shutdown().await?;
//! # Ok(()) }
//! ```

// The public API of the library is documented; the other crates explain what needs it.
#![warn(missing_docs)]

mod client;
mod clock;
mod compaction;
pub mod config;
mod error;
pub mod fork;
mod history;
pub mod housekeeping;
mod memory;
mod replay;
mod runtime;
mod secrets;
pub mod session;
mod turn;
mod worker;

pub use client::cancel::CancelOutcome;
pub use client::context_report::{ContextReport, context_report, last_compaction};
pub use client::events::{EventSources, SessionEvents};
pub use client::follow::{Followed, Follower};
pub use client::request::{PendingRequest, Request, RequestOutcome};
pub use client::session::{Accepted, Client, Session, SessionStart, Settled};
pub use client::watch::{Watched, Watcher};
pub use config::Config;
pub use error::{Error, Result};
pub use runtime::{Runtime, RuntimeBuilder};
pub use secrets::redactor;
pub use turn::fallback::model_facts;
pub use turn::retry::RetryMode;

pub use longhaul_redact::{Redactor, StreamRedactor};
// What an embedding program needs of the other crates.
pub use longhaul_journal as journal;
pub use longhaul_keeper as keeper;
pub use longhaul_model as model;
pub use longhaul_protocol as protocol;
pub use longhaul_tools as tools;
