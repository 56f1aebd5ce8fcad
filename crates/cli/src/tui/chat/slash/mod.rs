//! The slash commands: one table, from which `/help`, the hints after a typo and `docs/commands.md` are made. The submodules hold what the
//! commands do.

pub(crate) mod agents;
pub(crate) mod info;
mod mcp;
pub(crate) mod memory;
pub(crate) mod mode;
mod model;
pub(crate) mod session;
pub(crate) mod skills;
pub(crate) mod tasks;

use std::fmt::Write;

use clap::CommandFactory;
use longhaul_agent::tasks::TaskRegistry;
use longhaul_agent::{Config, Runtime, Session};
use longhaul_protocol::PermissionMode;
use tokio::sync::oneshot;

use super::background::BackgroundWork;
use super::line_source::{LineEvent, LineSource};
use crate::args::{Arguments, GlobalArgs};
use crate::event_printer::EventPrinter;
use crate::nearest::nearest;
use crate::signals::ExitSignals;
use crate::tui::{PickerItem, ScreenHandle, ScreenUpdate, key_help};

/// Jaro-Winkler similarity below which a command is no suggestion.
const MIN_SIMILARITY: f64 = 0.75;

/// Whether a turn runs while the user enters a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnPhase {
    DuringTurn,
    BetweenTurns,
}

/// What a command may use of the chat.
pub(crate) struct CommandContext<'a> {
    pub(super) globals: &'a GlobalArgs,
    pub(super) runtime: &'a Runtime,
    pub(super) session: &'a Session,
    pub(super) registry: &'a TaskRegistry,
    pub(super) config: &'a Config,
    pub(super) printer: &'a mut EventPrinter,
    pub(super) background: &'a mut BackgroundWork,
    pub(super) signals: &'a mut ExitSignals,
    /// A command that a signal ends leaves the signal here, if it suspends the chat.
    pub(super) suspended: &'a mut Option<u8>,
    pub(super) lines: &'a mut LineSource,
    /// A command that a line ends leaves the line here; the prompt takes it next.
    pub(super) typed: &'a mut Option<LineEvent>,
    pub(super) screen: Option<ScreenHandle>,
    /// The permission mode that was last ordered or seen.
    pub(super) mode: &'a mut Option<PermissionMode>,
}

