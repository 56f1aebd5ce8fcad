//! `longhaul send` and `longhaul cancel`: what any process may put into a session's inbox.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use longhaul_agent::{Cancelled, cancel_turn, input_at, load, redactor};
use longhaul_journal::{Append, Error, Journal, SqliteJournal, check_size, name_session, put};
use longhaul_protocol::{
    InboxRecord, Input, InputId, JoinMode, Outcome, SessionCreated, SessionId, SessionRecord, StreamName,
};
use serde_json::json;

use crate::arguments::{CancelOptions, Choice, Mode, Place, SendOptions};
use crate::output::{in_words, json, line, note, shortened};
use crate::resuming::{self, quoted};
use crate::sessions::finding::find_session;
use crate::{BadUsage, config, exit};

/// The longest input that is accepted.
const LONGEST_INPUT: u64 = 8 << 20;
/// How long `cancel` waits for the end of the turn: a command is given two seconds before it is forced.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn send(place: &Place, choice: &Choice, options: SendOptions) -> anyhow::Result<u8> {
    let text = words(options.text)?;
    let work_dir = choice.work_dir()?;
    let id = InputId::generate();
    let input = InboxRecord::Input(Input { id, text, images: vec![], mode: options.mode.into() });
    let mut record = redactor(&config::load(place, choice)?)?.record(input.encode());
    if let Some(key) = &options.idempotency {
        record = record.with_key(key);
    }
    // What can't be accepted makes no session.
    check_size(&record)?;
    let journal = place.journal_or_new().await?;
    refuse_trashed(&journal, &options.session).await?;
    let session = name_session(&journal, &options.session).await?;
    if let Some(folder) = &work_dir {
        begin_in(&journal, session, &options.session, folder).await?;
    }
    let seq = put(&journal, session, record).await?;
    let accepted = input_at(&journal, session, seq).await?.unwrap_or(id);
    let is_new = accepted == id;
    if options.json {
        let accepted = json!({"type": "input_accepted", "session": options.session, "input_seq": seq, "id": accepted, "new": is_new});
        json(&accepted)?;
    } else {
        let before = if is_new { "accepted" } else { "this key was accepted before," };
        line(format!("{before} as {accepted}"))?;
    }
    if !somebody_runs_it(&journal, session).await? {
        note(format!(
            "no runtime is running; `{}` runs it, and so does the next `longhaul serve --no-http`",
            resuming::resume(place, choice, &options.session)
        ));
    }
    journal.close().await;
    Ok(exit::DONE)
}

/// The words of an input, of which there must be some.
pub(crate) fn words(text: String) -> anyhow::Result<String> {
    let text = given(text)?;
    if text.trim().is_empty() {
        return Err(BadUsage("there is nothing to send: the text is empty".to_owned()).into());
    }
    Ok(text)
}

/// A text: the one that was given, or for `-` that on standard input.
pub(crate) fn given(text: String) -> anyhow::Result<String> {
    let text = if text == "-" {
        let mut read = String::new();
        std::io::stdin()
            .take(LONGEST_INPUT + 1)
            .read_to_string(&mut read)
            .map_err(|error| BadUsage(format!("standard input can't be read: {error}")))?;
        read
    } else {
        text
    };
    if text.len() as u64 > LONGEST_INPUT {
        let most = LONGEST_INPUT >> 20;
        return Err(BadUsage(format!(
            "an input may have {most} MiB; put it into a file, and say where it is"
        ))
        .into());
    }
    Ok(text)
}

/// A session that has not begun begins in this folder.
async fn begin_in(journal: &SqliteJournal, id: SessionId, key: &str, folder: &Path) -> anyhow::Result<()> {
    let stream = StreamName::session(id);
    if journal.head(&stream).await?.seq > 0 {
        note(format!("{key} has its work folder already; --work-dir is for new sessions"));
        return Ok(());
    }
    let lease = match journal.acquire(&stream).await {
        Ok(lease) => lease,
        Err(Error::Held { holder, .. }) => {
            note(format!("{holder} begins this session just now, with a work folder of its own"));
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let created = SessionRecord::SessionCreated(SessionCreated {
        id,
        key: key.to_owned(),
        work_dir: Some(folder.display().to_string()),
        origin: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    let begun = journal.append(Append::under(&lease).expecting(0).record(created.encode())).await;
    journal.release(&lease).await?;
    match begun {
        Ok(_) | Err(Error::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether somebody has a session, or would take it.
pub(crate) async fn somebody_runs_it(journal: &dyn Journal, session: SessionId) -> Result<bool, Error> {
    for stream in [StreamName::session(session), StreamName::host()] {
        if journal.holder(&stream).await?.is_some_and(|holder| !holder.is_gone()) {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) async fn refuse_trashed(journal: &dyn Journal, key: &str) -> anyhow::Result<()> {
    match journal.session(key).await? {
        Some(entry) if entry.trashed => {
            let restore = format!("longhaul sessions restore {}", quoted(key));
            Err(BadUsage(format!("the session {key:?} was put into the trash; to bring it back: {restore}"))
                .into())
        }
        _ => Ok(()),
    }
}

pub(crate) async fn cancel(place: &Place, options: &CancelOptions) -> anyhow::Result<u8> {
    let key = &options.session;
    let Some(journal) = place.journal().await? else {
        return Err(Error::NoSuchSession { key: key.clone() }.into());
    };
    let entry = find_session(&journal, key).await?;
    let (session, key) = (entry.id, &entry.key);
    refuse_trashed(&journal, key).await?;
    let served = somebody_runs_it(&journal, session).await?;
    let shown = shortened(key, 80);
    // An order that no turn needs would wait for ever, and look like something to do.
    let is_idle = !served && {
        let state = load(&journal, key, session).await?;
        state.turn.is_none() && state.inbox_through >= entry.inbox_head
    };
    let cancelled = match is_idle {
        true => Cancelled::NoTurn,
        false => cancel_turn(&journal, session, if served { PATIENCE } else { Duration::ZERO }).await?,
    };
    journal.close().await;
    let (turn, outcome) = match &cancelled {
        Cancelled::Ended(ended) => (Some(ended.turn), Some(ended.outcome)),
        Cancelled::NoTurn | Cancelled::NotYet => (None, None),
    };
    if options.json {
        let taken = cancelled != Cancelled::NotYet;
        json(&json!({"session": key, "turn": turn, "outcome": outcome, "taken": taken}))?;
    }
    match (cancelled, served) {
        (Cancelled::NotYet, true) => {
            note(format!(
                "the order is in the inbox of {shown}, but the turn has not ended after {PATIENCE:?}"
            ));
            return Ok(exit::FAILED);
        }
        (Cancelled::NotYet, false) => {
            note(
                "no runtime is running; the turn and its command are ended when `longhaul serve --no-http` next runs",
            );
        }
        _ if options.json => {}
        (Cancelled::NoTurn, _) => line(format!("no turn of {shown} was running"))?,
        (Cancelled::Ended(ended), _) if ended.outcome == Outcome::Cancelled => {
            line(format!("turn {} of {shown} is cancelled", ended.turn))?;
        }
        (Cancelled::Ended(ended), _) => {
            line(format!("turn {} of {shown} had ended by itself: {}", ended.turn, in_words(ended.outcome)))?;
        }
    }
    Ok(exit::DONE)
}

impl From<Mode> for JoinMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Join => Self::Join,
            Mode::After => Self::After,
            Mode::Interrupt => Self::Interrupt,
        }
    }
}
