//! `longhaul send`: puts an input into the inbox of a session.

use std::path::Path;

use longhaul_agent::{input_at, redactor};
use longhaul_journal::{Append, Error, Journal, SqliteJournal, check_size, name_session, put};
use longhaul_protocol::{
    InboxRecord, Input, InputId, JoinMode, SessionCreated, SessionId, SessionRecord, StreamName,
};
use serde_json::json;

use crate::args::{Choice, Mode, Place, SendOptions};
use crate::input_text::words;
use crate::output::{json, line, note};
use crate::session_lookup::{refuse_trashed, somebody_runs_it};
use crate::{config, exit, suggested_command};

pub(crate) async fn run(place: &Place, choice: &Choice, options: SendOptions) -> anyhow::Result<u8> {
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
            suggested_command::resume(place, choice, &options.session)
        ));
    }
    journal.close().await;
    Ok(exit::DONE)
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

impl From<Mode> for JoinMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Join => Self::Join,
            Mode::After => Self::After,
            Mode::Interrupt => Self::Interrupt,
        }
    }
}
