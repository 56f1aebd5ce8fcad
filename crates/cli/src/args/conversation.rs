//! The options of the chat, `run`, `resume`, `compact` and `models`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

#[derive(Args)]
pub(crate) struct RunOptions {
    /// Continue the session last used in this folder.
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    pub(crate) go_on: bool,
    /// Print events as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
    /// Wait for background tasks, and update memory.
    ///
    /// Prints what the agent answers when a task ends, too.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Attach an image; repeatable.
    #[arg(long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    /// Prompt; - reads it from standard input.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
}

#[derive(Args)]
pub(crate) struct ResumeOptions {
    /// Session to resume [default: the only one with unfinished work].
    #[arg(value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) key: Option<String>,
    /// Print events as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct SessionOptions {
    /// Print JSON; for a turn, events as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct CompactOptions {
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
    /// Start a new session for this folder.
    #[arg(long, conflicts_with = "session")]
    pub(crate) new: bool,
    /// Resume an interrupted turn without asking.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Read and print plain lines, for screen readers and simple terminals.
    #[arg(long)]
    pub(crate) plain: bool,
    /// Run one turn and print the answer, like `longhaul run`.
    // `run_arguments` replaces it before the command line is parsed.
    #[arg(short = 'p', long = "print")]
    pub(crate) print: bool,
    /// Continue the session last used in this folder (the default).
    #[arg(short = 'c', long = "continue", hide = true, conflicts_with_all = ["new", "session"])]
    pub(crate) go_on: bool,
    /// First message; put a single word after `--`.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    #[arg(last = true, hide = true, conflicts_with = "prompt")]
    pub(crate) word: Option<String>,
}

impl ChatOptions {
    /// A flag or an argument that was given, if one was.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            (self.new, "--new"),
            (self.resume, "--resume"),
            (self.plain, "--plain"),
            (self.print, "-p"),
            (self.go_on, "-c"),
            (self.prompt.is_some() || self.word.is_some(), "a prompt"),
        ];
        flags.into_iter().find_map(|(given, flag)| given.then_some(flag))
    }

    /// The first thing to say.
    pub(crate) fn first_words(&self) -> Option<&str> {
        self.word.as_deref().or(self.prompt.as_deref())
    }
}
