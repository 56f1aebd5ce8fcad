//! `longhaul compact` and `/compact`: compacts the context of a session now.

use std::sync::Arc;

use longhaul_agent::session::State;
use longhaul_agent::{Client, Request, is_too_short_to_compact, redactor};
use longhaul_protocol::{CompactDone, CompactedBy, OrderKind};

use crate::args::{CompactOptions, GlobalArgs};
use crate::commands::resume::describe_unfinished;
use crate::event_printer::Form;
use crate::one_shot::{OneShot, Stay};
use crate::output::{format_number, line, note, sanitize, truncate};
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
        note(format!(
            "no process is running the session ({open}); its context will be compacted when you resume it: {resume}"
        ));
        return Ok(exit::DONE);
    }
    let state = session.state().await?;
    session.journal().close().await;
    if let Some(why) = no_use_to_compact(&state) {
        if json {
            note(why);
        } else {
            line(why)?;
        }
        return Ok(exit::DONE);
    }
    let form = Form::of_outcome(json);
    OneShot { globals, key, is_new: false, is_typed: false, form, stay: Stay::ForTurn }
        .carry_out(Request::Compact(focus))
        .await
}

/// What the summary should dwell on, if the user said so.
pub(crate) fn focus_of(words: &str) -> Option<String> {
    Some(words.trim().to_owned()).filter(|focus| !focus.is_empty())
}

/// What a compaction did: `compacted: 81,204 → 12,330 tokens (summarized entries 12–340)`.
pub(crate) fn made_smaller(done: &CompactDone) -> String {
    let CompactDone { by, before, after, from, through, .. } = *done;
    let how = match by {
        CompactedBy::Model => "summarized",
        CompactedBy::Rule => "dropped",
    };
    // A manual compaction runs on a short context, too, whose summary may be longer.
    let what = if after < before { "compacted" } else { "compacted, but no smaller" };
    format!(
        "{what}: {} → {} tokens ({how} entries {from}–{through})",
        format_number(before),
        format_number(after)
    )
}

pub(crate) fn not_smaller(reason: &str) -> String {
    format!("could not compact the context: {}; the session is unchanged", sanitize(reason))
}

/// Why a compaction would be of no use, where that is known before a model writes the summary.
pub(crate) fn no_use_to_compact(state: &State) -> Option<String> {
    is_too_short_to_compact(state)
        .then(|| "nothing to compact: the context is so short that a summary would not be shorter".to_owned())
}

pub(crate) fn nothing_to_compact(state: &State) -> String {
    let why = match state.turn_count == 0 && state.compaction.count == 0 {
        true => "the session has no turns yet",
        false => "nothing is new since the last compaction",
    };
    format!("nothing to compact: {why}")
}

#[cfg(test)]
#[path = "compact_tests.rs"]
mod tests;
