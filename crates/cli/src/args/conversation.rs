//! The options of the chat, `run`, `resume`, `compact` and `models`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

#[derive(Args)]
pub(crate) struct RunOptions {
    /// The session: one that exists goes on, and if its turn is open the prompt joins it. Without it, a new one.
    #[arg(short, long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Print every event as one line of JSON, and nothing else on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// Stay until no task of the session runs any more, print the answers that their ends lead to, too, and go through the session
    /// for what is worth remembering.
    #[arg(long)]
    pub(crate) wait: bool,
    /// What to say; - reads it from standard input.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: String,
}

#[derive(Args)]
pub(crate) struct ResumeOptions {
    /// The session. Without it, the only one that has something unfinished.
    #[arg(value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Print every event as one line of JSON, and nothing else on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct SessionOptions {
    /// The session.
    #[arg(short, long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// Print JSON: one object, or for a turn one event a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct CompactOptions {
    /// The session. If a turn runs, it happens before the next step, and the turn goes on.
    #[arg(short, long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
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
    /// Talk in this session, in place of the folder's own.
    // An id of its own: that of a command's session would be taken for it.
    #[arg(id = "opened_session", short = 's', long = "session", value_name = "KEY", conflicts_with = "new", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Begin another session for this folder.
    #[arg(long)]
    pub(crate) new: bool,
    /// Go on with a turn that was interrupted, without asking.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Read and print plain lines, without a screen: for screen readers, and for terminals that can do no more.
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