impl CommandContext<'_> {
    /// Lets the user pick one of a list, and returns its index. `None` without a screen, or if the user picks none.
    pub(super) async fn pick(&mut self, title: String, choices: Vec<PickerItem>) -> Option<usize> {
        let screen = self.screen.as_ref()?;
        let (answer, chosen) = oneshot::channel();
        screen.send(ScreenUpdate::Pick { title, choices, answer });
        tokio::select! {
            biased;
            number = self.signals.next() => {
                *self.suspended = Some(number);
                None
            }
            chosen = chosen => chosen.ok().flatten(),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SlashCommand {
    /// With the slash.
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    /// The usage of its arguments; empty if it takes none.
    pub(crate) arguments: &'static str,
    pub(crate) help: &'static str,
    /// The same command on the command line; empty if there is none.
    pub(crate) one_shot: &'static str,
    pub(crate) when: Availability,
    pub(crate) action: SlashAction,
}

/// When the user may enter a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    Always,
    BetweenTurns,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlashAction {
    Help,
    Status,
    Context,
    Compact,
    Continue,
    Retry,
    Cancel,
    Model,
    Mode,
    Tasks,
    Agents,
    Memory,
    Remember,
    Skills,
    Mcp,
    Session,
    Save,
    Clear,
    Fork,
    Answer,
    Doctor,
    Exit,
}

/// All commands, in the order of `/help`.
pub(crate) const COMMANDS: [SlashCommand; 22] = [
    SlashCommand {
        name: "/help",
        aliases: &["/?"],
        arguments: "",
        help: "Show the commands and the keys.",
        one_shot: "",
        when: Availability::Always,
        action: SlashAction::Help,
    },
    SlashCommand {
        name: "/status",
        aliases: &[],
        arguments: "",
        help: "Show the session's model, turn and context use.",
        one_shot: "longhaul status -s KEY",
        when: Availability::Always,
        action: SlashAction::Status,
    },
    SlashCommand {
        name: "/context",
        aliases: &[],
        arguments: "",
        help: "Show what fills the context.",
        one_shot: "longhaul context -s KEY",
        when: Availability::Always,
        action: SlashAction::Context,
    },
    SlashCommand {
        name: "/compact",
        aliases: &[],
        arguments: "[FOCUS]",
        help: "Compact the context now, with a summary that focuses on FOCUS.",
        one_shot: "longhaul compact -s KEY [FOCUS]",
        when: Availability::Always,
        action: SlashAction::Compact,
    },
    SlashCommand {
        name: "/continue",
        aliases: &[],
        arguments: "",
        help: "Continue an interrupted answer.",
        one_shot: "longhaul continue -s KEY",
        when: Availability::BetweenTurns,
        action: SlashAction::Continue,
    },
    SlashCommand {
        name: "/retry",
        aliases: &[],
        arguments: "",
        help: "Retry the last turn if it failed; if it is waiting to retry, retry now.",
        one_shot: "longhaul retry -s KEY",
        when: Availability::Always,
        action: SlashAction::Retry,
    },
    SlashCommand {
        name: "/cancel",
        aliases: &[],
        arguments: "",
        help: "Cancel the running turn, like Esc and Ctrl-C.",
        one_shot: "longhaul cancel -s KEY",
        when: Availability::Always,
        action: SlashAction::Cancel,
    },
    SlashCommand {
        name: "/model",
        aliases: &[],
        arguments: "[NAME]",
        help: "Switch to another model; without NAME, pick one from a list.",
        one_shot: "",
        when: Availability::Always,
        action: SlashAction::Model,
    },
    SlashCommand {
        name: "/mode",
        aliases: &[],
        arguments: "[ask|auto-edit|auto|plan|next]",
        help: "Change what is done without asking, as Shift-Tab does; without a mode, show the one in use.",
        one_shot: "longhaul run --permission MODE PROMPT",
        when: Availability::Always,
        action: SlashAction::Mode,
    },
    SlashCommand {
        name: "/tasks",
        aliases: &[],
        arguments: "[list|output ID|kill ID|follow ID]",
        help: "List this session's tasks; show the output of one, kill it, or follow it (between turns).",
        one_shot: "longhaul tasks",
        when: Availability::Always,
        action: SlashAction::Tasks,
    },
    SlashCommand {
        name: "/agents",
        aliases: &[],
        arguments: "",
        help: "List this session's subagents as a tree.",
        one_shot: "longhaul agents -s KEY",
        when: Availability::Always,
        action: SlashAction::Agents,
    },
    SlashCommand {
        name: "/memory",
        aliases: &[],
        arguments: "[list|show PAGE|search WORDS|log [PAGE]]",
        help: "List the memory pages; show one, search, or list changes.",
        one_shot: "longhaul memory",
        when: Availability::Always,
        action: SlashAction::Memory,
    },
    SlashCommand {
        name: "/remember",
        aliases: &[],
        arguments: "[TEXT]",
        help: "Remember TEXT word for word; without TEXT, look through the session for things worth remembering.",
        one_shot: "longhaul remember -s KEY [TEXT]",
        when: Availability::Always,
        action: SlashAction::Remember,
    },
    SlashCommand {
        name: "/skills",
        aliases: &[],
        arguments: "",
        help: "List the skills, and what the model is told of them; /NAME [TEXT] starts one.",
        one_shot: "longhaul skills",
        when: Availability::Always,
        action: SlashAction::Skills,
    },
    SlashCommand {
        name: "/mcp",
        aliases: &[],
        arguments: "",
        help: "Show the MCP servers, their tools and what is wrong with them; /SERVER:PROMPT starts a prompt of one.",
        one_shot: "longhaul mcp",
        when: Availability::Always,
        action: SlashAction::Mcp,
    },
    SlashCommand {
        name: "/session",
        aliases: &["/sessions"],
        arguments: "[list [WORDS]|resume [KEY]|fork [SEQ]|rename KEY|pin|unpin|delete|export FILE|prune [--dry-run]]",
        help: "Show this session's turns, tokens and cost; list all, resume another (between turns), or change this one.",
        one_shot: "longhaul sessions",
        when: Availability::Always,
        action: SlashAction::Session,
    },
    SlashCommand {
        name: "/save",
        aliases: &[],
        arguments: "",
        help: "Check that this session is saved.",
        one_shot: "longhaul save -s KEY",
        when: Availability::Always,
        action: SlashAction::Save,
    },
    SlashCommand {
        name: "/clear",
        aliases: &["/new"],
        arguments: "",
        help: "Start a new session for this folder; `/session resume` goes back.",
        one_shot: "",
        when: Availability::BetweenTurns,
        action: SlashAction::Clear,
    },
    SlashCommand {
        name: "/fork",
        aliases: &[],
        arguments: "[SEQ]",
        help: "Continue in a copy of this session, as it is now or was at an earlier entry.",
        one_shot: "longhaul fork -s KEY [SEQ]",
        when: Availability::BetweenTurns,
        action: SlashAction::Fork,
    },
    SlashCommand {
        name: "/answer",
        aliases: &[],
        arguments: "[ID] yes|always|project|no|TEXT",
        help: "Answer a question; TEXT says no, with a reason.",
        one_shot: "longhaul answer -s KEY ID yes|always|project|no|TEXT",
        when: Availability::Always,
        action: SlashAction::Answer,
    },
    SlashCommand {
        name: "/doctor",
        aliases: &[],
        arguments: "",
        help: "Check the setup and suggest fixes.",
        one_shot: "longhaul doctor",
        when: Availability::Always,
        action: SlashAction::Doctor,
    },
    SlashCommand {
        name: "/exit",
        aliases: &["/quit", "/q"],
        arguments: "",
        help: "Cancel the running turn and exit.",
        one_shot: "",
        when: Availability::Always,
        action: SlashAction::Exit,
    },
];

/// A line that the user entered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SlashInput {
    /// A message for the agent.
    Say(String),
    /// A command with its arguments.
    Command(&'static SlashCommand, String),
    /// No command has this name. A skill may have it; else this is the message for the user.
    Unknown {
        name: String,
        arguments: String,
        mistake: String,
    },
    /// A message for the agent that a name stands for: that of a skill, or of a prompt of an MCP server.
    Start(String),
    /// An unknown or misused command, with the message for the user. It is not sent to the model.
    Mistake(String),
    Nothing,
}

/// Parses a line. Commands are matched exactly; `//x` sends `/x` to the agent.
pub(crate) fn parse_line(line: &str) -> SlashInput {
    let line = line.trim();
    if line.is_empty() {
        return SlashInput::Nothing;
    }
    if line.starts_with("//") {
        return SlashInput::Say(line[1..].to_owned());
    }
    if !line.starts_with('/') {
        return SlashInput::Say(line.to_owned());
    }
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let arguments = arguments.trim();
    match COMMANDS.iter().find(|row| row.name == name || row.aliases.contains(&name)) {
        None => SlashInput::Unknown {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            mistake: unknown_command(name, &[]),
        },
        Some(row) if row.arguments.is_empty() && !arguments.is_empty() => SlashInput::Mistake(format!(
            "{name} takes no arguments; to send the line to the agent, start it with two slashes: //{}",
            &line[1..]
        )),
        Some(row) => SlashInput::Command(row, arguments.to_owned()),
    }
}

/// What the user is told about a name that is no command. `skills` are the other names that could be meant.
fn unknown_command(name: &str, skills: &[&str]) -> String {
    let name: String = name.chars().take(60).collect();
    let nearest = nearest_commands(&name, skills);
    let in_shell = Arguments::command().find_subcommand(name.get(1..).unwrap_or_default()).is_some();
    let hint = match nearest.is_empty() {
        _ if in_shell => format!("it is a command of the shell: longhaul {}.", &name[1..]),
        true => "/help lists all commands.".to_owned(),
        false => format!("did you mean {}?", nearest.join(" or ")),
    };
    format!("unknown command {name}; {hint} To send it to the agent, start the line with two slashes.")
}

fn nearest_commands(name: &str, skills: &[&str]) -> Vec<String> {
    let commands = COMMANDS.iter().flat_map(|row| std::iter::once(&row.name).chain(row.aliases));
    let known = commands.map(|known| &known[1..]).chain(skills.iter().copied());
    let name = name.get(1..).unwrap_or_default();
    let nearest = nearest(known, name, MIN_SIMILARITY);
    nearest.into_iter().map(|known| format!("/{known}")).collect()
}

pub(crate) fn help() -> String {
    let mut help = String::from("Lines that don't start with a slash go to the agent.\n");
    for row in &COMMANDS {
        let usage = row.usage();
        let gap = if usage.len() > 16 { format!("\n  {:<16}", "") } else { String::new() };
        let _ = writeln!(help, "  {usage:<16}{gap}  {}", row.help);
    }
    help.push_str("  /SKILL [TEXT]     Start the skill of this name; /skills lists them.\n");
    help.push_str("  /SERVER:PROMPT    Start a prompt of an MCP server; /mcp lists the servers.\n");
    help.push_str("  //TEXT            Send /TEXT to the agent.\n");
    help.push_str("Keys:\n");
    help.push_str(&key_help());
    help.truncate(help.trim_end().len());
    help
}

impl SlashCommand {
    fn usage(&self) -> String {
        let names = std::iter::once(&self.name).chain(self.aliases).copied().collect::<Vec<_>>().join(" ");
        if self.arguments.is_empty() { names } else { format!("{names} {}", self.arguments) }
    }
}

#[cfg(test)]
#[path = "slash_tests.rs"]
mod tests;
