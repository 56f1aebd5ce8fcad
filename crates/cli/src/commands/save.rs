//! S2: `longhaul save` and `/save`. Sessions save themselves; this looks whether they have.

use longhaul_journal::{Error, Journal, Page, SessionEntry, Size};
use longhaul_protocol::{SessionId, StreamName};
use serde::Serialize;

use crate::args::{GlobalArgs, SessionOptions};
use crate::exit;
use crate::output::{count, json, line, safe, shortened};
use crate::session_lookup::open_session;

/// Whether a session is safe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SaveReport {
    pub(crate) key: String,
    pub(crate) id: SessionId,
    /// All of its records, with those of its inbox and its extracts.
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) safe: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// When its last record came.
    pub(crate) last_at: Option<String>,
}

pub(crate) async fn run(globals: &GlobalArgs, options: SessionOptions) -> anyhow::Result<u8> {
    let (journal, entry) = open_session(globals, &options.session).await?;
    let saved = save(&journal, &entry).await?;
    journal.close().await;
    match options.json {
        true => json(&saved)?,
        false => saved.lines().into_iter().try_for_each(line)?,
    }
    Ok(if saved.safe { exit::DONE } else { exit::FAILED })
}

/// Has everything written through to the disk, reads back what loading the session needs, and says how it stands.
pub(crate) async fn save(journal: &dyn Journal, entry: &SessionEntry) -> anyhow::Result<SaveReport> {
    let size = size(journal, entry.id).await?;
    let checked = match journal.sync().await {
        Ok(()) => read_back(journal, entry).await,
        Err(error) => Err(error),
    };
    let reason = checked.err().map(|error| error.to_string());
    Ok(SaveReport {
        key: entry.key.clone(),
        id: entry.id,
        records: size.records,
        bytes: size.bytes,
        safe: reason.is_none(),
        reason,
        last_at: entry.last_at.map(|at| at.to_string()),
    })
}

/// What a session holds, in all of its streams.
pub(crate) async fn size(journal: &dyn Journal, id: SessionId) -> Result<Size, Error> {
    let mut all = Size::default();
    for stream in [StreamName::session(id), StreamName::inbox(id), StreamName::extract(id)] {
        let size = journal.size(&stream).await?;
        all = Size { records: all.records + size.records, bytes: all.bytes + size.bytes };
    }
    Ok(all)
}

/// Reads the records of the newest epoch: each is checked against its hash, and the last must be the head.
async fn read_back(journal: &dyn Journal, entry: &SessionEntry) -> Result<(), Error> {
    let stream = StreamName::session(entry.id);
    let mut next = entry.epoch_from.unwrap_or(1);
    let mut last = None;
    while next <= entry.head.seq {
        let page = journal.read(&stream, next, Page::default()).await?;
        let Some(record) = page.iter().rfind(|record| record.seq <= entry.head.seq) else { break };
        next = record.seq + 1;
        last = Some(record.hash);
    }
    if entry.head.seq > 0 && last != Some(entry.head.hash) {
        let (seq, reason) = (entry.head.seq, "it is not the record that was committed".to_owned());
        return Err(Error::Damaged { stream, seq, reason });
    }
    Ok(())
}

impl SaveReport {
    /// For people.
    pub(crate) fn lines(&self) -> Vec<String> {
        let (key, records, bytes) =
            (shortened(&self.key, 200), count(self.records, "record"), count(self.bytes, "byte"));
        let verdict = match &self.reason {
            None => {
                "safe: all of it is on disk, and its newest records read back as they were written".to_owned()
            }
            Some(reason) => format!("not safe: {}", safe(reason)),
        };
        vec![format!("{key} ({}): {records}, {bytes}", self.id), verdict]
    }
}
