//! `longhaul send`: puts an input into the inbox of a session.

use std::sync::Arc;

use longhaul_agent::{Client, SessionStart, redactor};
use longhaul_journal::{Journal, check_size};
use longhaul_protocol::{InboxRecord, Input, InputId, JoinMode};
use serde_json::json;

use crate::args::{GlobalArgs, Mode, SendOptions};
use crate::input_text::read_prompt;
use crate::output::{note, print};
use crate::session_lookup::{refuse_trashed, session_name};
use crate::{config, exit, suggested_command};

pub(crate) async fn run(globals: &GlobalArgs, options: SendOptions) -> anyhow::Result<u8> {
    let text = read_prompt(options.text)?;
    let key = session_name(globals, None).await?;
    let work_dir = globals.work_dir()?;
    let redactor = redactor(&config::load(globals)?)?;
    let id = InputId::generate();
    let input = Input::new(id, text, options.mode.into());
    // An input that can't be stored must not leave a new home or session behind.
    check_size(&redactor.redact_record(InboxRecord::Input(input.clone()).encode()))?;
    let journal = Arc::new(globals.open_or_create_journal().await?);
    refuse_trashed(&*journal, &key).await?;
    let session = Client::new(journal.clone(), redactor).session(&key).await?;
    if let Some(folder) = &work_dir {
        match session.create_in(folder).await? {
            SessionStart::BegunBefore => {
                note(format!("{key} already has a work folder; ignoring --work-dir"));
            }
            SessionStart::BegunBy(holder) => {
                note(format!("{holder} is just creating this session; ignoring --work-dir"));
            }
            _ => {}
        }
    }
    let accepted = session.put(input, options.idempotency.as_deref()).await?;
    let is_new = accepted.id == id;
    let before = if is_new { "accepted" } else { "already accepted" };
    print(
        options.json,
        || json!({"type": "input_accepted", "session": key, "input_seq": accepted.seq, "id": accepted.id, "new": is_new}),
        || vec![format!("{before} as {}", accepted.id)],
    )?;
    if !session.is_running().await? {
        note(format!(
            "no process is running the session; to run it: {} (or `longhaul serve`)",
            suggested_command::resume(globals, &key)
        ));
    }
    journal.close().await;
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
