//! `longhaul sessions portable`: lets any node run a session.

use longhaul_journal::{Journal, make_portable};
use longhaul_protocol::StreamName;

use super::print_session;
use crate::args::GlobalArgs;
use crate::output::truncate;
use crate::session_lookup::open_session;

pub(crate) async fn run(globals: &GlobalArgs, name: &str, as_json: bool) -> anyhow::Result<u8> {
    let (journal, entry) = open_session(globals, name).await?;
    let made = match journal.cluster() {
        Some(cluster) => make_portable(&journal, cluster, entry.id).await,
        // One machine has the journal alone.
        None => Ok(false),
    };
    // It may wait for a node that is away.
    let _ = journal.wake_holder(&StreamName::session(entry.id)).await;
    let is_shared = journal.cluster().is_some();
    journal.close().await;
    let key = truncate(&entry.key, 200);
    let text = match (made?, is_shared) {
        (true, _) => format!("Portable: {key}"),
        (false, true) => format!("Already portable: {key}"),
        (false, false) => format!("Nothing to do: this journal is on one machine, which runs {key}"),
    };
    print_session(entry, as_json, text)
}
