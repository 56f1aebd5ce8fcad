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
//! | `state`, `apply` | what a session is: what folding its records gives; of epochs (`apply/epoch`), and of what was erased (`apply/gone`). Pure |
//! | `carrying` | what outlives an epoch: from a state to its record, and back. Pure |
//! | `decide`, `repeats` | what to do next. Pure |
//! | `compaction` | when a context is made smaller, and how. Pure |
//! | `events` | from records to events. Pure |
//! | `worker`, `inbox`, `attending`, `recording` | one task a session: what it takes, decides and does; how it waits; how it appends what happened |
//! | `lineup`, `asking`, `attempt`, `concluding` | who may be asked; what is asked of whom; one attempt, with its crash table; what follows from how it went |
//! | `compacting` | making a context smaller, with its crash table: having it summarised, and the epoch that begins with that |
//! | `calls`, `outputs` | running the calls of an answer, with their crash table |
//! | `history` | tools with which the model reaches all of its session |
//! | `approving`, `questions` | whether a call may run; asking a person, and answering from any process |
//! | `tasks` | commands that go on in the background, with their crash table: what is known of them, watching, telling |
//! | `tidying`, `removal` | removing what commands leave behind, however it is nested |
//! | `load`, `equipment`, `fitting` | what a worker begins with; whether that leaves room |
//! | `forking` | a session that begins with the past of another |
//! | `context_report` | how full a context is, and of what, for people |
//! | `runtime`, `session`, `shared`, `host` | many sessions; one as a program holds it; what it shares with its worker; those that nobody holds |
//! | `retention` | which sessions are put away, and what goes for good |
//! | `idle` | what is done for sessions while they are idle, and when they are |
//! | `spending`, `chronology` | what all sessions have cost today; finding a record by its time |
//! | `following` | seeing what happens in a session that another process runs, and telling others of those here |
//! | `watch`, `cancel`, `failures` | watchers; ending a turn that somebody else runs; sessions that fail again and again |
//! | `config` | what a runtime is told: files, a variable and flags, checked, one over the other |
//! | `redaction` | what must never be written or shown, taken out of texts, bodies and streams of deltas. Pure |
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

mod apply;
mod approving;
mod asking;
mod attempt;
mod attending;
mod calls;
mod cancel;
mod carrying;
mod chronology;
mod clock;
mod compacting;
mod compaction;
mod concluding;
mod config;
mod context_report;
mod decide;
mod equipment;
mod error;
mod events;
#[cfg(test)]
#[path = "facts_tests.rs"]
mod facts;
mod failures;
mod fitting;
mod following;
mod forking;
mod history;
mod host;
mod idle;
mod inbox;
mod lineup;
mod load;
mod memory;
mod outputs;
mod questions;
mod recording;
mod redaction;
mod removal;
mod repeats;
mod retention;
mod runtime;
mod session;
mod shared;
mod spending;
mod state;
mod tasks;
mod tidying;
mod watch;
mod work;
mod worker;

pub use cancel::{Cancelled, cancel_turn};
pub use compacting::plan_compaction;
pub use compaction::{Asked, Compaction, Space, Trigger};
pub use config::{
    AgentSettings, Approval, ApprovalRule, ApprovalSettings, Beyond, Config, ConfigFile, ContextSettings,
    ExecSettings, JournalSettings, LimitSettings, MemoryScope, MemorySettings, ModelSettings, Origins,
    ProjectFile, ProjectInstructions, RetrySettings, SandboxMode, SandboxNetwork, SandboxSettings,
    SecretSettings, ServerSettings, SessionSettings, Settings, ShownKey, Sources, Standing, Summary,
    TrustList, TrustedFile, Wake, WithoutSandbox, config_schema, without_password,
};
pub use context_report::{ContextReport, context_report, last_compaction};
pub use decide::{Action, Ending, Limits, Policy, decide};
pub use error::{Error, Result};
pub use events::event_of;
pub use following::{Followed, Follower, follow};
pub use forking::{Forked, fork_session};
pub use idle::IdleStatus;
pub use lineup::{Patience, facts_of, redactor};
pub use load::{load, load_through};
pub use longhaul_context::{Breakdown, Checks, Room};
pub use longhaul_keeper as keeper;
pub use questions::{answer_question, unanswered};
pub use redaction::{Holding, Redactor};
pub use repeats::Repeats;
pub use retention::{Mode, Pruned, Pruning, Reason, prune};
pub use runtime::{Parts, Runtime};
pub use session::{Accepted, Session, compaction_by, input_at};
pub use state::{Again, Attempt, CallState, Counting, Created, Cut, Epoch, Reported, State, Turn, Waiting};
pub use tasks::{SessionTasks, Settled, Stall, TaskState, Told};
pub use watch::{Watched, Watcher};
pub use work::Work;
