//! Sessions and turns. An input comes, and the agent works with tools. Whatever happens to the process meanwhile, the
//! work is finished or explained. This is also the library that other programs embed.
//!
//! # What this crate promises
//!
//! - **An input is on disk before it is acknowledged**, and before any model is asked. None is ever dropped.
//! - **After `kill -9` at any point of a turn** the session opens, shows what was open, and continues: nothing that
//!   finished is repeated, nothing that may have happened is repeated blindly, and nothing is silently dropped.
//! - **One loop for everything.** [`session::decide`] reads the [`session::State`] and returns the next action. The
//!   worker carries it out and appends what happened. Streaming only shows this, it is no second path.
//! - **A slow watcher delays no turn**, and what watchers see is what is on disk.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `client` | [`Session`], one handle wherever the session runs: send, follow, cancel, answer. [`Client`] makes handles without a runtime |
//! | `runtime` | [`Runtime`]: many sessions in one process; opening, waking, the host lease, shutdown; this process as a part of a node |
//! | `worker` | one session: the loop `decide → act → commit`, its waits, its inbox, its tools |
//! | [`session`] | pure: the state, `apply`, `decide`, what an epoch carries over, events |
//! | `turn` | acting: the model request, attempts, retry, fallback, the outcome, tool calls, approval, the budget |
//! | `spend` | the ledger of all model calls: reservations, limits, the statement |
//! | `compaction` | making a context smaller: the plan (pure), the summary, the new epoch |
//! | [`housekeeping`] | what happens while no turn runs: one scheduler for idle work, retention and cleanup |
//! | `session_servers`, `server_references`, `detached_servers` | the MCP servers of a session for its clients; what a message takes from them; without a runtime |
//! | `web`, `hosted_search` | the web tools as the config describes them; searches by the model's provider |
//! | `prompt` | what the system prompt is made of: the text, files with instructions, the session's surroundings |
//! | [`skills`], `work_folders` | the skills of a work folder: listed for the model, read on use, kept through compactions; trust in a project's, and in those that a session could change |
//! | `memory`, `history`, [`fork`] | memory jobs and tools; reading the past; a session that begins with the past of another |
//! | [`config`], `secrets` | settings, their sources and the trust list; what is redacted |
//! | [`model_list`], [`memory_pages`] | providers and models; the pages of memory: for people and programs |
//! | `subagents` | sessions that work for another session: starting, waiting, stopping, limits, kinds |
//! | [`tasks`] | the tasks of a home, for people and programs: list, read their output, follow, kill |
//! | [`schedules`] | turns that begin by themselves: slots, runs, pauses; the runner of the host |
//! | `journal_place`, `cluster_token`, `http_node_link` | the file or database of the journal; the secret of a cluster's nodes, and how they reach each other |
//! | `replay` | from records to a state |
//!
//! # Example
//!
//! Everything that an embedding program needs is re-exported here. `examples/embed.rs` runs a command and shows its events.
//!
//! ```
//! use std::sync::Arc;
//!
//! use longhaul_agent::model::ScriptedModel;
//! use longhaul_agent::{Runtime, keeper};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Commands run under keepers, and a keeper is this program again: this call comes first.
//!     keeper::main_if_asked();
//!     tokio::runtime::Runtime::new()?.block_on(async {
//!         let home = std::env::temp_dir().join(format!("longhaul-example-{}", std::process::id()));
//!         let model = Arc::new(ScriptedModel::from_json(r#"["Hello, Alice."]"#)?);
//!         let runtime = Runtime::builder(&home).model(model).open().await?;
//!         let session = runtime.session("app:alice").await?;
//!
//!         let ended = session.send("Hello!").await?;
//!
//!         assert_eq!(ended.text, "Hello, Alice.");
//!         runtime.shutdown().await?;
//!         # std::fs::remove_dir_all(home)?;
//!         Ok(())
//!     })
//! }
//! ```

// The public API of the library is fully documented. The other crates document only what needs an explanation.
#![warn(missing_docs)]

mod client;
mod clock;
mod cluster_token;
mod compaction;
pub mod config;
mod detached_servers;
mod error;
pub mod fork;
mod history;
mod hosted_search;
pub mod housekeeping;
#[cfg(feature = "postgres")]
mod http_node_link;
mod journal_place;
mod memory;
pub mod model_list;
mod project_approvals;
mod prompt;
mod recall;
mod replay;
mod runtime;
pub mod schedules;
mod secrets;
mod server_references;
pub mod session;
mod session_servers;
pub mod skills;
mod spend;
mod subagents;
pub mod tasks;
mod turn;
mod web;
mod work_folders;
mod worker;

pub use client::accepted::{Accepted, AcceptedOrder, InboxInput, accepted_after, inbox_input};
pub use client::call_output::call_output;
pub use client::cancel::CancelOutcome;
pub use client::context_report::{ContextReport, context_report, last_compaction};
pub use client::creation::SessionStart;
pub use client::detached::Client;
pub use client::events::{EventSources, SessionEvents};
pub use client::follow::{Followed, Follower, attend, follow_unattended};
pub use client::overview::{SessionActivity, SessionOverview, session_overview};
pub use client::question_index::SessionQuestion;
pub use client::recorded_events::RecordedEvents;
pub use client::request::{AttachedImage, PendingRequest, Request, RequestOutcome, Settled, UserMessage};
pub use client::session::Session;
pub use client::session_title::{SessionTitle, session_title};
pub use client::status::{SessionNode, SessionStatus};
pub use client::turn_steps::{
    AnswerText, RecordedStep, RecordedTurn, TurnFollower, TurnLocator, TurnPlace, TurnStep, TurnTarget,
    find_answered, find_turn,
};
pub use client::useless_order::{nothing_to_continue, nothing_to_do, nothing_to_retry};
pub use client::watch::{Attendance, Watched, Watcher};
pub use clock::now;
pub use cluster_token::ClusterToken;
pub use compaction::is_too_short_to_compact;
pub use config::Config;
pub use detached_servers::{attach_references, check_servers, configured_servers};
pub use error::{Error, Result};
#[cfg(feature = "postgres")]
pub use http_node_link::HttpNodeLink;
pub use journal_place::{DatabaseCheck, JournalPlace, try_node_address};
pub use memory::pages as memory_pages;
pub use prompt::instruction_files::instruction_files;
pub use runtime::{Runtime, RuntimeBuilder};
pub use secrets::redactor;
pub use session_servers::SessionServers;
pub use spend::{
    LimitReached, LimitStatus, SoftLimits, Statement, StatementBy, StatementItem, StatementQuery,
    limit_status, statement, statement_since,
};
pub use subagents::kinds::{KindFile, kind_files};
pub use subagents::lifecycle::{DeletedTree, delete_tree, restore_tree, trash_tree};
pub use subagents::tree::{SubagentReport, list_subagents, parent_of, subagent_sessions};
pub use turn::fallback::{model_facts, model_spec};
pub use turn::retry::RetryMode;
pub use web::{configured_searcher, network_guard};

pub use longhaul_context::user_command_message;
pub use longhaul_redact::{Redactor, StreamRedactor};
// Re-exports for embedding programs.
pub use longhaul_journal as journal;
pub use longhaul_keeper as keeper;
pub use longhaul_mcp as mcp;
pub use longhaul_model as model;
pub use longhaul_protocol as protocol;
pub use longhaul_tools as tools;
