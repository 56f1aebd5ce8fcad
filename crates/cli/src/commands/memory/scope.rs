//! Which memory is meant.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use longhaul_agent::Config;
use longhaul_journal::{Journal, Page, SessionPlace, session_place};
use longhaul_protocol::{ExtractRecord, SessionId, StreamName};

use crate::BadUsage;
use crate::args::MemoryScopeArgs;
use crate::output::shortened;
use crate::session_lookup::find_session;
use crate::tui::chat::key_of;

/// So many memories are named to somebody who has named none of them.
const MAX_NAMED_SCOPES: usize = 20;

impl MemoryScopeArgs {
    /// Whether nobody has named another than that of the folder.
    pub(super) fn is_this_folder(&self) -> bool {
        self.session.is_none() && self.scope.is_none()
    }

    /// The name of the memory.
    pub(super) async fn scope(&self, config: &Config, journal: &dyn Journal) -> anyhow::Result<String> {
        match (&self.session, &self.scope) {
            (Some(_), Some(_)) => {
                Err(BadUsage("-s and --scope both say whose memory is meant: use one".to_owned()).into())
            }
            (Some(key), None) => {
                let entry = find_session(journal, key).await?;
                scope_of_session(config, journal, &entry.key, Some(entry.id)).await
            }
            (None, None) => Ok(scope_of_folder(config)),
            (None, Some(name)) if *name == scope_of_folder(config) => Ok(name.clone()),
            (None, Some(name)) => named(journal, name).await,
        }
    }
}

/// The memory of the conversation in the terminal, in the folder that new sessions work in.
pub(super) fn scope_of_folder(config: &Config) -> String {
    config.memory_scope(&key_of(&config.work_dir), &canonical(&config.work_dir))
}

/// The memory that a session has: that of the key and the folder with which it began. One that has not begun works in the folder that
/// new sessions work in.
pub(crate) async fn scope_of_session(
    config: &Config,
    journal: &dyn Journal,
    key: &str,
    id: Option<SessionId>,
) -> anyhow::Result<String> {
    let began = match id {
        Some(id) => session_place(journal, id).await?,
        None => None,
    };
    Ok(match began {
        Some(SessionPlace { key, work_dir }) => {
            config.memory_scope(&key, Path::new(work_dir.as_deref().unwrap_or("/")))
        }
        None => config.memory_scope(key, &canonical(&config.work_dir)),
    })
}

fn canonical(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// A memory that somebody has named, if there is one: in pages, or in what was extracted for them.
async fn named(journal: &dyn Journal, name: &str) -> anyhow::Result<String> {
    let mut known = with_pages(journal).await?;
    if !known.contains(name) {
        known.extend(with_extracts(journal).await?);
    }
    if known.contains(name) {
        return Ok(name.to_owned());
    }
    let name = shortened(name, 100);
    Err(BadUsage(match known.len() {
        0 => format!("there is no memory {name:?}: nothing is remembered in this home yet"),
        _ => format!("there is no memory {name:?}; there is {}", in_words(&known)),
    })
    .into())
}

/// The memories that have pages, or had some.
pub(super) async fn with_pages(journal: &dyn Journal) -> anyhow::Result<BTreeSet<String>> {
    let streams = journal.streams().await?;
    let names = streams.iter().filter_map(|stream| stream.as_str().strip_prefix("memory/"));
    Ok(names.filter(|name| is_plain(name)).map(str::to_owned).collect())
}

async fn with_extracts(journal: &dyn Journal) -> anyhow::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for stream in journal.streams().await?.iter().filter(|stream| is_extract(stream)) {
        let mut next = 1;
        loop {
            let page = journal.read(stream, next, Page::default()).await?;
            let Some(last) = page.last() else { break };
            next = last.seq + 1;
            let scopes = page.iter().filter_map(|record| match ExtractRecord::decode(record) {
                Ok(ExtractRecord::Extracted(extracted)) => Some(extracted.scope),
                _ => None,
            });
            names.extend(scopes.filter(|name| is_plain(name)));
        }
    }
    Ok(names)
}

pub(super) fn is_extract(stream: &StreamName) -> bool {
    stream.as_str().starts_with("extract/")
}

/// Whether a name can be that of a memory, which is also that of a folder.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains('/')
}

/// Names for people: `a, b and 3 more`.
pub(super) fn in_words(names: &BTreeSet<String>) -> String {
    let shown: Vec<String> = names.iter().take(MAX_NAMED_SCOPES).map(|name| shortened(name, 100)).collect();
    let more = names.len().saturating_sub(MAX_NAMED_SCOPES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
