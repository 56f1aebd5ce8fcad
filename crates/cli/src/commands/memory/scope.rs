//! Which memory the user means: that of a session, a named one, or that of the work folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use longhaul_agent::Config;
use longhaul_agent::memory_pages::{memory_scope_of, memory_scopes};
use longhaul_journal::Journal;

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
                Ok(memory_scope_of(config, journal, &entry.key, Some(entry.id)).await?)
            }
            (None, None) => Ok(scope_of_folder(config)),
            (None, Some(name)) if *name == scope_of_folder(config) => Ok(name.clone()),
            (None, Some(name)) => find_scope(journal, name).await,
        }
    }
}

/// The scope of the folder session in the configured work folder.
pub(super) fn scope_of_folder(config: &Config) -> String {
    config.memory_scope(&key_of(&config.work_dir), Some(&canonical(&config.work_dir)))
}

fn canonical(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// The named scope, if it has pages or extracts.
async fn find_scope(journal: &dyn Journal, name: &str) -> anyhow::Result<String> {
    let known = memory_scopes(journal).await?;
    if known.contains(name) {
        return Ok(name.to_owned());
    }
    let name = truncate(name, 100);
    Err(bad_usage(match known.len() {
        0 => format!("no memory named {name:?}: there is none in this home yet"),
        _ => format!("no memory named {name:?}; available: {}", in_words(&known)),
    }))
}

/// `a, b and 3 more`.
pub(super) fn in_words(names: &BTreeSet<String>) -> String {
    let shown: Vec<String> = names.iter().take(MAX_NAMED_SCOPES).map(|name| truncate(name, 100)).collect();
    let more = names.len().saturating_sub(MAX_NAMED_SCOPES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
