//! The command line: every flag is documented where it is defined.

mod conversing;
mod memory;
mod sessions;
mod showing;
mod tasks;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use longhaul_agent::Sources;
use longhaul_journal::{Home, SqliteJournal};
use longhaul_protocol::PrintablePath;

pub(crate) use self::conversing::{
    CompactOptions, ModelsOptions, ResumeOptions, RunOptions, SessionOptions, TalkOptions,
};
pub(crate) use self::memory::{EditOptions, MemoryCommand, MemoryOptions, RememberOptions, WhoseMemory};
pub(crate) use self::sessions::{ForkOptions, ForkPoint, ImportOptions, ListOptions, SessionsCommand};
pub(crate) use self::showing::ShowOptions;
pub(crate) use self::tasks::{
    AnswerOptions, DoctorOptions, TaskFollowOptions, TaskKillOptions, TaskListOptions, TaskOutputOptions,
    TasksCommand,
};
use crate::BadUsage;

/// An agent runtime for the long haul.
///
/// It keeps an agent's conversation, commands, memory and spend alive through crashes, restarts, full context windows
/// and failing models. Without a command it talks to the agent in the terminal: the session of this folder goes on, and
/// /help lists what can be typed there. `longhaul models` shows which model would answer.
#[derive(Parser)]
#[command(name = "longhaul", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) choice: Choice,
    #[command(flatten)]
    pub(crate) talk: TalkOptions,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Where everything lives.
#[derive(Args)]
pub(crate) struct Place {
    /// The folder that everything lives in [default: $LONGHAUL_HOME, else ~/.longhaul].
    #[arg(long = "home", value_name = "DIR", global = true)]
    folder: Option<PathBuf>,
}

/// What answers, where it works, and which file says the rest.
#[derive(Args)]
pub(crate) struct Choice {
    /// A config file in place of the home's config.toml.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// The model, as provider/model; scripted/FILE.json plays a file [default: $LONGHAUL_MODEL, else the config's].
    #[arg(long, value_name = "NAME", global = true)]
    model: Option<String>,
    /// The folder that new sessions work in [default: the one in which the program was started].
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) work_dir: Option<PathBuf>,
    /// Say more about what is done; twice for still more.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

impl Choice {
    /// What was named on the command line and holds for whoever goes on, with its flags.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        let config = self.config.as_ref().map(|file| ("--config", absolute(file)));
        let model = self.model.clone().map(|model| ("--model", model));
        config.into_iter().chain(model).collect()
    }

    /// What the config is made from besides the home.
    pub(crate) fn sources(&self) -> anyhow::Result<Sources> {
        if let (None, Err(error)) = (&self.work_dir, std::env::current_dir()) {
            return Err(BadUsage(format!(
                "the current folder can't be used ({error}): go to one that exists, or name one with --work-dir"
            ))
            .into());
        }
        Ok(Sources {
            work_dir: self.work_dir()?,
            config_file: self.config.clone(),
            model_variable: std::env::var("LONGHAUL_MODEL").ok(),
            model_flag: self.model.clone(),
        })
    }

    /// The folder that was named, which must be there.
    pub(crate) fn work_dir(&self) -> anyhow::Result<Option<PathBuf>> {
        let Some(folder) = &self.work_dir else { return Ok(None) };
        match folder.canonicalize() {
            Ok(found) if found.to_str().is_none() => {
                Err(BadUsage(format!("{} can't be a work folder: its name is not UTF-8", folder.printable()))
                    .into())
            }
            Ok(found) if found.is_dir() => Ok(Some(found)),
            Ok(_) => Err(BadUsage(format!("{} is not a folder", folder.printable())).into()),
            Err(error) => Err(BadUsage(format!("--work-dir {}: {error}", folder.printable())).into()),
        }
    }
}

/// A path that means the same from everywhere.
fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

impl Place {
    /// The folder, if it was named on the command line, with its flag.
    pub(crate) fn given(&self) -> Option<(&'static str, String)> {
        self.folder.as_ref().map(|folder| ("--home", absolute(folder)))
    }

