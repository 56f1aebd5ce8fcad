//! The `longhaul` program: it parses the command line and wires the crates below it.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `args` | the command line |
//! | `commands` | one module for each subcommand, named as it is typed |
//! | `tui` | the chat in the terminal: screen, input field, picker, slash commands |
//! | `one_shot` | a turn that is run by a command, and not by a chat |
//! | `config`, `session_lookup`, `folder_session`, `input_text` | what commands start with: the config, a session by its name or folder, a text |
//! | `event_printer`, `event_text`, `output`, `output_file` | what commands print and write |
//! | `suggested_command`, `nearest`, `first_run` | hints: the next command, a similar name, how to get a model |
//! | `signals`, `panics` | how the program ends |

mod args;
mod commands;
mod config;
mod event_printer;
mod event_text;
mod first_run;
mod folder_session;
mod handover;
mod input_text;
mod nearest;
mod one_shot;
mod open_chats;
mod output;
mod output_file;
mod panics;
mod permission;
mod printer;
mod questions;
mod session_lookup;
mod short_id;
mod signals;
mod suggested_command;
mod tui;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use args::{Arguments, Command, McpCommand};
use longhaul_journal::Error;

/// Exit codes. Scripts rely on them.
mod exit {
    pub(crate) const DONE: u8 = 0;
    pub(crate) const FAILED: u8 = 1;
    pub(crate) const BAD_USAGE: u8 = 2;
    /// Throttled, or out of quota.
    pub(crate) const THROTTLED: u8 = 3;
    pub(crate) const OFFLINE: u8 = 4;
    /// The context does not fit the window.
    pub(crate) const TOO_LONG: u8 = 5;
    pub(crate) const LIMIT: u8 = 6;
    /// A question is open, and there is no terminal to ask it on.
    pub(crate) const ASKED: u8 = 7;
    /// Added to the number of the signal.
    pub(crate) const SIGNAL: u8 = 128;
}

/// An error that the user can fix by another command line.
#[derive(Debug)]
struct BadUsage(String);

impl std::fmt::Display for BadUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadUsage {}

fn bad_usage(message: impl Into<String>) -> anyhow::Error {
    BadUsage(message.into()).into()
}

fn main() -> ExitCode {
    // The same program is started again as the keeper of a command.
    longhaul_agent::keeper::main_if_asked();
    let arguments = match Arguments::parse_words(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(error) => return print_usage(error),
    };
    panics::install_hook(arguments.globals.home_dir().ok());
    let ended = start(arguments);
    panics::print_messages();
    match ended {
        Ok(code) => ExitCode::from(code),
        // The reader of the output has gone, for example `head`.
        Err(error) if output::is_closed_pipe(&error) => ExitCode::from(exit::DONE),
        Err(error) => {
            output::note(format!("{error:#}"));
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Prints the help, or the error of the command line with a suggestion.
fn print_usage(error: clap::Error) -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let error = args::suggestion::with_suggestion(error, &words);
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { exit::BAD_USAGE } else { exit::DONE })
}

fn start(arguments: Arguments) -> anyhow::Result<u8> {
    let Arguments { globals, talk, command } = arguments;
    if let (Some(flag), Some(_)) = (talk.given(), &command) {
        let hint = format!("{flag} can't be used with a command");
        return Err(bad_usage(hint));
    }
    if globals.session.is_some() && command.as_ref().is_some_and(|command| !command.takes_session()) {
        return Err(bad_usage("this command takes no -s; longhaul COMMAND --help says what it takes"));
    }
    let runtime = runtime_for(command.as_ref()).enable_all().build()?;
    let work = async {
        let Some(command) = command else { return tui::chat::run(&globals, &talk).await };
        match command {
            Command::Verify(options) => commands::verify::run(&globals, &options).await,
            Command::Backup(options) => commands::backup::run(&globals, options).await,
            Command::Restore(options) => commands::restore::run(&globals, &options).await,
            Command::Nodes { command, json } => commands::nodes::run(&globals, command, json).await,
            Command::Journal { command } => commands::journal::run(&globals, command).await,
            Command::Erase(options) => commands::erase::run(&globals, options).await,
            Command::Sessions { command, json } => commands::sessions::run(&globals, command, json).await,
            Command::Skills { command, json } => commands::skills::run(&globals, command, json),
            Command::Demo(options) => commands::demo::run(&options).await,
            Command::Run(options) => commands::run::run(&globals, options).await,
            Command::Resume(options) => commands::resume::run(&globals, options).await,
            Command::Retry(options) => commands::retry::run(&globals, options).await,
            Command::Continue(options) => commands::r#continue::run(&globals, options).await,
            Command::Status(options) => commands::status::run(&globals, options).await,
            Command::Context(options) => commands::context::run(&globals, options).await,
            Command::Save(options) => commands::save::run(&globals, options).await,
            Command::Fork(options) => commands::fork::run(&globals, options).await,
            Command::Compact(options) => commands::compact::run(&globals, options).await,
            Command::Remember(options) => commands::remember::run(&globals, options).await,
            Command::Memory(options) => commands::memory::run(&globals, options).await,
            Command::Statement(options) => commands::statement::run(&globals, options).await,
            Command::Models(options) => commands::models::run(&globals, options).await,
            Command::Serve(options) => commands::serve::run(&globals, &options).await,
            Command::Acp => commands::acp::run(&globals).await,
            Command::Token { command, json } => commands::token::run(&globals, command, json).await,
            Command::McpProbe { url } => commands::mcp_probe::run(&url).await,
            Command::Schedules { command, json } => commands::schedules::run(&globals, command, json).await,
            Command::Mcp { command, json } => commands::mcp::run(&globals, command, json).await,
            Command::Send(options) => commands::send::run(&globals, options).await,
            Command::Cancel(options) => commands::cancel::run(&globals, &options).await,
            Command::Answer(options) => commands::answer::run(&globals, &options).await,
            Command::Agents { command, list } => commands::agents::run(&globals, command, list).await,
            Command::Tasks { command, list } => commands::tasks::run(&globals, command, list).await,
            Command::Doctor(options) => commands::doctor::run(&globals, &options).await,
            Command::Config { command, json } => commands::config::run(&globals, command, json),
            Command::Completions(options) => commands::completions::run(&options),
            Command::Trust(options) => commands::trust::run(&globals, &options),
        }
    };
    // Unwinding restores the terminal.
    let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(work)));
    let code = ended.unwrap_or_else(|_| Ok(runtime.block_on(panics::shut_down())));
    // A blocked read must not delay the exit.
    runtime.shutdown_background();
    code
}

