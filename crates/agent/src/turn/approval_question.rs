//! The question whether a call may run: what it would do, why the runtime asks, and what the answers allow.
//!
//! Everything that the model chose is shown so that it can't pass for something else, in every client alike: a bar stands before each line of
//! a command, characters that are invisible or change the direction of writing are escaped, and long runs of blanks are counted.

use std::path::Path;

use longhaul_protocol::{
    Answer, ApprovalGrant, PrintablePath, Question, QuestionId, QuestionKind, ToolFinished, is_invisible,
    is_misleading,
};
use longhaul_tools::{RefusedAccess, SandboxRefusal, describe_grant, omissions_of_diff};
use serde_json::Value;

use crate::session::state::CallState;

/// The most characters of a command or of arguments to show in the question.
const MAX_SHOWN_CHARS: usize = 8 << 10;
/// The most characters of a command's output to show in the question.
const MAX_QUOTED_CHARS: usize = 200;
/// Longer runs of spaces or empty lines are shown as a count.
const MAX_BLANKS: usize = 40;
const MAX_EMPTY_LINES: usize = 2;
/// The tool whose command is shown in place of its arguments.
const EXEC: &str = "exec";
/// The tool whose URL is shown in place of its arguments.
const WEB_FETCH: &str = "web_fetch";

/// The question to the user. It shows the command first and in full, because the user must see what a yes allows.
/// `grant` is what `always` and `project` allow.
pub(super) fn approval_question(
    call: &CallState,
    reasons: &[String],
    diff: Option<&str>,
    grant: Option<ApprovalGrant>,
) -> Question {
    let arguments =
        (call.name == EXEC).then(|| serde_json::from_str::<Value>(&call.arguments).ok()).flatten();
    let command = arguments.as_ref().and_then(|arguments| Some((arguments, arguments["command"].as_str()?)));
    let what = match command {
        Some((arguments, command)) => format!("run{}{}", show_command(command), show_options(arguments)),
        // The diff shows what the arguments do, up to its bounds.
        None if diff.is_some() => {
            format!("change {}?{}", show_path(&call.arguments), show_omissions(diff))
        }
        None => match fetched_url(call) {
            Some(url) => format!("fetch{}", show_command(&url)),
            None => format!("run with{}", show_command(&call.arguments)),
        },
    };
    let reasons: Vec<String> = reasons.iter().map(|reason| on_one_line(reason)).collect();
    let why = reasons.join("; ");
    let always =
        grant.as_ref().map(|grant| format!("\n(always allows: {})", on_one_line(&describe_grant(grant))));
    let text = format!("May {} {what}\n({why}){}", on_one_line(&call.name), always.unwrap_or_default());
    let answers = match grant {
        Some(_) => vec![Answer::Yes, Answer::Always, Answer::Project, Answer::No],
        None => vec![Answer::Yes, Answer::No],
    };
    let choices = answers.into_iter().map(|answer| answer.word().to_owned()).collect();
    let question = Question::new(QuestionId::generate(), QuestionKind::Approval, text);
    let diff = diff.map(show_diff);
    Question { choices, call: Some(call.id), reasons, diff, grant, ..question }
}

/// The question whether a command that the sandbox refused may run once outside. Everything that the command chose itself stands behind a
/// bar. `refused` is the result of its run in the sandbox.
pub(super) fn outside_question(
    call: &CallState,
    refusal: &SandboxRefusal,
    refused: ToolFinished,
) -> Question {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let command = command_rows(arguments["command"].as_str().unwrap_or_default());
    let what = match refusal.access {
        RefusedAccess::Files => "a file or an operation outside of its bounds",
        RefusedAccess::Network => "the network",
    };
    let line: String = on_one_line(&refusal.line).chars().take(MAX_QUOTED_CHARS).collect();
    let text = format!(
        "The sandbox refused this command ({what}). Run it once outside the sandbox?\n│ {}{}\n\
         (it has already run once in the sandbox and failed; what it did until then stands, and it would start again from its \
         beginning. Outside it can do what you can. That the sandbox stopped it is a guess from its output:)\n│ {line}",
        command.join("\n│ "),
        show_options(&arguments),
    );
    let choices = [Answer::Yes, Answer::No].map(|answer| answer.word().to_owned()).to_vec();
    let question = Question::new(QuestionId::generate(), QuestionKind::Approval, text);
    let reasons = vec![format!("the sandbox refused it ({what})")];
    Question { choices, call: Some(call.id), reasons, refused: Some(Box::new(refused)), ..question }
}

