//! `longhaul send` and `longhaul cancel`: what any process may put into a session's inbox.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use longhaul_journal::{Append, Error, Journal, Page, SqliteJournal, name_session, put, resolve};
use longhaul_protocol::{
    InboxRecord, Input, InputId, JoinMode, Order, OrderId, OrderKind, Seq, SessionCreated, SessionId,
    SessionRecord, StreamName, TurnEnded,
};
use serde_json::json;

use crate::arguments::{CancelOptions, Choice, Mode, Place, SendOptions};
use crate::output::{json, line};
use crate::{BadUsage, exit};

/// How long `cancel` waits for the end of the turn: a command is given two seconds before it is forced.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it looks. It holds no lease, so nobody rings it.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) async fn send(place: &Place, choice: &Choice, options: SendOptions) -> anyhow::Result<u8> {
    let text = words(options.text)?;
    let work_dir = choice.work_dir()?;
    let journal = place.journal_or_new().await?;
    if journal.session(&options.session).await?.is_some_and(|entry| entry.trashed) {
        let refusal = format!("the session {:?} was put into the trash", options.session);
        return Err(BadUsage(refusal).into());
    }
    let session = name_session(&journal, &options.session).await?;
    if let Some(folder) = &work_dir {
        begin_in(&journal, session, &options.session, folder).await?;
    }
    let id = InputId::generate();
    let mut record =
        InboxRecord::Input(Input { id, text, images: vec![], mode: options.mode.into() }).encode();
    if let Some(key) = &options.idempotency {
        record = record.with_key(key);
    }
    let seq = put(&journal, session, record).await?;
    let id = accepted_at(&journal, session, seq).await?.unwrap_or(id);
    if options.json {
        let accepted =
            json!({"type": "input_accepted", "session": options.session, "input_seq": seq, "id": id});
        json(&accepted)?;
    } else {
        line(format!("accepted as {id}"))?;
    }
    if !somebody_runs_it(&journal, session).await? {
        eprintln!("longhaul: no runtime is running; it is run when `longhaul serve --no-http` next is");
    }
    journal.close().await;
    Ok(exit::DONE)
}

fn words(text: String) -> anyhow::Result<String> {
    let text = if text == "-" {
        let mut read = String::new();
        std::io::stdin().read_to_string(&mut read).context("standard input can't be read")?;
        read
    } else {
        text
    };
    if text.trim().is_empty() {
        return Err(BadUsage("there is nothing to send: the text is empty".to_owned()).into());
    }
    Ok(text)
}

/// A session that has not begun begins in this folder.
async fn begin_in(journal: &SqliteJournal, id: SessionId, key: &str, folder: &Path) -> anyhow::Result<()> {
    let stream = StreamName::session(id);
    if journal.head(&stream).await?.seq > 0 {
        eprintln!("longhaul: {key} has its work folder already; --work-dir is for new sessions");
        return Ok(());
    }
    let lease = match journal.acquire(&stream).await {
        Ok(lease) => lease,
        // Somebody begins it just now.
        Err(Error::Held { .. }) => return Ok(()),
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

/// The id of what stands in the inbox: with a key that was used before it is that of the first.
async fn accepted_at(
    journal: &SqliteJournal,
    session: SessionId,
    seq: Seq,
) -> anyhow::Result<Option<InputId>> {
    let page = Page { records: 1, bytes: 0 };
    let records = journal.read(&StreamName::inbox(session), seq, page).await?;
    Ok(records.first().and_then(|record| match InboxRecord::decode(record) {
        Ok(InboxRecord::Input(input)) => Some(input.id),
        _ => None,
    }))
}

async fn somebody_runs_it(journal: &SqliteJournal, session: SessionId) -> anyhow::Result<bool> {
    for stream in [StreamName::session(session), StreamName::host()] {
        if journal.holder(&stream).await?.is_some_and(|holder| !holder.is_gone()) {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) async fn cancel(place: &Place, options: &CancelOptions) -> anyhow::Result<u8> {
    let key = &options.session;
    let Some(journal) = place.journal().await? else {
        return Err(Error::NoSuchSession { key: key.clone() }.into());
    };
    let session = resolve(&journal, key).await?.id;
    let order = OrderId::generate();
    let head = journal.head(&StreamName::session(session)).await?.seq;
    let record = InboxRecord::Order(Order { id: order, kind: OrderKind::Cancel }).encode();
    put(&journal, session, record).await?;
    let outcome = if somebody_runs_it(&journal, session).await? {
        settled(&journal, session, head, order).await?
    } else {
        Settled::NotYet
    };
    match (&outcome, options.json) {
        (Settled::Ended(ended), true) => {
            json(&json!({"session": key, "turn": ended.turn, "outcome": ended.outcome}))?;
        }
        (Settled::NoTurn, true) => json(&json!({"session": key, "turn": null, "outcome": null}))?,
        (Settled::Ended(ended), false) => line(format!("turn {} of {key} is cancelled", ended.turn))?,
        (Settled::NoTurn, false) => line(format!("no turn of {key} was running"))?,
        (Settled::NotYet, _) => {
            eprintln!("longhaul: the order is in the inbox; no runtime has taken it yet, the next one does");
        }
    }
    journal.close().await;
    Ok(exit::DONE)
}

/// What became of an order.
enum Settled {
    Ended(TurnEnded),
    NoTurn,
    NotYet,
}

/// Waits until the order is taken and the turn that it met has ended.
async fn settled(
    journal: &SqliteJournal,
    session: SessionId,
    mut head: Seq,
    order: OrderId,
) -> anyhow::Result<Settled> {
    let stream = StreamName::session(session);
    let deadline = Instant::now() + PATIENCE;
    let mut taken = false;
    loop {
        for record in journal.read(&stream, head + 1, Page::default()).await? {
            head = record.seq;
            match SessionRecord::decode(&record) {
                Ok(SessionRecord::OrderTaken(found)) if found.order.id == order => taken = true,
                Ok(SessionRecord::TurnEnded(ended)) if taken => return Ok(Settled::Ended(ended)),
                _ => {}
            }
        }
        if taken {
            let state = longhaul_agent::load(journal, "", session).await?;
            // Nothing came since the records above, so no end of a turn did.
            if state.turn.is_none() && state.head == head {
                return Ok(Settled::NoTurn);
            }
        }
        if Instant::now() > deadline {
            return Ok(Settled::NotYet);
        }
        tokio::time::sleep(LOOK).await;
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
