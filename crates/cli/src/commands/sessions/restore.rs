//! `longhaul sessions restore`: brings a session back from the trash, with its subagents.

use longhaul_agent::restore_tree;
use longhaul_journal::Journal;

use super::print_session;
use crate::args::GlobalArgs;
use crate::output::truncate;
use crate::session_lookup::open_session;

pub(crate) async fn run(globals: &GlobalArgs, name: &str, as_json: bool) -> anyhow::Result<u8> {
    let (journal, entry) = open_session(globals, name).await?;
    let restored = restore_tree(&journal, &entry.key).await;
    journal.close().await;
    let key = truncate(&entry.key, 200);
    let text = match entry.trashed {
        true => format!("Restored {key}"),
        false => format!("{key} is not in the trash"),
    };
    print_session(restored?, as_json, text)
}
