//! The tools of the agent: read, write and search files, keep a todo list, and run commands, within a scope.
//!
//! # What this crate promises
//!
//! - **Nothing outside the scope is read or written**, by any tool, through links, `..`, case or races.
//! - **Commands are confined to the same scope** by the system (the sandbox), with what programs need besides, and never with keys.
//! - **What will happen is known before it happens.** A call is prepared, recorded, and only then run ([`Tool`]).
//! - **A write is atomic**, keeps mode and owner, and fails if the file changed since the model read it. After a crash the file itself
//!   shows whether the write happened.
//! - **Arguments are never guessed.** A call that does not fit its schema is not run, and its result says what is wrong.
//! - **Everything is bounded**: memory, the size of results, and how long a cancelled search goes on.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `tool`, `function_tool` | the trait [`Tool`] for the runtime that calls it; tools made of one function |
//! | `call_line` | what a running call has to say to its session |
//! | `toolset`, `tools_reference` | all tools; the page `docs/tools.md`, made from them |
//! | `arguments`, `schema` | parsing the arguments that the model wrote; their JSON Schema |
//! | `files` | read_file, write_file, edit_file |
//! | `search` | list_files, find_files, search_text |
//! | `renamed` | calls of tools that have another name now |
//! | `todo` | the todo list |
//! | `ask_user` | questions of the agent to the user |
//! | `exec` | commands, each under a keeper of its own: timeout, background, task limit |
//! | `tasks` | task_output, task_kill; the end of a task, for its record |
//! | `output` | what a command printed: plain text, truncation, redaction, the report for the model |
//! | `approval` | approval rules: which calls run, which ask the user, which are denied |
//! | `shell` | a parser of command lines, and the analysis of what they would run |
//! | `scope` | the files that may be used, and the only way to open them |
//! | `sandbox` | what the system lets a command reach; protected paths (keys, credentials, startup files) |
//! | `git` | repositories in and around the work folder: guards against programs that git would run |
//! | `web` | P5: the one HTTP client for what is fetched on the model's behalf, and the addresses that it may reach |
//! | `small_file` | configuration and rules that the runtime reads by itself, opened once and checked |
//! | `blocking_run` | blocking work on threads of its own: cancellation, deadlines |
//! | `display`, `folder_stamp` | paths and texts for the model; validity of cached folder listings |
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use longhaul_protocol::SessionId;
//! use longhaul_tools::{Scope, ScopeConfig, StopSignal, ToolInvocation, file_tools};
//!
//! # let folder = std::env::temp_dir().join(format!("longhaul-tools-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(folder.join("work")).unwrap();
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! std::fs::write(folder.join("work/hello.txt"), "hello\n").unwrap();
//! let scope = Arc::new(Scope::new(&folder.join("work"), &ScopeConfig::default(), &folder.join("home")));
//! let tools = file_tools(scope);
//! let read_file = tools.iter().find(|tool| tool.definition().name == "read_file").unwrap();
//!
//! let call = ToolInvocation::new(SessionId::generate(), r#"{"path": "hello.txt"}"#);
//! let prepared = read_file.prepare(&call).await.unwrap();
//! let (_handle, stop) = StopSignal::pair();
//! let outcome = (prepared.run)(stop).await;
//!
//! assert_eq!(outcome.content, "hello\n");
//! # });
//! # std::fs::remove_dir_all(folder).unwrap();
//! ```

#![allow(clippy::result_large_err, reason = "the error of a call is its result, and there is one a call")]

mod approval;
mod arguments;
mod ask_user;
mod blocking_run;
mod call_line;
mod display;
mod exec;
mod files;
mod folder_stamp;
mod function_tool;
mod git;
mod output;
mod reference;
mod renamed;
mod sandbox;
mod schema;
mod scope;
mod search;
mod shell;
mod small_file;
mod tasks;
mod todo;
mod tool;
mod toolset;
mod web;

pub use approval::{
    ApprovalAction, ApprovalPolicy, ApprovalVerdict, InvalidRule, JudgedCall, ToolApprovalRule,
    describe_grant, is_granted, only_looks, suggest_grant,
};
pub use arguments::{parse as parse_arguments, quoted_value};
pub use ask_user::{UserQuestion, ask_user_tool};
pub use call_line::{CallLine, CallMessage, CallMessageContent, CallQuestion};
pub use display::truncate_with_ellipsis;
pub use exec::{ExecSettings, ExecTool, command_environment};
pub use files::{Attachment, omissions_of_diff, unified_diff};
use function_tool::function_tool;
pub use git::{
    GitCheckout, RepositoryTracker, RepositoryWarning, git_checkout, git_root, is_work_tree_clean,
};
pub use output::{last_output_line, plain_text, truncate_output};
pub use reference::tools_reference;
pub use renamed::renamed_call;
pub use sandbox::{Sandbox, SandboxFallback, SandboxMode, SandboxedCommand};
pub use schema::schema_of;
pub use scope::{AllowedTarget, DeniedTarget, FileError, Permission, Scope, ScopeConfig};
pub use small_file::{LastLink, SmallFile, foreign_writer_of, read_file_above, read_small_file};
pub use tasks::{
    FinishedTask, NoSubagents, SubagentStatus, SubagentTasks, TaskSettings, looks_like_a_prompt, task_end,
    task_tools,
};
pub use tool::{
    CallingTurn, Confinement, OutputLimit, PreparedCall, Redact, RefusedAccess, ResumedCall, RunCall,
    SandboxRefusal, SessionTask, StopHandle, StopSignal, Tool, ToolDefinition, ToolImage, ToolInvocation,
    ToolOutcome, UrlPermission,
};
pub use toolset::{all_tool_definitions, file_tools};
pub use web::{
    AllowList, GuardedClient, HostedAnswer, HostedSearch, InvalidAllowedHost, LookupName, NetworkGuard,
    SearchService, SearcherConfig, SystemLookup, WebError, WebLimits, WebResponse, hosted_search_tool,
    web_fetch_tool, web_search_tool,
};
