//! The options of the chat, `run`, `resume`, `compact` and `models`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

#[derive(Args)]
pub(crate) struct RunOptions {
    /// Go on with the session that was last used in this folder. Without it and without -s, a new one.
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    pub(crate) go_on: bool,
    /// Print every event as one line of JSON, and nothing else on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// Stay until no task of the session runs any more, print the answers that their ends lead to, too, and go through the session
    /// for what is worth remembering.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Send this image along. Can be given several times.
    #[arg(long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    /// What to say. Piped text is added to it as data; with - as the prompt, or without one, the piped text is the prompt.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
}

#[derive(Args)]
pub(crate) struct ResumeOptions {
    /// The session. Without it, the only one that has something unfinished.
    #[arg(value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) key: Option<String>,
    /// Print every event as one line of JSON, and nothing else on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct SessionOptions {
    /// Print JSON: one object, or for a turn one event a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct CompactOptions {
    /// What the summary should dwell on.
    #[arg(value_name = "FOCUS")]
    pub(crate) focus: Vec<String>,
    /// Print every event as one line of JSON, and nothing else on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ModelsOptions {
    /// Show what is known about the models of this one.
    pub(crate) provider: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the conversation begins, where no command is named.
#[derive(Args, Default)]
pub(crate) struct ChatOptions {
    /// Begin another session for this folder.
    #[arg(long, conflicts_with = "session")]
    pub(crate) new: bool,
    /// Go on with a turn that was interrupted, without asking.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Read and print plain lines, without a screen: for screen readers, and for terminals that can do no more.
    #[arg(long)]
    pub(crate) plain: bool,
    /// Say PROMPT, print the answer and leave: the same as `longhaul run PROMPT`, with its flags.
    // `run_arguments` replaces it before the command line is parsed.
    #[arg(short = 'p', long = "print")]
    pub(crate) print: bool,
    /// Go on with the folder's last session, which is the default.
    #[arg(short = 'c', long = "continue", hide = true, conflicts_with_all = ["new", "session"])]
    pub(crate) go_on: bool,
    /// The first thing to say. A single word has to stand behind --, since it could be a mistyped command.
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
