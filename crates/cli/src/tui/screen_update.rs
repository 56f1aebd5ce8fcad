//! What the chat tells the screen.

use longhaul_agent::Watched;
use longhaul_memory::MemoryCalls;
use longhaul_protocol::{CallId, Todo};
use tokio::sync::oneshot;

use super::detail_view::{OutputPages, OutputRequests};
use super::picker::PickerItem;
use super::status_line::StatusFacts;
use super::task_pills::TaskPill;
use crate::questions::OpenQuestion;
use crate::tui::chat::PastTurns;

/// What runs just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    Idle,
    Turn,
    /// A command of the user's.
    Command,
    /// The output of a task is followed.
    Following,
}

/// A message to the screen.
pub(crate) enum ScreenUpdate {
    Watched(Watched),
    /// A line from the program, not from the session.
    Note(String),
    /// A line about the turn that is not part of the answer.
    Aside(String),
    /// Output of a command, as it is.
    Printed(String),
    /// Rows that are cut where the terminal is too narrow for them.
    Table(Vec<String>),
    /// A command of the user's with a long output, which can be opened.
    UserCommand {
        command: String,
        output: String,
        lines: u64,
    },
    /// An input from another process.
    Entered(String),
    /// The last line that was entered was not sent.
    Unsent,
    /// This line was sent during a turn, and is taken back.
    TakenBack(String),
    /// The end of the conversation that is opened.
    Past(PastTurns),
    StatusFacts(StatusFacts),
    /// The model of the next request, with the tokens of its context window.
    Model {
        name: String,
        window: Option<u64>,
    },
    /// The tokens in the context.
    ContextTokens(u64),
    /// What memory has cost in this session.
    MemoryCalls(MemoryCalls),
    Activity(Activity),
    /// A text for the input field.
    Input(String),
    /// The chat ends: the next Ctrl-C ends it at once.
    Leaving,
    Pills(Vec<TaskPill>),
    /// The output of a command.
    Output(OutputUpdate),
    /// The todo list of the session that is opened.
    Todo(Vec<Todo>),
    /// The open questions.
    Questions(Vec<OpenQuestion>),
    /// A question in place of the prompt, until a line is entered.
    Ask(String),
    /// A list from which the user picks one.
    Pick {
        title: String,
        choices: Vec<PickerItem>,
        answer: oneshot::Sender<Option<usize>>,
    },
    /// The chat switches to another session.
    SessionChanged,
    /// No process runs the open turn.
    Interrupted,
}

/// What the screen gets of the output of commands.
pub(crate) enum OutputUpdate {
    /// Where to ask for the whole output of a call.
    Requests(OutputRequests),
    /// The last lines of a running command.
    Tail { call: CallId, lines: Vec<String> },
    /// The whole output of a call that the user opened.
    Whole { call: CallId, pages: OutputPages },
    /// There is no more output of this call than the screen has.
    NoMore { call: CallId },
}
