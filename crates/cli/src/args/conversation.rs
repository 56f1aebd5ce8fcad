//! The options of the chat, `run`, `resume`, `compact` and `models`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

#[derive(Args)]
pub(crate) struct RunOptions {
    /// Session to continue or create [default: a new one].
    ///
    /// If a turn is running in it, the prompt joins that turn.
    #[arg(short, long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Print events as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
    /// Wait for background tasks, and update memory.
    ///
    /// Prints what the agent answers when a task ends, too.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Prompt; - reads it from standard input.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: String,
}

#[derive(Args)]
pub(crate) struct ResumeOptions {
    /// Session to resume [default: the only one with unfinished work].
    #[arg(value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Print events as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct SessionOptions {
    /// Session, by its key.
    #[arg(short, long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// Print JSON; for a turn, events as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct CompactOptions {
    /// Session, by its key.
    ///
    /// If a turn is running, the context is compacted before its next step.
    #[arg(short, long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// What the summary should focus on.
    #[arg(value_name = "FOCUS")]
    pub(crate) focus: Vec<String>,
    /// Print events as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ModelsOptions {
    /// Show the models of this provider.
    pub(crate) provider: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the conversation begins, where no command is named.
#[derive(Args, Default)]
pub(crate) struct ChatOptions {
    /// Open this session instead of the folder's.
    // An id of its own: that of a command's session would be taken for it.
    #[arg(id = "opened_session", short = 's', long = "session", value_name = "KEY", conflicts_with = "new", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Start a new session for this folder.
    #[arg(long)]
    pub(crate) new: bool,
    /// Resume an interrupted turn without asking.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Read and print plain lines, for screen readers and simple terminals.
    #[arg(long)]
    pub(crate) plain: bool,
}

impl ChatOptions {
    /// A flag that was given, if one was.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            (self.session.is_some(), "-s"),
            (self.new, "--new"),
            (self.resume, "--resume"),
            (self.plain, "--plain"),
        ];
        flags.into_iter().find_map(|(given, flag)| given.then_some(flag))
    }
}
