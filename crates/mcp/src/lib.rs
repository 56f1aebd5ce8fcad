//! Other people's tools: a client of MCP servers.
//!
//! # What this crate promises
//!
//! - **A server costs only its own tools.** One that is slow, dead or answers nonsense fails its own calls, with the reason.
//! - **No server is left behind.** A server's program runs under a keeper that ends it when the runtime's connection closes,
//!   whatever closed it. Sessions of one folder share it; after `idle_s` without a call it is ended.
//! - **A server gets nothing that was not named**: it runs in the sandbox of the work folder, with the variables that its
//!   settings name. Its results are data, like every tool's.
//! - **The tools of an epoch don't change.** They are sorted, and recorded with the epoch; what changes later is told in a note.
//! - **After a crash nothing is repeated blindly.** A task of a server is polled again by its recorded id. Any other call that
//!   may have happened is told as unknown.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `settings`, `settings_check`, `project_file` | `[mcp]`; what is wrong in it; the `.mcp.json` of a project |
//! | `pool`, `folder_servers` | all servers of a runtime; those of a folder, and the tools that they offer to an epoch |
//! | `server`, `server_phase`, `host`, `status` | one server: started, shared, ended; which start its phase belongs to; what all share; its state for people |
//! | `launch`, `output_filter` | its program under a keeper; what it prints |
//! | `connection`, `pages`, `listing`, `handler`, `open_calls` | the protocol: listing, calling, tasks, cancelling; what a server asks of us |
//! | `http_connection`, `http_client`, `event_limit` | the same over HTTP: headers, login, limits |
//! | `login` | logins at HTTP servers (OAuth): given by the user, kept private, renewed |
//! | `catalogue` | the names, schemas and effects of its tools |
//! | `remote_tool`, `remote_task`, `tools_find` | the tools for the model: called directly, waited for as a task, or found by search |
//! | `content`, `content_list`, `prompt_arguments` | resources and prompts for messages: read, listed, filled in |
//! | `argument_check`, `result_content`, `elicitation` | arguments before a call, results after it, questions during it |

#![allow(
    clippy::result_large_err,
    reason = "the error of a call is its result, and there is one for each call"
)]

mod argument_check;
mod catalogue;
mod connection;
mod content;
mod content_list;
mod elicitation;
mod error;
mod event_limit;
mod folder_servers;
mod handler;
mod host;
mod http_client;
mod http_connection;
mod launch;
mod listing;
mod login;
mod open_calls;
mod output_filter;
mod pages;
mod pool;
mod project_file;
mod prompt_arguments;
mod remote_task;
mod remote_tool;
mod result_content;
mod server;
mod server_phase;
mod settings;
mod settings_check;
mod status;
mod tools_find;

pub use content::ServerContent;
pub use content_list::{ContentList, PromptEntry, PromptParameter, ResourceEntry};
pub use error::{Error, Result};
pub use folder_servers::{FolderServers, ToolChanges, ToolOffer, is_mcp_tool};
pub use launch::ServerPlace;
pub use login::{Login, LoginState, stored_secrets};
pub use pool::McpServers;
pub use project_file::{PROJECT_FILE, parse_project_file};
pub use settings::{McpSettings, ServerSettings, TransportKind, check_server_name};
pub use settings_check::check_settings;
pub use status::{ServerState, ServerStatus};
pub use tools_find::{TOOLS_CALL, search_tool_definitions, unwrap_tools_call};
