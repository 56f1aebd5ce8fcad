//! `longhaul resume`: goes on with an unfinished turn.

use std::io::IsTerminal;

use longhaul_agent::Request;
use longhaul_agent::config::Wake;
use longhaul_agent::session::{State, load};
use longhaul_journal::{Journal, SessionEntry, all_sessions, records};
use longhaul_protocol::{InboxRecord, OrderKind, QuestionId, StreamName};
use serde_json::json;

use crate::args::{GlobalArgs, ResumeOptions};
use crate::event_printer::Form;
use crate::exit;
use crate::one_shot::{OneShot, Stay};
use crate::output::{note, print, truncate};
use crate::session_lookup::{named_session, open_session};
use crate::signals::ExitSignals;
use crate::tui::terminal::Terminal;
use crate::tui::{PickOutcome, PickerItem, pick};

/// A session with an open turn or a waiting input.
struct UnfinishedSession {
    key: String,
    /// What is unfinished.
    what: String,
}

pub(crate) async fn run(globals: &GlobalArgs, options: ResumeOptions) -> anyhow::Result<u8> {
    let ResumeOptions { key, json } = options;
    let named = match key.is_some() || globals.session.is_some() {
        true => Some(named_session(globals, key)?),
        false => None,
    };
    let key = match named {
        Some(key) => key,
        None => match &unfinished_sessions(globals).await?[..] {
            [] => {
                note("nothing to resume");
                return Ok(exit::DONE);
            }
            [one] => one.key.clone(),
            several if !json && can_pick() => match pick_session(several).await? {
                PickOutcome::Chosen(index) => several[index].key.clone(),
                PickOutcome::Cancelled => return Ok(exit::DONE),
                PickOutcome::Signal(number) => return Ok(exit::SIGNAL + number),
            },
            several => {
                note("several sessions have unfinished work; name one with `longhaul resume KEY`");
                let form = |one: &UnfinishedSession| json!({"session": one.key, "unfinished": one.what});
                let line = |one: &UnfinishedSession| format!("{}  # {}", truncate(&one.key, 200), one.what);
                print(
                    json,
                    || several.iter().map(form).collect::<Vec<_>>(),
                    || several.iter().map(line).collect(),
                )?;
                return Ok(exit::BAD_USAGE);
            }
        },
    };
    run_without_input(globals, key, json, Request::Resume).await
}

/// Whether there is a terminal that can show a picker.
fn can_pick() -> bool {
    let is_dumb = std::env::var("TERM").is_ok_and(|terminal| terminal == "dumb");
    !is_dumb && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

async fn pick_session(several: &[UnfinishedSession]) -> anyhow::Result<PickOutcome> {
    // Restores the terminal when it is dropped.
    let _terminal = Terminal::remember();
    let mut signals = ExitSignals::new()?;
    let item = |one: &UnfinishedSession| PickerItem {
        key: one.key.clone(),
        line: truncate(&one.key, 200),
        detail: one.what.clone(),
    };
    Ok(pick("Resume which session?", several.iter().map(item).collect(), &mut signals).await?)
}

/// Runs a turn of an existing session that needs no new input: resume, retry or continue.
pub(super) async fn run_without_input(
    globals: &GlobalArgs,
    name: String,
    as_json: bool,
    request: Request,
) -> anyhow::Result<u8> {
    let key = open_session(globals, &name).await?.1.key;
    let form = Form::of_answer(as_json);
    OneShot { globals, key, is_new: false, is_typed: false, form, stay: Stay::ForTurn }
        .carry_out(request)
        .await
}

async fn unfinished_sessions(globals: &GlobalArgs) -> anyhow::Result<Vec<UnfinishedSession>> {
    let mut unfinished = Vec::new();
    let Some(journal) = globals.open_journal().await? else { return Ok(unfinished) };
    let mut sessions = all_sessions(&journal);
    while let Some(entry) = sessions.next().await? {
        if !entry.trashed
            && let Some(what) = describe_unfinished(&journal, &entry).await?
        {
            unfinished.push(UnfinishedSession { key: entry.key, what });
        }
    }
    Ok(unfinished)
}

/// What of a session is unfinished, if anything is.
pub(crate) async fn describe_unfinished(
    journal: &dyn Journal,
    entry: &SessionEntry,
) -> anyhow::Result<Option<String>> {
    let state = load(journal, &entry.key, entry.id).await?;
    Ok(match &state.turn {
        Some(turn) if is_answered(journal, entry, &state).await? => {
            Some(format!("turn {}: its question is answered", turn.number))
        }
        Some(turn) => Some(format!("turn {}: {}", turn.number, state.describe_open_work())),
        None if longhaul_agent::session::Work::of(&state, entry.inbox_head, Wake::Never).is_unfinished() => {
            Some("a message is waiting".to_owned())
        }
        None => None,
    })
}

/// Whether the inbox has the answer to every open question, and there are some.
async fn is_answered(journal: &dyn Journal, entry: &SessionEntry, state: &State) -> anyhow::Result<bool> {
    let mut open: Vec<QuestionId> = state.questions.iter().map(|question| question.id).collect();
    if open.is_empty() {
        return Ok(false);
    }
    let inbox = StreamName::inbox(entry.id);
    let mut waiting = records(journal, &inbox, state.inbox_through + 1);
    while let Some(record) = waiting.next().await? {
        if let Ok(InboxRecord::Order(order)) = InboxRecord::decode(&record)
            && let OrderKind::Answer { question, .. } = order.kind
        {
            open.retain(|id| *id != question);
        }
    }
    Ok(open.is_empty())
}
