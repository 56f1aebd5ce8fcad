//! `longhaul sessions pin`: keeps a session whatever retention says.

use longhaul_journal::{Journal, pin_session, unpin_session};

use super::print_session;
use crate::args::GlobalArgs;
use crate::output::truncate;
use crate::session_lookup::open_session;

pub(crate) async fn run(globals: &GlobalArgs, name: &str, off: bool, as_json: bool) -> anyhow::Result<u8> {
    let (journal, entry) = open_session(globals, name).await?;
    let pinned = match off {
        true => unpin_session(&journal, &entry.key).await,
        false => pin_session(&journal, &entry.key).await,
    };
    journal.close().await;
    let what = if off { "Unpinned" } else { "Pinned" };
    print_session(pinned?, as_json, format!("{what}: {}", truncate(&entry.key, 200)))
}