    pub(crate) fn folder(&self) -> anyhow::Result<PathBuf> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let default = || variable("HOME").map(|user| user.join(".longhaul"));
        let folder = self.folder.clone().or_else(|| variable("LONGHAUL_HOME")).or_else(default);
        match folder {
            Some(folder) if !folder.as_os_str().is_empty() => Ok(folder),
            _ => Err(BadUsage("no home: name a folder with --home, or set LONGHAUL_HOME or HOME".to_owned())
                .into()),
        }
    }

    /// The home, if a journal was ever made there. Looking changes nothing.
    pub(crate) fn existing(&self) -> anyhow::Result<Option<Home>> {
        let folder = self.folder()?;
        if !folder.try_exists().with_context(|| format!("{} can't be looked at", folder.printable()))? {
            return Ok(None);
        }
        let home = Home::existing(&folder)?;
        Ok(if home.has_journal()? { Some(home) } else { None })
    }

    /// The journal, if there is one.
    pub(crate) async fn journal(&self) -> anyhow::Result<Option<SqliteJournal>> {
        match self.existing()? {
            Some(home) => Ok(Some(SqliteJournal::open(&home).await?)),
            None => Ok(None),
        }
    }

    /// The journal, made if there is none.
    pub(crate) async fn journal_or_new(&self) -> anyhow::Result<SqliteJournal> {
        Ok(SqliteJournal::open(&Home::create(&self.folder()?)?).await?)
    }
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

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every key with its value and what set it.
    Show {
        /// Print one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show the files that are looked for, and which of them are there.
    Path {
        /// Print one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the config.
    Schema,
}

#[derive(Args)]
pub(crate) struct CompletionsOptions {
    /// The shell. For bash: eval "$(longhaul completions bash)" in ~/.bashrc.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args)]
pub(crate) struct TrustOptions {
    /// List the files that are trusted.
    #[arg(long, conflicts_with = "remove")]
    pub(crate) list: bool,
    /// Take back the trust in this folder's project.
    #[arg(long)]
    pub(crate) remove: bool,
    /// Don't ask. Without a terminal nothing is trusted otherwise.
    #[arg(long, short, conflicts_with_all = ["list", "remove"])]
    pub(crate) yes: bool,
    /// Print what was done, or the list, as JSON.
    #[arg(long)]
    pub(crate) json: bool,
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
pub(crate) struct SendOptions {
    /// The session; a new one if there is none with this key.
    #[arg(short, long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// What happens if a turn is running: join it at its next step, wait until after it, or interrupt it.
    #[arg(long, value_enum, default_value_t = Mode::Join)]
    pub(crate) mode: Mode,
    /// A key of your own: the same one twice is one input.
    #[arg(long = "key", value_name = "K", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) idempotency: Option<String>,
    /// The words; - reads them from standard input.
    pub(crate) text: String,
    /// Print what was accepted as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What an input does when a turn is running.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    Join,
    After,
    Interrupt,
}

#[derive(Args)]
pub(crate) struct CancelOptions {
    /// The session.
    #[arg(short, long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// Print how the turn ended as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct DemoOptions {
    /// Leave the demo's home behind, to look around in it.
    #[arg(long)]
    pub(crate) keep: bool,
}

/// The streams that a session has.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Family {
    /// What happened.
    Session,
    /// What was accepted.
    Inbox,
    /// What was worth remembering.
    Extract,
}

#[derive(Args)]
pub(crate) struct VerifyOptions {
    /// Write what can be read to a new journal in this file; the original is left alone.
    #[arg(long, value_name = "FILE")]
    pub(crate) salvage: Option<PathBuf>,
    /// Print what was found as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct BackupOptions {
    /// The new file.
    pub(crate) file: PathBuf,
    /// Print what was written as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RestoreOptions {
    /// The backup.
    pub(crate) file: PathBuf,
    /// Print what was done as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct EraseOptions {
    /// The session.
    pub(crate) key: String,
    /// The record, as `sessions show` numbers it.
    pub(crate) seq: u64,
    /// Why; it stands in the stub.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: String,
    /// Which of the session's streams.
    #[arg(long, value_enum, default_value_t = Family::Session)]
    pub(crate) stream: Family,
    /// Print what was erased as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
