//! S2: `longhaul save` and `/save`. Sessions save themselves; this command checks that they have.

use longhaul_journal::{Error, Journal, SessionEntry, StreamSize, records};
use longhaul_protocol::{SessionId, StreamName};
use serde::Serialize;

use crate::args::{GlobalArgs, SessionOptions};
use crate::exit;
use crate::output::{format_count, print, sanitize, truncate};
use crate::session_lookup::{open_session, session_name};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SaveReport {
    pub(crate) key: String,
    pub(crate) id: SessionId,
    /// Records in the session, its inbox and its extracts.
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) safe: bool,
    /// Why it is not safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The time of its last record.
    pub(crate) last_at: Option<String>,
}

pub(crate) async fn run(globals: &GlobalArgs, options: SessionOptions) -> anyhow::Result<u8> {
    let (journal, entry) = open_session(globals, &session_name(globals, None).await?).await?;
    let saved = check_saved(&journal, &entry).await?;
    journal.close().await;
    print(options.json, || &saved, || saved.lines())?;
    Ok(if saved.safe { exit::DONE } else { exit::FAILED })
}

/// Syncs the journal to disk and reads back the records that loading the session needs.
pub(crate) async fn check_saved(journal: &dyn Journal, entry: &SessionEntry) -> anyhow::Result<SaveReport> {
    let size = session_size(journal, entry.id).await?;
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

/// The size of a session in all of its streams.
pub(crate) async fn session_size(journal: &dyn Journal, id: SessionId) -> Result<StreamSize, Error> {
    let mut all = StreamSize::default();
    for stream in [StreamName::session(id), StreamName::inbox(id), StreamName::extract(id)] {
        let size = journal.size(&stream).await?;
        all = StreamSize { records: all.records + size.records, bytes: all.bytes + size.bytes };
    }
    Ok(all)
}

/// Reads the records of the newest epoch. The journal checks each against its hash; the last one must be the head.
async fn read_back(journal: &dyn Journal, entry: &SessionEntry) -> Result<(), Error> {
    let stream = StreamName::session(entry.id);
    let mut cursor = records(journal, &stream, entry.epoch_from.unwrap_or(1)).through(entry.head.seq);
    let mut last = None;
    while let Some(record) = cursor.next().await? {
        last = Some(record.hash);
    }
    if entry.head.seq > 0 && last != Some(entry.head.hash) {
        let (seq, reason) = (entry.head.seq, "it differs from what was written".to_owned());
        return Err(Error::Damaged { stream, seq, reason });
    }
    Ok(())
}

impl SaveReport {
    pub(crate) fn lines(&self) -> Vec<String> {
        let (key, records, bytes) =
            (truncate(&self.key, 200), format_count(self.records, "entry"), format_count(self.bytes, "byte"));
        let verdict = match &self.reason {
            None => "safe: everything is on disk and reads back correctly".to_owned(),
            Some(reason) => format!("not safe: {}", sanitize(reason)),
        };
        vec![format!("{key} ({}): {records}, {bytes}", self.id), verdict]
    }
}
