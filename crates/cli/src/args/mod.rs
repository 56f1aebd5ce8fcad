//! The command line. The doc comment of a flag is its help.

mod agents;
mod config;
mod conversation;
mod global;
mod inbox;
mod journal;
mod mcp;
mod memory;
mod nodes;
mod schedules;
mod sessions;
mod skills;
mod statement;
pub(crate) mod suggestion;
mod tasks;
mod token;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};

pub(crate) use self::agents::{AgentKillOptions, AgentListOptions, AgentShowOptions, AgentsCommand};
pub(crate) use self::config::{CompletionsOptions, ConfigCommand, TrustOptions};
pub(crate) use self::conversation::{
    ChatOptions, CompactOptions, ModelsOptions, ResumeOptions, RunOptions, SessionOptions,
};
pub(crate) use self::global::GlobalArgs;
pub(crate) use self::inbox::{CancelOptions, Mode, SendOptions};
pub(crate) use self::journal::{
    BackupOptions, CopyOptions, EraseOptions, Family, JournalCommand, RestoreOptions, VerifyOptions,
};
pub(crate) use self::mcp::{McpAddOptions, McpCommand};
pub(crate) use self::memory::{EditOptions, MemoryCommand, MemoryOptions, MemoryScopeArgs, RememberOptions};
pub(crate) use self::nodes::NodesCommand;
pub(crate) use self::schedules::{ScheduleAddOptions, SchedulesCommand};
pub(crate) use self::sessions::{
    ForkOptions, ForkPoint, ImportOptions, ListOptions, SessionsCommand, ShowOptions,
};
pub(crate) use self::skills::{SkillTrustOptions, SkillsCommand};
pub(crate) use self::statement::StatementOptions;
pub(crate) use self::tasks::{
    AnswerOptions, DoctorOptions, TaskFollowOptions, TaskKillOptions, TaskListOptions, TaskOutputOptions,
    TasksCommand,
};
pub(crate) use self::token::TokenCommand;

