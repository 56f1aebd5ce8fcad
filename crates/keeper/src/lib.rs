//! Commands that outlive the runtime.
//!
//! Every command runs under a *keeper*: a small process of its own that starts it, takes its output, and writes down how it
//! ended. The runtime only watches. It can be killed, upgraded and started again meanwhile, and finds the command where it
//! is by then.
//!
//! # What this crate promises
//!
//! - **A command is started exactly once**, whatever dies at whatever moment. Where nobody can tell, that is the answer.
//! - **It outlives the runtime**, with all its output, and is found again by its keeper's lock, never by a guess from a pid.
//! - **It does not outlive its keeper.** Who asks after a task whose keeper died also ends what is left of its command: all
//!   that carries its mark in the environment, or is in its keeper's session, or in its group. What has left all three (a
//!   cleared environment and a session of its own) can escape then; as long as the keeper lives, it can't. In a PID namespace of its
//!   own nothing escapes: its first process ends with the keeper, and everything in it with that.
//! - **Its end is its own process's end**, and 200 ms of draining where something that it left behind holds the pipe. What it
//!   leaves behind (`server &`) goes on, and can no longer print: writing to the closed pipe ends it, unless it was sent elsewhere.
//!   In a PID namespace it belongs to its task: the keeper stays for it, with the folder's lock, counts it ([`Tasks::left_behind`]) and ends it when
//!   the task is killed.
//! - **Killing is thorough**: the group is asked as long as the command itself is not reaped, and one by one whatever else descends
//!   from it. After 2 s all of that is forced, and only then is the kill confirmed. Something that makes new processes faster than
//!   they can be ended is given up after 5 s more, and the status says so. A keeper that can't be talked to is ended by signals.
//! - **How a command ended is known also when the disk is full**: room for it is set apart before the command starts. A disk
//!   that never writes in the same place twice (btrfs) can still refuse; then the keeper tries again for 10 minutes.
//! - **Output costs no memory.** The system moves it from pipe to file. The first and the last half of the cap are kept, and
//!   readable at any moment; offsets count printed bytes, so a dropped middle shifts nothing.
//!
//! - **A command is held to its bounds, or not started.** Bounds are set by the system, for it and all that it starts, before it
//!   begins; if a single step of that fails, the command never started and the status says which.
//!
//! # A start, step by step
//!
//! Each row is what is on disk when everything dies after that step, and what [`Tasks::find`] answers then. Whoever acts
//! holds the folder's lock.
//!
//! | after | by | on disk | [`Tasks::find`] | never |
//! | --- | --- | --- | --- | --- |
//! | nothing | | no folder | `NotStarted` | |
//! | the folder is made | runtime | an empty folder | voids it, `NotStarted` | two folders of one name: making it is exclusive |
//! | the spec is written | runtime | `spec.json` | voids it, `NotStarted` | |
//! | the keeper is started | runtime | `spec.json` | voids it, `NotStarted` | a late keeper that runs the command: it finds `void` and ends |
//! | the lock is taken | keeper | `lock`, with who has it | voids it, `NotStarted` | voiding under a keeper that lives: it has the lock |
//! | `spawning` is synced | keeper | `spawning` | `Unknown` | a second start: with `spawning` there, nobody starts anything |
//! | the command is started | keeper | `spawning` | `Unknown`, and what is left of it is ended | as above |
//! | `pid` is written | keeper | `pid` | `Lost`, and what is left of it is ended | as above |
//! | the status is written | keeper | `status.json` | `Ended` | half a status: it is put in place whole |
//! | nothing is left behind | keeper | `status.json`, no `socket` | `Ended` | |
//!
//! While a keeper with the lock lives, the answer is `Running` until the status is written and `Ended` from then on, also as long as the
//! keeper stays for what the command left behind. A start that fails for a reason (no such work folder) writes a status, too, so it is
//! `Ended` with [`Status::never_started`].
//!
//! Files that are damaged or missing never lead to a second start, and never to the end of a command that runs: a status that
//! can't be read is none, and where the lock is gone the keeper is looked for by what it wrote down and by its socket. Who
//! has found a task `Lost` or `Unknown` leaves a file `lost`, so that nobody looks again for processes by numbers that may be
//! others' by then.
//!
//! What is over for long is removed ([`Tasks::expire`]), but not that it has run: [`Tasks::find`] answers `Expired` then, for 30
//! days, and nothing can be started under its id.
//!
//! To *void* a folder is to write `void` into it and to move it aside, so that the task can be started again under its id.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `tasks`, `task`, `launcher` | the runtime's side: starting, finding, watching, killing |
//! | `expiry` | what goes when a task is over for long, and what stays known |
//! | `folder`, `format` | both sides: the files, and what is in them and on the socket |
//! | `holder` | which process a keeper is, and whether it lives |
//! | `tail`, `output` | where a printed byte lies, and reading it while more are printed |
//! | `process` | the keeper's side: its start, its loop, its clients |
//! | `bounds`, `process/bounds` | what a command may reach, and how it is held to that |
//! | `enforcement` | whether the system lets it be held |
//! | `process_table`, `strays` | the system's processes, and those that a dead keeper left |
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
mod holder;
mod launcher;
mod left_behind;
mod output;
mod process;
mod process_table;
mod strays;
mod tail;
mod task;
mod tasks;

pub use bounds::{Bounds, Network, Overlay, Placeholder, Private, ProcessNamespace, UnixSockets};
pub use enforcement::{Enforcement, what_can_be_enforced};
pub use error::{Error, Result};
pub use format::{FORMAT, MARK, Spec, Status};
pub use launcher::Launcher;
pub use left_behind::LeftBehind;
pub use output::{Chunk, Output};
pub use process::{keep_here, main_if_asked, shell_for};
pub use task::{Following, Task};
pub use tasks::{Found, Tasks};
