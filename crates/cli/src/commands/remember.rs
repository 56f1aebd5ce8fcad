//! `longhaul remember` and `/remember`: notes a text word for word, or extracts what is new in a session.

use std::sync::Arc;

use longhaul_agent::memory_pages::memory_scope_of;
use longhaul_agent::{Config, RetryMode, Runtime, redactor};
use longhaul_journal::{Journal, SessionEntry, resolve};
use longhaul_memory::{Extraction, PageEdited, add_note as note_down};
use longhaul_protocol::Speaker;
use serde_json::json;

use crate::args::{GlobalArgs, RememberOptions};
use crate::commands::memory::{MemoryHandle, with_canonical_home};
use crate::input_text::read_text;
use crate::output::{format_count, json, line, note, truncate};
use crate::session_lookup::{open_live_entry, session_name};
use crate::signals::ExitSignals;
use crate::{bad_usage, config, exit};

/// The answer where extraction is off in the config.
pub(crate) const EXTRACTION_OFF: &str = "extraction is off (memory.extract_at_tokens is 0)";

pub(crate) async fn run(globals: &GlobalArgs, options: RememberOptions) -> anyhow::Result<u8> {
    let RememberOptions { text, json: as_json } = options;
    let session = session_name(globals, None).await?;
    let (journal, SessionEntry { key, .. }) = open_live_entry(globals, &session).await?;
    let config = config::load(globals)?;
    if !text.is_empty() {
        let text = read_text(text.join(" "))?;
        return note_text(journal, with_canonical_home(globals, config)?, &key, &text, as_json).await;
    }
    journal.close().await;
    if config.settings.memory.extract_at_tokens == 0 {
        match as_json {
            true => json(&json!({"session": key, "off": true}))?,
            false => line(EXTRACTION_OFF)?,
        }
        return Ok(exit::DONE);
    }
    extract(globals, &key, as_json).await
}

/// Notes a text in memory. This needs no model.
async fn note_text(
    journal: Arc<dyn Journal>,
    config: Config,
    key: &str,
    text: &str,
    as_json: bool,
) -> anyhow::Result<u8> {
    if text.trim().is_empty() {
        return Err(bad_usage("nothing to remember: the text is empty"));
    }
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let entry = resolve(&*journal, key).await?;
    let scope = memory_scope_of(&config, &*journal, key, Some(entry.id)).await?;
    let text = redactor(&config)?.redact(text);
    let changed = note_down(&*journal, &scope, &text, Speaker::User).await?;
    let memory = MemoryHandle::new(journal, config, &scope).await?;
    memory.sync_files().await;
    memory.journal.close().await;
    match as_json {
        true => json(&json!({"session": key, "scope": scope, "seq": changed.seq, "pages": changed.pages}))?,
        false => line(remembered(&changed, &memory.flag()))?,
    }
    Ok(exit::DONE)
}

async fn extract(globals: &GlobalArgs, key: &str, as_json: bool) -> anyhow::Result<u8> {
    let mut signals = ExitSignals::new()?;
    let config = config::with_model(globals, RetryMode::OneShot).await?;
    let runtime = tokio::select! {
        opened = Runtime::open(config) => opened?,
        number = signals.next() => return Ok(exit::SIGNAL + number),
    };
    let session = runtime.session(key).await?;
    let extracted = tokio::select! {
        biased;
        number = signals.next() => Err(number),
        extracted = session.extract() => Ok(extracted),
    };
    tokio::select! {
        ended = runtime.shutdown() => ended?,
        // A second signal ends the process at once. What is committed stays.
        number = signals.next_deliberate() => std::process::exit(i32::from(exit::SIGNAL + number)),
    }
    let extracted = match extracted {
        Ok(extracted) => extracted?,
        Err(number) => {
            note("stopped; what was found so far is saved, and the rest is processed later");
            return Ok(exit::SIGNAL + number);
        }
    };
    match (as_json, &extracted) {
        (true, Some(Extraction { through, parts, items, refused })) => json(
            &json!({"session": key, "through": through, "parts": parts, "items": items, "refused": refused}),
        )?,
        (true, None) => json(&json!({"session": key, "through": 0, "parts": 0, "items": 0, "refused": []}))?,
        (false, extracted) => line(describe_extraction(extracted.as_ref()))?,
    }
    if !as_json {
        extracted.iter().flat_map(|extracted| &extracted.refused).for_each(|why| {
            note(format!("rejected: {}", truncate(why, 300)));
        });
    }
    Ok(exit::DONE)
}

pub(crate) fn remembered(changed: &PageEdited, flag: &str) -> String {
    let (pages, seq) = (truncate(&changed.pages.join(", "), 200), changed.seq);
    format!("remembered in {pages} (change {seq}; to undo: longhaul memory undo {seq}{flag})")
}

/// The result of an extraction, in words.
pub(crate) fn describe_extraction(extracted: Option<&Extraction>) -> String {
    match extracted {
        None => "nothing to remember: the session is empty".to_owned(),
        Some(Extraction { parts: 0, through, .. }) => {
            format!("nothing new to remember (read up to entry {through})")
        }
        Some(Extraction { items: 0, through, .. }) => {
            format!("nothing worth remembering (read up to entry {through})")
        }
        Some(Extraction { items, through, .. }) => {
            let items = format_count(*items as u64, "item");
            format!("found {items} (read up to entry {through}); see `longhaul memory`")
        }
    }
}

#[cfg(test)]
#[path = "remember_tests.rs"]
mod tests;