/// An agent runtime for the long haul.
///
/// Keeps an agent's conversation, commands, memory and spend alive through crashes, restarts, full context windows and
/// failing models. Without a command, it opens this folder's session in the terminal; type /help there for the commands.
/// `longhaul models` shows which model would be used.
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
    /// Run one turn and print the answer.
    ///
    /// The answer goes to standard output, progress and everything else to standard error.
    Run(RunOptions),
    /// Resume an interrupted turn.
    ///
    /// Tool calls that were running are finished first. An answer that was cut off is requested again.
    Resume(ResumeOptions),
    /// Retry the last turn if it failed.
    ///
    /// If a turn is waiting to retry, in this process or another, it retries now.
    Retry(SessionOptions),
    /// Continue an interrupted answer.
    ///
    /// The model sees what it had written before the crash, the failure or your Ctrl-C, and goes on from there.
    Continue(SessionOptions),
    /// Show a session's model, turn and context use.
    Status(SessionOptions),
    /// Show what fills a session's context.
    ///
    /// Lists each part in tokens, what is free, and when the context will be compacted.
    Context(SessionOptions),
    /// Compact a session's context now.
    ///
    /// A summary replaces the older part of the context. Nothing is deleted: the agent can still search all of the session.
    Compact(CompactOptions),
    /// Check that a session is saved.
    ///
    /// Sessions save themselves. This flushes everything to disk and reads the newest part back.
    Save(SessionOptions),
    /// Start a new session from a point in another.
    Fork(ForkOptions),
    /// Remember something for later sessions.
    ///
    /// With TEXT, remembers it word for word. Without, looks through what is new in the session for things worth remembering.
    Remember(RememberOptions),
    /// Show what model calls have cost.
    ///
    /// Adds up all calls of this home by cause, session, model or day.
    Statement(StatementOptions),
    /// List model providers and the model in use.
    ///
    /// With PROVIDER, shows what is known about its models.
    Models(ModelsOptions),
    /// Watch a killed turn recover; needs no key or network.
    Demo(DemoOptions),
    /// Run all sessions in the background and serve HTTP.
    ///
    /// Resumes turns that were interrupted, and answers messages as they are sent with `longhaul send` or over HTTP.
    Serve(ServeOptions),
    /// Serve an editor over ACP, on standard input and output.
    ///
    /// Editors start this command and talk to it with the Agent Client Protocol. When the editor ends, the turn that runs goes on to its
    /// end in the background.
    Acp,
    /// Make, list and revoke tokens for the HTTP API.
    ///
    /// Lists them if no command is given.
    #[command(args_conflicts_with_subcommands = true)]
    Token {
        #[command(subcommand)]
        command: Option<TokenCommand>,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// List, add, pause, run and delete schedules.
    ///
    /// A schedule lets the agent work at set times, while `longhaul serve` runs. Lists them if no command is given.
    #[command(args_conflicts_with_subcommands = true)]
    Schedules {
        #[command(subcommand)]
        command: Option<SchedulesCommand>,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// List, add, remove and check MCP servers.
    ///
    /// Their tools are the agent's tools, too. Lists them if no command is given.
    #[command(args_conflicts_with_subcommands = true)]
    Mcp {
        #[command(subcommand)]
        command: Option<McpCommand>,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Call all tools of an MCP server at this address, log in where it asks for it, and answer its questions with their defaults.
    /// For test suites of MCP clients.
    #[command(hide = true)]
    McpProbe {
        /// Address of the server.
        url: String,
    },
    /// Send a message to a session without waiting.
    ///
    /// The process that runs the session picks it up; if there is none, `longhaul resume` or `longhaul serve` will.
    Send(SendOptions),
    /// Cancel a session's running turn.
    Cancel(CancelOptions),
    /// Answer a session's question.
    ///
    /// The agent asks before it runs a tool call that needs your approval. The turn goes on once you answer.
    Answer(AnswerOptions),
    /// List, follow and kill background tasks.
    ///
    /// Lists them if no command is given.
    #[command(args_conflicts_with_subcommands = true)]
    Tasks {
        #[command(subcommand)]
        command: Option<TasksCommand>,
        #[command(flatten)]
        list: TaskListOptions,
    },
    /// List, show and stop subagents.
    ///
    /// A subagent is a session that works for another one. Lists them as a tree if no command is given.
    #[command(args_conflicts_with_subcommands = true)]
    Agents {
        #[command(subcommand)]
        command: Option<AgentsCommand>,
        #[command(flatten)]
        list: AgentListOptions,
    },
    /// Search, edit and undo what the agent remembers.
    ///
    /// Memory is kept in pages, across sessions. Lists them if no command is given.
    Memory(MemoryOptions),
    /// List, show, fork, export and delete sessions.
    ///
    /// Lists them if no command is given.
    #[command(args_conflicts_with_subcommands = true)]
    Sessions {
        #[command(subcommand)]
        command: Option<SessionsCommand>,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// List, show, check and trust skills.
    ///
    /// A skill is a folder with a SKILL.md that tells the agent how to do something. Lists them if no command is given.
    #[command(args_conflicts_with_subcommands = true)]
    Skills {
        #[command(subcommand)]
        command: Option<SkillsCommand>,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Check everything that is stored for damage.
    ///
    /// Exits with 1 if anything is damaged.
    Verify(VerifyOptions),
    /// Check the setup and suggest fixes.
    ///
    /// Checks the config, the model, the journal, running tasks, the sandbox and the disk. Exits with 1 if anything needs attention.
    Doctor(DoctorOptions),
    /// Back up the journal to a new file.
    ///
    /// The journal holds every session and all memory. It can be in use meanwhile; the copy is consistent.
    Backup(BackupOptions),
    /// Restore the journal from a backup.
    ///
    /// The whole backup is checked first. The journal that it replaces is kept in the trash. The tokens of the backup no longer count, because
    /// some may have been revoked since.
    Restore(RestoreOptions),
    /// Copy the journal between a home and a database.
    Journal {
        #[command(subcommand)]
        command: JournalCommand,
    },
    /// List and drain the nodes that share a journal.
    ///
    /// A node is a machine whose journal is in a database (`journal.url`). Lists them if no command is given.
    #[command(args_conflicts_with_subcommands = true)]
    Nodes {
        #[command(subcommand)]
        command: Option<NodesCommand>,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Erase the content of one entry for good.
    ///
    /// A stub that says when and why stays in its place.
    Erase(EraseOptions),
    /// Show the configuration and where it comes from.
    ///
    /// Shows every key if no command is given.
    #[command(args_conflicts_with_subcommands = true)]
    Config {
        #[command(subcommand)]
        command: Option<ConfigCommand>,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Trust this project's longhaul.toml, .mcp.json, skills and subagents.
    ///
    /// A trusted longhaul.toml may set every key, a trusted .mcp.json may start MCP servers, and the agent may use trusted skills and kinds of
    /// subagents. What changes has to be trusted again. `longhaul skills trust NAME` trusts a single skill.
    Trust(TrustOptions),
    /// Generate shell completions.
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
            | Self::Schedules { .. }
            | Self::Agents { .. }
            | Self::Memory(_) => true,
            Self::Sessions { command, .. } => command.as_ref().is_some_and(SessionsCommand::takes_session),
            _ => false,
        }
    }
}

#[derive(Args)]
pub(crate) struct ServeOptions {
    /// Address and port for the HTTP API [default: server.listen].
    #[arg(long, value_name = "ADDR", conflicts_with = "no_http")]
    pub(crate) listen: Option<String>,
    /// Don't serve the HTTP API.
    #[arg(long)]
    pub(crate) no_http: bool,
    /// Print events as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct DemoOptions {
    /// Keep the demo's files, to look around.
    #[arg(long)]
    pub(crate) keep: bool,
}
