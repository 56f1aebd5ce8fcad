//! The keeper: runs commands that outlive the runtime.
//!
//! Every command runs under a *keeper*: a small process of its own that starts it, stores its output, and writes its exit
//! status. The runtime only watches. It can be killed, upgraded and restarted meanwhile, and adopts the running command.
//!
//! # What this crate promises
//!
//! - **A command is started exactly once**, whatever dies at whatever moment. If it can't be known whether it started, the
//!   lookup says so.
//! - **It outlives the runtime**, with all its output. The runtime finds it again by its keeper's lock, never by a pid.
//! - **It doesn't outlive its keeper.** A lookup of a task whose keeper died also kills the command's orphans: processes with
//!   its mark in the environment, in its keeper's session, or in its process group. A process that has left all three (a
//!   cleared environment and a session of its own) can escape then, but not while the keeper lives. From a PID namespace
//!   nothing escapes: its init ends with the keeper, and everything in it with that.
//! - **It ends with its own process**, and up to 200 ms of draining if an orphan holds the pipe. Orphans (`server &`) go on,
//!   but can no longer print: writing to the closed pipe kills them, unless their output is redirected. In a PID namespace
//!   they belong to the task: the keeper stays for them, with the folder's lock, counts them ([`Tasks::left_behind`]), and
//!   kills them with the task.
//! - **Killing is thorough**: SIGTERM goes to the process group and to every other descendant. After a grace period of 2 s
//!   comes SIGKILL, and only then the confirmation. Processes that fork faster than they can be killed are given up after 5 s
//!   more, and the status says so. A keeper that doesn't answer is ended by signals.
//! - **The exit status survives a full disk**: its space is reserved before the command starts. A copy-on-write file system
//!   (btrfs) can still refuse; then the keeper retries for 10 minutes.
//! - **Output costs no memory.** `splice` moves it from the pipe to a file. The first and the last half of the cap are kept
//!   and always readable; offsets count printed bytes, also across a dropped middle.
//! - **A command runs in its sandbox, or not at all.** Namespaces, mounts, capabilities, Landlock and seccomp hold it and all
//!   that it starts to its bounds. If one step fails, the command is not started, and the status names the step.
//!
//! # A start, step by step
//!
//! Each row is what is on disk when everything dies after that step, and what [`Tasks::find`] answers then. The acting
//! process holds the folder's lock.
//!
//! | after | by | on disk | [`Tasks::find`] | never |
//! | --- | --- | --- | --- | --- |
//! | nothing | | no folder | `NotStarted` | |
//! | the folder is created | runtime | an empty folder | voids it, `NotStarted` | two folders of one name: creating it is exclusive |
//! | the spec is written | runtime | `spec.json` | voids it, `NotStarted` | |
//! | the keeper is started | runtime | `spec.json` | voids it, `NotStarted` | a late keeper that runs the command: it finds `void` and ends |
//! | the lock is taken | keeper | `lock`, with its holder | voids it, `NotStarted` | voiding under a living keeper: it has the lock |
//! | `spawning` is synced | keeper | `spawning` | `Unknown` | a second start: no process starts a command next to `spawning` |
//! | the command is started | keeper | `spawning` | `Unknown`, and orphans are killed | as above |
//! | `pid` is written | keeper | `pid` | `Lost`, and orphans are killed | as above |
//! | the status is written | keeper | `status.json` | `Ended` | half a status: it is replaced atomically |
//! | the last orphan has ended | keeper | `status.json`, no `socket` | `Ended` | |
//!
//! While a keeper with the lock lives, the answer is `Running` until the status is written and `Ended` from then on, also while
//! the keeper stays for orphans. A start that fails for a reason (no such work folder) writes a status, too, so it is `Ended`
//! with [`Status::never_started`].
//!
//! Damaged or missing files never lead to a second start, nor to the end of a running command: a status that can't be read
//! counts as none, and without the lock the keeper is looked for by what it wrote and by its socket. A lookup that finds a
//! task `Lost` or `Unknown` leaves a file `lost`, so that no later one looks for processes by pids that may be reused.
//!
//! Folders of tasks that ended long ago expire ([`Tasks::expire`]). For 30 days after that, [`Tasks::find`] answers `Expired`,
//! and nothing can be started under their ids.
//!
//! To *void* a folder is to write `void` into it and to move it aside, so that the task can be started again under its id.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `tasks`, `task`, `launcher` | the runtime's side: start, lookup, watch, kill |
//! | `expiry` | removal of old tasks, and the memory that they have run |
//! | `folder`, `format` | both sides: the files of a task; their formats and that of the socket |
//! | `liveness` | whether a keeper is alive, and which process it is |
//! | `output`, `tail` | reading output while more is printed; the ring buffer of its end |
//! | `orphans`, `orphan_cleanup` | processes that a command left running; killing those of a dead keeper |
//! | `process` | the keeper's side: start, supervisor, clients, sandbox |
//! | `bounds`, `enforcement` | what a command may access; what the system can enforce |
//! | `process_table` | `/proc`: processes, descendants, signals by pidfd |
//! | `tcp_client` | whether the client of a TCP connection is a command |
//!
//! # Example
//!
//! ```no_run
//! use std::io::Read;
//! use longhaul_keeper::{FORMAT, Launcher, Spec, Tasks};
//! use longhaul_protocol::CallId;
//!
//! // A process that was started to be a keeper ends in here.
//! longhaul_keeper::main_if_asked();
//!
//! let tasks = Tasks::at("/home/me/.longhaul/tasks".as_ref(), Launcher::this_program()?)?;
//! let task = tasks.start(&Spec {
//!     format: FORMAT,
//!     task_id: CallId::generate().into(),
//!     command: "make".into(),
//!     work_dir: "/home/me/project".into(),
//!     environment: std::env::vars().collect(),
//!     output_cap: 64 << 20,
//!     max_runtime_s: None,
//!     session: None,
//!     description: Some("build".into()),
//!     target: "local".into(),
//!     token_file: "../../run/token".into(),
//!     bounds: None,
//!     relay: false,
//! })?;
//!
//! // The connection closes when the command has ended.
//! task.connect()?.read_to_end(&mut Vec::new())?;
//! println!("{:?}", task.status()?);
//! println!("{:?}", tasks.output(task.id())?.read(0, 1000)?.bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bounds;
mod enforcement;
mod error;
mod expiry;
mod folder;
mod format;
mod launcher;
mod liveness;
mod orphan_cleanup;
mod orphans;
mod output;
mod process;
mod process_table;
mod tail;
mod task;
mod tasks;
mod tcp_client;

pub use bounds::{Bounds, Network, Overlay, Placeholder, Private, ProcessNamespace, UnixSockets};
pub use enforcement::{Enforcement, what_can_be_enforced};
pub use error::{Error, Result};
pub use format::{FORMAT, MARK, Spec, Status};
pub use launcher::Launcher;
pub use orphans::LeftBehind;
pub use output::{Chunk, Output};
pub use process::{keep_here, main_if_asked, shell_for};
pub use task::{Following, Task};
pub use tasks::{Found, Tasks};
pub use tcp_client::is_client_a_command;
