//! The fields of a summary: their names as arguments, their headings, and other names that models use.

use longhaul_protocol::Summary;

use super::WrittenSummary;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Goal,
    Directives,
    Constraints,
    Decisions,
    Done,
    InProgress,
    NextAction,
    Blocked,
    Files,
    Commands,
    Withdrawn,
    Notes,
}

pub(super) enum FieldValue<'a> {
    /// A text.
    Text(&'a mut String),
    /// A list with one line for each entry.
    List(&'a mut Vec<String>),
}

impl Field {
    /// All fields, in the order in which they are shown.
    pub(super) const ALL: [Self; 12] = [
        Self::Goal,
        Self::Directives,
        Self::Constraints,
        Self::Decisions,
        Self::Done,
        Self::InProgress,
        Self::NextAction,
        Self::Blocked,
        Self::Files,
        Self::Commands,
        Self::Withdrawn,
        Self::Notes,
    ];

    pub(super) fn requested() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|field| *field != Self::Notes)
    }

    /// The field's name as an argument of the tool.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Goal => "goal",
            Self::Directives => "directives",
            Self::Constraints => "constraints",
            Self::Decisions => "decisions",
            Self::Done => "done",
            Self::InProgress => "in_progress",
            Self::NextAction => "next_action",
            Self::Blocked => "blocked",
            Self::Files => "files",
            Self::Commands => "commands",
            Self::Withdrawn => "withdrawn",
            Self::Notes => "notes",
        }
    }

    /// The field's heading in a summary that is text.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Goal => "Goal",
            Self::Directives => "Directives",
            Self::Constraints => "Constraints",
            Self::Decisions => "Decisions",
            Self::Done => "Done",
            Self::InProgress => "In progress",
            Self::NextAction => "Next action",
            Self::Blocked => "Blocked",
            Self::Files => "Files",
            Self::Commands => "Commands and results",
            Self::Withdrawn => "Withdrawn",
            Self::Notes => "Notes",
        }
    }

    /// The field's description in the prompt.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Goal => "what all of it is for",
            Self::Directives => "what the user said that holds from now on, word for word, one an entry",
            Self::Constraints => "other limits that were found, in your words",
            Self::Decisions => "what was decided, and why",
            Self::Done => "what is done",
            Self::InProgress => "what is being done, and how far it is",
            Self::NextAction => "the one thing to do next",
            Self::Blocked => "what can't go on, and why",
            Self::Files => "paths that matter, and what is in them or was changed",
            Self::Commands => "commands that matter, and what came of them, with numbers and error texts",
            Self::Withdrawn => "directives that the user took back, word for word as they were given",
            Self::Notes => "anything else",
        }
    }

    /// Other headings that models use for the field, in lower case.
    fn other_names(self) -> &'static [&'static str] {
        match self {
            Self::Goal => &["goals", "the goal", "objective", "objectives", "overall goal", "purpose"],
            Self::Directives => &[
                "directive",
                "user directives",
                "directives of the user",
                "directives of the user that still hold",
                "constraints and directives",
                "constraints & directives",
                "directives and constraints",
                "directives & constraints",
                "user instructions",
                "standing instructions",
            ],
            Self::Constraints => &["constraint", "limits", "limitations"],
            Self::Decisions => &["decision", "key decisions", "decisions made", "decisions and reasons"],
            Self::Done => &["completed", "finished", "progress", "work done", "what is done", "accomplished"],
            Self::InProgress => {
                &["in-progress", "current work", "ongoing", "current state", "currently in progress"]
            }
            Self::NextAction => {
                &["next", "next step", "next steps", "next actions", "what is next", "to do next"]
            }
            Self::Blocked => &["blockers", "blocker", "blocked by", "open problems"],
            Self::Files => &["relevant files", "key files", "files changed", "important files"],
            Self::Commands => &["commands", "command", "commands run", "commands & results"],
            Self::Withdrawn => &["withdrawn directives", "directives withdrawn", "withdrawn by the user"],
            Self::Notes => &["other notes", "additional notes"],
        }
    }

    /// The field with this name, heading or other heading.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let name = name.trim().to_lowercase();
        let is_called = |field: &Self| {
            name == field.name()
                || name == field.heading().to_lowercase()
                || field.other_names().contains(&name.as_str())
        };
        Self::ALL.into_iter().find(is_called)
    }

    /// The value of the field in a summary.
    pub(super) fn value_in(self, written: &mut WrittenSummary) -> FieldValue<'_> {
        let WrittenSummary { summary, withdrawn } = written;
        let Summary {
            goal,
            directives,
            constraints,
            decisions,
            done,
            in_progress,
            next_action,
            blocked,
            files,
            commands,
            notes,
        } = summary;
        match self {
            Self::Goal => FieldValue::Text(goal),
            Self::Directives => FieldValue::List(directives),
            Self::Constraints => FieldValue::List(constraints),
            Self::Decisions => FieldValue::List(decisions),
            Self::Done => FieldValue::List(done),
            Self::InProgress => FieldValue::List(in_progress),
            Self::NextAction => FieldValue::Text(next_action),
            Self::Blocked => FieldValue::List(blocked),
            Self::Files => FieldValue::List(files),
            Self::Commands => FieldValue::List(commands),
            Self::Withdrawn => FieldValue::List(withdrawn),
            Self::Notes => FieldValue::Text(notes),
        }
    }
}
