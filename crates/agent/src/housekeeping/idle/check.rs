//! One look at one session that seems idle: whether it is, and what its jobs come to.

use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Holder, SessionEntry};
use longhaul_protocol::{Seq, SessionId, StreamName};

use super::activity::{Moment, is_idle};
use super::{Job, THIS_WEEK};
use crate::memory::check_after_turn;
use crate::replay::load;
use crate::runtime::Inner;
use crate::{Error, Result};

/// The ends of a session's stream and of its inbox. While they are the same, nothing is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) head: Seq,
    pub(super) inbox_head: Seq,
}

impl Ends {
    pub(super) fn of(entry: &SessionEntry) -> Self {
        Self { head: entry.head.seq, inbox_head: entry.inbox_head }
    }
}

/// What a look came to.
#[derive(Debug)]
pub(super) enum Looked {
    /// With these ends there is nothing more to do.
    Settled(Ends),
    /// Somebody is at it, here or elsewhere. It is looked at again at the next check.
    NotNow,
    Failed(Error),
}

impl Looked {
    fn because_of(error: Error) -> Self {
        match error {
            Error::RunsElsewhere { .. }
            | Error::TakenOver { .. }
            | Error::Suspended
            | Error::Memory(longhaul_memory::Error::Held { .. }) => Self::NotNow,
            error => Self::Failed(error),
        }
    }
}

/// How a session stands to the idle worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Active,
    Idle,
    /// Not of this week, put away, or without a record: nothing of it needs to be known.
    Left,
}

/// How a session stands, by what a listing shows of it.
pub(super) fn standing(runtime: &Inner, entry: &SessionEntry, moment: Moment) -> Standing {
    let Some(last_at) = entry.last_at.filter(|_| !entry.trashed) else { return Standing::Left };
    let quiet = runtime.activity.quiet(entry.id, last_at, moment);
    if runtime.activity.is_in_turn(entry.id) && runtime.works_at(entry.id) {
        Standing::Active
    } else if quiet > THIS_WEEK {
        Standing::Left
    } else if is_idle(quiet, runtime.idle.interval()) {
        Standing::Idle
    } else {
        Standing::Active
    }
}

/// Looks at a session and has the jobs done for it. What was listed may be long ago by now.
pub(super) async fn look(runtime: Arc<Inner>, jobs: Arc<[Job]>, id: SessionId) -> Looked {
    look_at(&runtime, &jobs, id).await.unwrap_or_else(Looked::because_of)
}

/// A turn has ended in this session: whether enough is new in it.
pub(super) async fn look_after_turn(runtime: Arc<Inner>, id: SessionId, key: String) -> Looked {
    let shared = runtime.shared(&key, Some(id));
    match check_after_turn(&runtime, &shared, id).await {
        // There may be more to do once it is idle.
        Ok(()) => Looked::NotNow,
        Err(error) => Looked::because_of(error),
    }
}

async fn look_at(runtime: &Arc<Inner>, jobs: &[Job], id: SessionId) -> Result<Looked> {
    let Some(entry) = runtime.journal.session_with_id(id).await? else { return Ok(Looked::NotNow) };
    let moment = Moment::now();
    if standing(runtime, &entry, moment) != Standing::Idle {
        return Ok(Looked::NotNow);
    }
    let quiet = entry.last_at.map_or(Duration::MAX, |at| runtime.activity.quiet(id, at, moment));
    let holder = runtime.journal.holder(&StreamName::session(id)).await?;
    if holder.as_ref().is_some_and(Holder::is_another) {
        return Ok(Looked::NotNow);
    }
    let state = load(&*runtime.journal, &entry.key, id).await?;
    // By its records, so that nothing of this changes before the ends do.
    if !crate::Work::of(&state, entry.inbox_head, runtime.wake()).is_due() {
        let shared = runtime.shared(&entry.key, Some(id));
        let mut failure = None;
        for job in jobs.iter().filter(|job| quiet <= job.within) {
            // One that fails is no reason to leave out the others.
            if let Err(error) = (job.act)(runtime, &shared, &state).await {
                failure.get_or_insert(error);
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
    }
    Ok(Looked::Settled(Ends::of(&entry)))
}
