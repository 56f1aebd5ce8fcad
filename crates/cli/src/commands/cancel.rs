//! `longhaul cancel`: ends the running turn of a session.

use std::time::Duration;

use longhaul_agent::{CancelOutcome, Redactor};
use longhaul_protocol::Outcome;
use serde_json::json;

use crate::args::{CancelOptions, GlobalArgs};
use crate::exit;
use crate::output::{json, line, note, outcome_text, truncate};
use crate::session_lookup::{open_live_session, session_name};

/// How long `cancel` waits for the end of the turn. A command gets two seconds of it before it is killed.
const CANCEL_GRACE: Duration = Duration::from_secs(10);

pub(crate) async fn run(globals: &GlobalArgs, options: &CancelOptions) -> anyhow::Result<u8> {
    // An order to cancel holds no secret.
    let session =
        open_live_session(globals, &session_name(globals, None).await?, Redactor::default()).await?;
    let key = session.key();
    let served = session.is_running().await?;
    let shown = truncate(key, 80);
    // An order without a turn would stay in the inbox and count as unfinished work.
    let is_idle = !served && !session.is_unfinished().await?;
    let cancelled = match is_idle {
        true => CancelOutcome::NoTurn,
        false => session.cancel_within(if served { CANCEL_GRACE } else { Duration::ZERO }).await?,
    };
    session.journal().close().await;
    let (turn, outcome) = match &cancelled {
        CancelOutcome::Ended(ended) => (Some(ended.turn), Some(ended.outcome)),
        _ => (None, None),
    };
    if options.json {
        let taken = cancelled != CancelOutcome::Pending;
        json(&json!({"session": key, "turn": turn, "outcome": outcome, "taken": taken}))?;
    }
    match (cancelled, served) {
        (CancelOutcome::Pending, true) => {
            note(format!(
                "the turn of {shown} has not ended after {CANCEL_GRACE:?}; it will be cancelled as soon as possible"
            ));
            return Ok(exit::FAILED);
        }
        (CancelOutcome::Pending, false) => {
            note(
                "no process is running the session; its turn will be cancelled when `longhaul serve` next runs",
            );
        }
        _ if options.json => {}
        (CancelOutcome::NoTurn, _) => line(format!("{shown} has no running turn"))?,
        (CancelOutcome::Ended(ended), _) if ended.outcome == Outcome::Cancelled => {
            line(format!("cancelled turn {} of {shown}", ended.turn))?;
        }
        (CancelOutcome::Ended(ended), _) => {
            line(format!(
                "turn {} of {shown} had already ended: {}",
                ended.turn,
                outcome_text(ended.outcome)
            ))?;
        }
    }
    Ok(exit::DONE)
}
