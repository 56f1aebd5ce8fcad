//! `longhaul resume`: goes on with an unfinished turn.

use std::io::IsTerminal;

use longhaul_agent::{Request, Wake, load};
use longhaul_journal::{Journal, SessionEntry, SqliteJournal};
use serde_json::json;

use crate::args::{GlobalArgs, ResumeOptions};
use crate::event_printer::Form;
use crate::one_shot::{OneShot, Stay};
use crate::output::{line, note, shortened};
use crate::session_lookup::open_session;
use crate::signals::ExitSignals;
use crate::tui::chat::Terminal;
use crate::tui::{PickOutcome, pick};
use crate::{exit, output, tui};

pub(crate) async fn run(globals: &GlobalArgs, options: ResumeOptions) -> anyhow::Result<u8> {
    let ResumeOptions { session, json } = options;
    let key = match session {
        Some(key) => key,
        None => match &unfinished(globals).await?[..] {
            [] => {
                note("nothing is unfinished");
                return Ok(exit::DONE);
            }
            [(key, _)] => key.clone(),
            several if !json && can_choose() => match choose(several).await? {
                PickOutcome::Chosen(index) => several[index].0.clone(),
                PickOutcome::Left => return Ok(exit::DONE),
                PickOutcome::Signal(number) => return Ok(exit::SIGNAL + number),
            },
            several => {
                note("several sessions have something unfinished; name one: longhaul resume KEY");
                if json {
                    let form = |(key, what): &(String, String)| json!({"session": key, "unfinished": what});
                    output::json(&several.iter().map(form).collect::<Vec<_>>())?;
                    return Ok(exit::BAD_USAGE);
                }
                several
                    .iter()
                    .try_for_each(|(key, what)| line(format!("{}  # {what}", shortened(key, 200))))?;
                return Ok(exit::BAD_USAGE);
            }
        },
    };
    again(globals, key, json, Request::Resume).await
}

/// Whether somebody is there who sees a list and has keys.
fn can_choose() -> bool {
    let is_dumb = std::env::var("TERM").is_ok_and(|terminal| terminal == "dumb");
    !is_dumb && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

async fn choose(several: &[(String, String)]) -> anyhow::Result<PickOutcome> {
    // However it ends, the terminal is as it was.
    let _terminal = Terminal::remember();
    let mut signals = ExitSignals::new()?;
    let item = |(key, what): &(String, String)| tui::PickerItem {
        key: key.clone(),
        line: shortened(key, 200),
        detail: what.clone(),
    };
    Ok(pick("Go on with which session?", several.iter().map(item).collect(), &mut signals).await?)
}

pub(crate) async fn again(
    globals: &GlobalArgs,
    key: String,
    as_json: bool,
    request: Request,
) -> anyhow::Result<u8> {
    let key = open_session(globals, &key).await?.1.key;
    let form = Form::of_answer(as_json);
    OneShot { globals, key, form, stay: Stay::ForTurn }.carry_out(request).await
}

/// The sessions that have something unfinished, each with what that is.
async fn unfinished(globals: &GlobalArgs) -> anyhow::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let Some(journal) = globals.open_journal().await? else { return Ok(found) };
    let mut after: Option<String> = None;
    loop {
        let page = journal.sessions(after.as_deref(), 500).await?;
        let Some(last) = page.last() else { return Ok(found) };
        after = Some(last.key.clone());
        for entry in page.into_iter().filter(|entry| !entry.trashed) {
            if let Some(what) = open_in(&journal, &entry).await? {
                found.push((entry.key, what));
            }
        }
    }
}

/// What of a session is open, if something is.
pub(crate) async fn open_in(journal: &SqliteJournal, entry: &SessionEntry) -> anyhow::Result<Option<String>> {
    let state = load(journal, &entry.key, entry.id).await?;
    Ok(match &state.turn {
        Some(turn) => Some(format!("turn {}: {}", turn.number, state.under_way())),
        None if state.work(entry.inbox_head, Wake::Never).is_unfinished() => {
            Some("an input waits".to_owned())
        }
        None => None,
    })
}