/// The threads of a command: one per core for many sessions; two where a slow step, such as reading a whole session, must not delay a
/// signal; otherwise one. A turn is one: it waits for its model, its commands and the disk, each of which has a thread or a process of its
/// own, and handing it from thread to thread takes longer than its own work.
fn runtime_for(command: Option<&Command>) -> tokio::runtime::Builder {
    match command {
        None | Some(Command::Serve(_) | Command::Mcp { command: Some(McpCommand::Serve), .. }) => {
            tokio::runtime::Builder::new_multi_thread()
        }
        Some(Command::Acp | Command::Compact(_) | Command::Remember(_)) => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(2);
            builder
        }
        _ => tokio::runtime::Builder::new_current_thread(),
    }
}

/// The exit code for an error: bad usage, or failure.
fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<BadUsage>() {
        return exit::BAD_USAGE;
    }
    if let Some(
        longhaul_agent::Error::Config { .. }
        | longhaul_agent::Error::Model(_)
        | longhaul_agent::Error::NoSuchQuestion { .. }
        | longhaul_agent::Error::QuestionSettled { .. }
        | longhaul_agent::Error::KeyReused { .. }
        | longhaul_agent::Error::NoSuchTask { .. }
        | longhaul_agent::Error::NoSuchPoint { .. },
    ) = error.downcast_ref()
    {
        return exit::BAD_USAGE;
    }
    if error.is::<longhaul_model::Error>() || commands::memory::is_bad_usage(error) {
        return exit::BAD_USAGE;
    }
    match journal_error(error) {
        Some(
            Error::Foreign { .. }
            | Error::Newer { .. }
            | Error::BadFile { .. }
            | Error::Exists { .. }
            | Error::NoFolder { .. }
            | Error::NoSuchSession { .. }
            | Error::SessionExists { .. }
            | Error::NoSuchRecord { .. }
            | Error::TooLarge { .. }
            | Error::BadKey { .. },
        ) => exit::BAD_USAGE,
        _ => exit::FAILED,
    }
}

/// The journal error inside an error of any crate.
fn journal_error(error: &anyhow::Error) -> Option<&Error> {
    match error.downcast_ref() {
        Some(longhaul_agent::Error::Journal(error)) => Some(error),
        _ => commands::memory::journal_error(error).or_else(|| error.downcast_ref()),
    }
}