/// The address of the page that a call fetches.
fn fetched_url(call: &CallState) -> Option<String> {
    let arguments: Value = (call.name == WEB_FETCH).then(|| serde_json::from_str(&call.arguments).ok())??;
    arguments["url"].as_str().map(str::to_owned)
}

/// The file that a call is about.
fn show_path(arguments: &str) -> String {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let path = arguments["path"].as_str().map(show_name);
    path.unwrap_or_else(|| "these files".to_owned())
}

fn show_name(path: &str) -> String {
    on_one_line(&Path::new(path).printable().to_string())
}

/// A diff whose lines show everything that is in them. Their marks stay where they are.
fn show_diff(diff: &str) -> String {
    let show_line = |line: &str| match line.split_at_checked(1) {
        Some((mark, text)) => format!("{mark}{}\n", on_one_line(text)),
        None => format!("{}\n", on_one_line(line)),
    };
    // `lines` would take a carriage return at the end of a line for a part of the line feed.
    diff.trim_end_matches('\n').split('\n').map(show_line).collect()
}

/// What the diff does not show, as a line of the question: its end may be far below what a person looks at.
fn show_omissions(diff: Option<&str>) -> String {
    let omissions = diff.and_then(omissions_of_diff);
    omissions.map(|what| format!("\n(NOT SHOWN: {})", on_one_line(&what))).unwrap_or_default()
}

/// The folder of a command, and whether it runs in the background.
fn show_options(arguments: &Value) -> String {
    let folder = arguments["work_dir"].as_str();
    let folder = folder.map(|folder| format!("\n(in {})", show_name(folder)));
    let background = (arguments["run_in_background"] == true).then_some("\n(in the background)");
    folder.unwrap_or_default() + background.unwrap_or_default()
}

/// The rows in which a question shows a command. Empty lines are shown as a count, so that they can't push anything out of sight.
fn command_rows(command: &str) -> Vec<String> {
    let shown: String = command.chars().take(MAX_SHOWN_CHARS).collect();
    let mut rows = Vec::new();
    for lines in
        shown.trim_end().lines().collect::<Vec<_>>().chunk_by(|one, next| is_blank(one) == is_blank(next))
    {
        match lines {
            [first, ..] if is_blank(first) && lines.len() > MAX_EMPTY_LINES => {
                rows.push(format!("({} empty lines)", lines.len()));
            }
            lines => rows.extend(lines.iter().map(|line| on_one_line(line))),
        }
    }
    let hidden = command.chars().count().saturating_sub(MAX_SHOWN_CHARS);
    if hidden > 0 {
        rows.push(format!("[… {hidden} more characters are not shown]"));
    }
    rows
}

/// The rows of a command, with a bar before each, so that no row looks like a part of the question.
fn show_command(command: &str) -> String {
    let lines = match command.trim_end().lines().count() {
        0 | 1 => String::new(),
        several => format!(" ({several} lines)"),
    };
    format!("{lines}:\n│ {}", command_rows(command).join("\n│ "))
}

fn is_blank(line: &str) -> bool {
    line.chars().all(looks_blank)
}

/// Whether a character leaves a blank where it stands, or nothing at all.
fn looks_blank(letter: char) -> bool {
    letter.is_whitespace() || is_invisible(letter) || is_misleading(letter)
}

/// A text on one line in which every character can be seen: long runs of blanks are shown as a count, and what is invisible or changes the
/// direction of writing as `\u{202e}`.
pub(super) fn on_one_line(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let runs = letters.chunk_by(|one, next| looks_blank(*one) == looks_blank(*next));
    let mut shown = String::with_capacity(text.len());
    for run in runs {
        match run.first() {
            Some(first) if looks_blank(*first) && run.len() > MAX_BLANKS => {
                shown.push_str(&format!(" ({} blanks) ", run.len()));
            }
            _ => run.iter().for_each(|letter| push_visible(&mut shown, *letter)),
        }
    }
    shown
}

fn push_visible(shown: &mut String, letter: char) {
    match letter {
        '\n' => shown.push('⏎'),
        '\t' => shown.push('\t'),
        hidden if is_invisible(hidden) || is_misleading(hidden) => shown.extend(hidden.escape_default()),
        letter => shown.push(letter),
    }
}

#[cfg(test)]
#[path = "approval_question_tests.rs"]
mod tests;
