//! `longhaul erase KEY SEQ`: removes the body of one record for good.

use longhaul_journal::{Journal, erase_record};
use longhaul_protocol::{PrintablePath, Seq, StreamName};
use serde::Serialize;

use crate::args::{EraseOptions, Family, GlobalArgs};
use crate::exit;
use crate::output::{json, line};
use crate::session_lookup::{find_session_exactly, open_journal_with};

#[derive(Serialize)]
struct ErasedForm {
    stream: StreamName,
    seq: Seq,
}

pub(crate) async fn run(globals: &GlobalArgs, options: EraseOptions) -> anyhow::Result<u8> {
    let EraseOptions { key, seq, reason, stream, json: as_json } = options;
    let journal = open_journal_with(globals, &key).await?;
    let session = find_session_exactly(&journal, &key).await?.id;
    let erased = match stream {
        Family::Session => erase_record(&journal, session, seq, &reason).await,
        other => {
            let stream = other.stream(session);
            let places = vec![(stream, seq)];
            journal.erase(&places, &reason).await.map(|()| places)
        }
    };
    let erased = erased?;
    let is_extract = |stream: &StreamName| stream.as_str().starts_with("extract/");
    let extracts: Vec<_> =
        erased.iter().filter(|(stream, _)| is_extract(stream)).map(|(_, seq)| (session, *seq)).collect();
    let pages = longhaul_memory::pages_citing(&journal, &extracts).await?;
    journal.close().await;
    let erased: Vec<ErasedForm> =
        erased.into_iter().map(|(stream, seq)| ErasedForm { stream, seq }).collect();
    if as_json {
        json(&erased)?;
        return Ok(exit::DONE);
    }
    for ErasedForm { stream, seq } in erased {
        line(format!("Erased entry {seq} of {stream}, with its search index and attachments."))?;
    }
    for (scope, page) in pages {
        line(format!(
            "The memory page {page} of {scope} was made from it; its text and older versions may still contain it. \
             To check: longhaul memory show {page} --scope {scope}"
        ))?;
    }
    line("Earlier backups and exports still contain it.")?;
    if let Some(tasks) =
        globals.existing_home()?.map(|home| home.folder().join("tasks")).filter(|tasks| tasks.exists())
    {
        line(format!(
            "If it was a command or its output, the task's folder in {} contains it, too.",
            tasks.printable()
        ))?;
    }
    for kept in globals.existing_home()?.map(|home| home.replaced_journals()).unwrap_or_default() {
        line(format!(
            "{}, which was replaced by a restore, may contain it, too; delete it if you don't need it.",
            kept.printable()
        ))?;
    }
    Ok(exit::DONE)
}
