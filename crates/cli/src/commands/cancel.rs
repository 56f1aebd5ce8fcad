//! `longhaul cancel`: ends the running turn of a session.

use std::time::Duration;

use longhaul_agent::{Cancelled, cancel_turn, load};
use longhaul_journal::{Error, Journal};
use longhaul_protocol::Outcome;
use serde_json::json;

use crate::args::{CancelOptions, Place};
use crate::exit;
use crate::output::{in_words, json, line, note, shortened};
use crate::session_lookup::{find_session, refuse_trashed, somebody_runs_it};

/// How long `cancel` waits for the end of the turn: a command is given two seconds before it is forced.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn run(place: &Place, options: &CancelOptions) -> anyhow::Result<u8> {
    let key = &options.session;
    let Some(journal) = place.journal().await? else {
        return Err(Error::NoSuchSession { key: key.clone() }.into());
    };
    let entry = find_session(&journal, key).await?;
    let (session, key) = (entry.id, &entry.key);
    refuse_trashed(&journal, key).await?;
    let served = somebody_runs_it(&journal, session).await?;
    let shown = shortened(key, 80);
    // An order that no turn needs would wait for ever, and look like something to do.
    let is_idle = !served && {
        let state = load(&journal, key, session).await?;
        state.turn.is_none() && state.inbox_through >= entry.inbox_head
    };
    let cancelled = match is_idle {
        true => Cancelled::NoTurn,
        false => cancel_turn(&journal, session, if served { PATIENCE } else { Duration::ZERO }).await?,
    };
    journal.close().await;
    let (turn, outcome) = match &cancelled {
        Cancelled::Ended(ended) => (Some(ended.turn), Some(ended.outcome)),
        Cancelled::NoTurn | Cancelled::NotYet => (None, None),
    };
    if options.json {
        let taken = cancelled != Cancelled::NotYet;
        json(&json!({"session": key, "turn": turn, "outcome": outcome, "taken": taken}))?;
    }
    match (cancelled, served) {
        (Cancelled::NotYet, true) => {
            note(format!(
                "the order is in the inbox of {shown}, but the turn has not ended after {PATIENCE:?}"
            ));
            return Ok(exit::FAILED);
        }
        (Cancelled::NotYet, false) => {
            note(
                "no runtime is running; the turn and its command are ended when `longhaul serve --no-http` next runs",
            );
        }
        _ if options.json => {}
        (Cancelled::NoTurn, _) => line(format!("no turn of {shown} was running"))?,
        (Cancelled::Ended(ended), _) if ended.outcome == Outcome::Cancelled => {
            line(format!("turn {} of {shown} is cancelled", ended.turn))?;
        }
        (Cancelled::Ended(ended), _) => {
            line(format!("turn {} of {shown} had ended by itself: {}", ended.turn, in_words(ended.outcome)))?;
        }
    }
    Ok(exit::DONE)
}
