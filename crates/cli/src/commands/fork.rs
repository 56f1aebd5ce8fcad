//! `longhaul fork` and `longhaul sessions fork`: a new session that starts with the history of another.

use std::collections::HashSet;

use longhaul_agent::fork::{Forked, fork_session};
use longhaul_journal::Journal;

use crate::args::{ForkOptions, ForkPoint, GlobalArgs};
use crate::folder_session::free_key;
use crate::output::{format_count, print, sanitize, truncate};
use crate::session_lookup::{open_session, session_name};
use crate::{exit, suggested_command};

pub(crate) async fn run(globals: &GlobalArgs, options: ForkOptions) -> anyhow::Result<u8> {
    fork_named(globals, &session_name(globals, None).await?, options.at).await
}

pub(crate) async fn fork_named(globals: &GlobalArgs, name: &str, point: ForkPoint) -> anyhow::Result<u8> {
    let ForkPoint { seq, new, json: as_json } = point;
    let (journal, entry) = open_session(globals, name).await?;
    let forked = fork_as(&journal, &entry.key, seq, new.as_deref()).await;
    journal.close().await;
    let forked = forked?;
    let open_chat = suggested_command::open_chat(globals, &forked.key);
    let lines = || {
        let mut lines = forked_lines(&entry.key, &forked);
        lines.push(format!("To open it: {}", sanitize(&open_chat)));
        lines
    };
    print(as_json, || &forked, lines)?;
    Ok(exit::DONE)
}

/// Forks a session under the key `new`, or under a free one.
pub(crate) async fn fork_as(
    journal: &dyn Journal,
    key: &str,
    at: Option<u64>,
    new: Option<&str>,
) -> anyhow::Result<Forked> {
    let new = match new {
        Some(new) => new.to_owned(),
        None => free_key(journal, format!("{key}-fork"), &HashSet::new()).await?,
    };
    Ok(fork_session(journal, key, at, &new).await?)
}

/// What the user is told about a fork.
pub(crate) fn forked_lines(parent: &str, forked: &Forked) -> Vec<String> {
    let (parent, key) = (truncate(parent, 200), truncate(&forked.key, 200));
    let records = format_count(forked.records, "entry");
    let mut lines =
        vec![format!("Forked {parent} at entry {} as {key} ({}): {records}", forked.origin.seq, forked.id)];
    for text in &forked.unsent {
        lines.push(format!("Not copied, because the model had not seen it: {}", truncate(text, 200)));
    }
    lines
}
