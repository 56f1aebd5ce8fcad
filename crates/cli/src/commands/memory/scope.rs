//! Which memory the user means: that of a session, a named one, or that of the work folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use longhaul_agent::Config;
use longhaul_journal::{Journal, SessionPlace, records, session_place};
use longhaul_protocol::{ExtractRecord, SessionId, StreamName};

use crate::args::MemoryScopeArgs;
use crate::bad_usage;
use crate::folder_session::key_of;
use crate::output::truncate;
use crate::session_lookup::find_session;

/// Scopes that an error names.
const MAX_NAMED_SCOPES: usize = 20;

impl MemoryScopeArgs {
    /// Whether neither `-s` nor `--scope` was given.
    pub(super) fn is_default(&self, session: Option<&str>) -> bool {
        session.is_none() && self.scope.is_none()
    }

    pub(super) async fn resolve(
        &self,
        session: Option<&str>,
        config: &Config,
        journal: &dyn Journal,
    ) -> anyhow::Result<String> {
        match (session, &self.scope) {
            (Some(_), Some(_)) => Err(bad_usage("-s and --scope can't be used together")),
            (Some(key), None) => {
                let entry = find_session(journal, key).await?;
                scope_of_session(config, journal, &entry.key, Some(entry.id)).await
            }
            (None, None) => Ok(scope_of_folder(config)),
            (None, Some(name)) if *name == scope_of_folder(config) => Ok(name.clone()),
            (None, Some(name)) => find_scope(journal, name).await,
        }
    }
}

/// The scope of the folder session in the configured work folder.
pub(super) fn scope_of_folder(config: &Config) -> String {
    config.memory_scope(&key_of(&config.work_dir), &canonical(&config.work_dir))
}

/// The scope of a session, by the key and the work folder with which it started. A session without records gets the configured work folder.
pub(crate) async fn scope_of_session(
    config: &Config,
    journal: &dyn Journal,
    key: &str,
    id: Option<SessionId>,
) -> anyhow::Result<String> {
    let started = match id {
        Some(id) => session_place(journal, id).await?,
        None => None,
    };
    Ok(match started {
        Some(SessionPlace { key, work_dir }) => {
            config.memory_scope(&key, Path::new(work_dir.as_deref().unwrap_or("/")))
        }
        None => config.memory_scope(key, &canonical(&config.work_dir)),
    })
}

fn canonical(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// The named scope, if it has pages or extracts.
async fn find_scope(journal: &dyn Journal, name: &str) -> anyhow::Result<String> {
    let mut known = scopes_with_pages(journal).await?;
    if !known.contains(name) {
        known.extend(scopes_with_extracts(journal).await?);
    }
    if known.contains(name) {
        return Ok(name.to_owned());
    }
    let name = truncate(name, 100);
    Err(bad_usage(match known.len() {
        0 => format!("no memory named {name:?}: there is none in this home yet"),
        _ => format!("no memory named {name:?}; available: {}", in_words(&known)),
    }))
}

/// The scopes that have pages, or had some.
pub(super) async fn scopes_with_pages(journal: &dyn Journal) -> anyhow::Result<BTreeSet<String>> {
    let streams = journal.streams().await?;
    let names = streams.iter().filter_map(|stream| stream.as_str().strip_prefix("memory/"));
    Ok(names.filter(|name| is_plain(name)).map(str::to_owned).collect())
}

async fn scopes_with_extracts(journal: &dyn Journal) -> anyhow::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for stream in journal.streams().await?.iter().filter(|stream| is_extract(stream)) {
        let mut cursor = records(journal, stream, 1);
        while let Some(record) = cursor.next().await? {
            if let Ok(ExtractRecord::Extracted(extracted)) = ExtractRecord::decode(&record)
                && is_plain(&extracted.scope)
            {
                names.insert(extracted.scope);
            }
        }
    }
    Ok(names)
}

pub(super) fn is_extract(stream: &StreamName) -> bool {
    stream.as_str().starts_with("extract/")
}

/// Whether a name can be a scope, which is also the name of a folder.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains('/')
}

/// `a, b and 3 more`.
pub(super) fn in_words(names: &BTreeSet<String>) -> String {
    let shown: Vec<String> = names.iter().take(MAX_NAMED_SCOPES).map(|name| truncate(name, 100)).collect();
    let more = names.len().saturating_sub(MAX_NAMED_SCOPES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
