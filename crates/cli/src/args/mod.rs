//! The command line. The doc comment of a flag is its help.

mod config;
mod conversation;
mod global;
mod inbox;
mod journal;
mod memory;
mod sessions;
pub(crate) mod suggestion;
mod tasks;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};

pub(crate) use self::config::{CompletionsOptions, ConfigCommand, TrustOptions};
pub(crate) use self::conversation::{
    ChatOptions, CompactOptions, ModelsOptions, ResumeOptions, RunOptions, SessionOptions,
};
pub(crate) use self::global::GlobalArgs;
pub(crate) use self::inbox::{CancelOptions, Mode, SendOptions};
pub(crate) use self::journal::{BackupOptions, EraseOptions, Family, RestoreOptions, VerifyOptions};
pub(crate) use self::memory::{EditOptions, MemoryCommand, MemoryOptions, MemoryScopeArgs, RememberOptions};
pub(crate) use self::sessions::{
    ForkOptions, ForkPoint, ImportOptions, ListOptions, SessionsCommand, ShowOptions,
};
pub(crate) use self::tasks::{
    AnswerOptions, DoctorOptions, TaskFollowOptions, TaskKillOptions, TaskListOptions, TaskOutputOptions,
    TasksCommand,
};

/// An agent runtime for the long haul.
///
/// It keeps an agent's conversation, commands, memory and spend alive through crashes, restarts, full context windows
/// and failing models. Without a command it talks to the agent in the terminal: the session that was last used in this folder
/// goes on, and /help lists what can be typed there. `longhaul models` shows which model would answer.
#[derive(Parser)]
#[command(name = "longhaul", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) globals: GlobalArgs,
    #[command(flatten)]
    pub(crate) talk: ChatOptions,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Arguments {
    /// Parses a command line, whose first word is the name of the program.
    pub(crate) fn parse_words(words: Vec<OsString>) -> Result<Self, clap::Error> {
        let arguments = Self::try_parse_from(run_arguments(words))?;
        if let (None, Some(prompt)) = (&arguments.command, &arguments.talk.prompt)
            && is_command_like(prompt)
        {
            let message = suggestion::unknown_command(prompt);
            return Err(Self::command().error(ErrorKind::InvalidSubcommand, message));
        }
        Ok(arguments)
    }
}

/// Replaces `-p` by the command `run`, which has the same meaning.
fn run_arguments(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_print = |word: &OsString| word == "-p" || word == "--print";
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let Some(place) = words[..end].iter().position(is_print) else { return words };
    let program = Arguments::command();
    if words[1..place].iter().any(|word| program.find_subcommand(word).is_some()) {
        return words;
    }
    words.remove(place);
    words.insert(1, "run".into());
    words
}

/// Whether a prompt could be a mistyped command: a single word. Languages that put no spaces between words have no ASCII sentences.
fn is_command_like(prompt: &str) -> bool {
    prompt.is_ascii() && !prompt.contains(char::is_whitespace)
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Say one thing and print the answer. Everything else goes to standard error.
    Run(RunOptions),
    /// Go on with an unfinished turn. Calls are brought to their end; an answer that was cut off is asked for again.
    Resume(ResumeOptions),
    /// Run the last turn again, if it failed; or end the wait before the next try, in whatever process.
    Retry(SessionOptions),
    /// Go on with an answer where it was interrupted, by a crash, a failure or you: the model gets what it had said.
    Continue(SessionOptions),
    /// Show what a session is right now: its model, its turn, how full its context is.
    Status(SessionOptions),
    /// Show how full the context of a session is, and of what: each part in tokens, what is free, and when it is made smaller.
    Context(SessionOptions),
    /// Make the context of a session smaller now, by a summary. What stood in it stays in the session and can be found.
    Compact(CompactOptions),
    /// Say whether a session is safe: all of it on disk, and as it was written. Sessions save themselves.
    Save(SessionOptions),
    /// Begin another session with the past of one, up to a record.
    Fork(ForkOptions),
    /// Remember something for later sessions, word for word; without a text, go through what is new in a session now.
    Remember(RememberOptions),
    /// List who serves models, and which model would answer now. With a provider, what is known about its models.
    Models(ModelsOptions),
    /// See it work: a runtime that is killed in the middle of a turn, and the turn that goes on. No key, no network.
    Demo(DemoOptions),
    /// Run the turns of all sessions of the home: resume what was open, take what is sent.
    Serve(ServeOptions),
    /// Put an input into a session's inbox and leave. Whoever serves the home runs it.
    Send(SendOptions),
    /// End the running turn of a session.
    Cancel(CancelOptions),
    /// Answer an open question of a session: whether a call may run. Whoever runs the session goes on with it.
    Answer(AnswerOptions),
    /// List, follow and end commands that go on in the background. Alone, it lists them.
    #[command(args_conflicts_with_subcommands = true)]
    Tasks {
        #[command(subcommand)]
        command: Option<TasksCommand>,
        #[command(flatten)]
        list: TaskListOptions,
    },
    /// See, search, correct and undo what is remembered across sessions. Alone, it lists the pages.
    Memory(MemoryOptions),
    /// List, show, fork, rename, pin, delete, export and import sessions. Alone, it lists them.
    #[command(args_conflicts_with_subcommands = true)]
    Sessions {
        #[command(subcommand)]
        command: Option<SessionsCommand>,
        /// Print one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Read everything and say what is not as it was committed. Exits with 1 if anything is not.
    Verify(VerifyOptions),
    /// Check the config, the model, the journal, the running commands, the sandbox and the disk. Exits with 1 if there is anything to do.
    Doctor(DoctorOptions),
    /// Write a consistent copy of everything to a new file, while everything runs.
    Backup(BackupOptions),
    /// Replace the journal by a backup, after reading all of it. The old one is kept in the trash.
    Restore(RestoreOptions),
    /// Remove the words of one record for good. A stub says when and why.
    Erase(EraseOptions),
    /// Show the configuration and where it comes from. Alone, it shows every key.
    #[command(args_conflicts_with_subcommands = true)]
    Config {
        #[command(subcommand)]
        command: Option<ConfigCommand>,
        /// Print one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Let the longhaul.toml of this folder's project set everything, as it is now. After a change of it, say so again.
    Trust(TrustOptions),
    /// Print a script that lets your shell complete commands and flags.
    Completions(CompletionsOptions),
}

impl Command {
    /// Whether `-s` means something to the command.
    pub(crate) fn takes_session(&self) -> bool {
        match self {
            Self::Run(_)
            | Self::Resume(_)
            | Self::Retry(_)
            | Self::Continue(_)
            | Self::Status(_)
            | Self::Context(_)
            | Self::Compact(_)
            | Self::Save(_)
            | Self::Fork(_)
            | Self::Remember(_)
            | Self::Send(_)
            | Self::Cancel(_)
            | Self::Answer(_)
            | Self::Tasks { .. }
            | Self::Memory(_) => true,
            Self::Sessions { command, .. } => command.as_ref().is_some_and(SessionsCommand::takes_session),
            _ => false,
        }
    }
}

#[derive(Args)]
pub(crate) struct ServeOptions {
    /// Without the HTTP API, which this version does not have yet.
    #[arg(long)]
    pub(crate) no_http: bool,
    /// Print every event as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct DemoOptions {
    /// Leave the demo's home behind, to look around in it.
    #[arg(long)]
    pub(crate) keep: bool,
}
