//! `longhaul compact` and `/compact`: compacts the context of a session now.

use std::sync::Arc;

use longhaul_agent::session::State;
use longhaul_agent::{Client, Request, redactor};
use longhaul_protocol::{CompactDone, CompactedBy, OrderKind};

use crate::args::{CompactOptions, GlobalArgs};
use crate::commands::resume::describe_unfinished;
use crate::event_printer::Form;
use crate::one_shot::{OneShot, Stay};
use crate::output::{format_number, note, sanitize, truncate};
use crate::session_lookup::{open_live_entry, session_name};
use crate::{config, exit, suggested_command};

pub(crate) async fn run(globals: &GlobalArgs, options: CompactOptions) -> anyhow::Result<u8> {
    let CompactOptions { focus, json } = options;
    let session = session_name(globals, None).await?;
    let focus = focus_of(&focus.join(" "));
    let (journal, entry) = open_live_entry(globals, &session).await?;
    let key = entry.key.clone();
    let (journal, redactor) = (Arc::new(journal), redactor(&config::load(globals)?)?);
    let session = Client::new(journal.clone(), redactor).session(&key).await?;
    // C12: a compaction neither starts nor resumes a turn. Where one is open and no process runs it, the order waits in the inbox.
    if session.other_holder().await?.is_none()
        && let Some(open) = describe_unfinished(&journal, &entry).await?
    {
        session.order(OrderKind::Compact { focus }).await?;
        session.journal().close().await;
        let (open, resume) = (truncate(&open, 200), suggested_command::resume(globals, &key));
        note(format!("{open}, and nobody runs it; the context is made smaller when it goes on: {resume}"));
        return Ok(exit::DONE);
    }
    session.journal().close().await;
    let form = Form::of_outcome(json);
    OneShot { globals, key, form, stay: Stay::ForTurn }.carry_out(Request::Compact(focus)).await
}

/// What the summary should dwell on, if the user said so.
pub(crate) fn focus_of(words: &str) -> Option<String> {
    Some(words.trim().to_owned()).filter(|focus| !focus.is_empty())
}

/// What a compaction did: `made smaller: 81,204 → 12,330 tokens, by a summary of records 12–340 (epoch 4)`.
pub(crate) fn made_smaller(done: &CompactDone) -> String {
    let CompactDone { epoch, by, before, after, from, through } = *done;
    let how = match by {
        CompactedBy::Model => "by a summary of",
        CompactedBy::Rule => "by a rule that dropped",
    };
    // A manual compaction runs on a short context, too, whose summary may be longer.
    let what = if after < before { "made smaller" } else { "compacted, but not smaller" };
    format!(
        "{what}: {} → {} tokens, {how} records {from}–{through} (epoch {epoch})",
        format_number(before),
        format_number(after)
    )
}

pub(crate) fn not_smaller(reason: &str) -> String {
    format!("could not be made smaller: {}; the session is as it was", sanitize(reason))
}

pub(crate) fn nothing_to_compact(state: &State) -> String {
    let why = match state.turn_count == 0 && state.compaction.count == 0 {
        true => "it has no turns yet",
        false => "nothing has happened since it last was",
    };
    format!("nothing to compact: {why}")
}

#[cfg(test)]
#[path = "compact_tests.rs"]
mod tests;
