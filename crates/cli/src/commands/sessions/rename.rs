//! `longhaul sessions rename`: another key for a session.

use longhaul_journal::{Error, Journal, SessionEntry, rename_session};

use super::print_session;
use crate::args::GlobalArgs;
use crate::bad_usage;
use crate::output::truncate;
use crate::session_lookup::open_session;

pub(crate) async fn run(globals: &GlobalArgs, name: &str, new: &str, as_json: bool) -> anyhow::Result<u8> {
    let (journal, entry) = open_session(globals, name).await?;
    let renamed = rename_to(&journal, &entry.key, new).await;
    journal.close().await;
    let text = format!("Renamed {} to {}", truncate(&entry.key, 200), truncate(new, 200));
    print_session(renamed?, as_json, text)
}

/// Gives a session another key, which must be free.
pub(crate) async fn rename_to(journal: &dyn Journal, key: &str, new: &str) -> anyhow::Result<SessionEntry> {
    rename_session(journal, key, new).await.map_err(|error| match error {
        Error::SessionExists { key } => {
            bad_usage(format!("a session {key:?} already exists; choose another key"))
        }
        error => error.into(),
    })
}
