//! Places where a fold may begin, remembered from earlier folds, so that a client that follows a long turn costs what is new.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use longhaul_protocol::{Hash, Record, Seq, SessionId};
use longhaul_transcript::FoldStart;

/// Sessions whose places are remembered.
const MAX_SESSIONS: usize = 1_024;
/// Places of one session: clients may stand at different ones.
const MAX_PLACES: usize = 8;

/// The places of all sessions. They hold numbers and the name of a model, and no text of a session.
#[derive(Debug, Default)]
pub(crate) struct FoldStarts(Mutex<HashMap<SessionId, Vec<KnownStart>>>);

/// The beginning of a step, and what a fold needs to know there.
#[derive(Debug, Clone)]
pub(crate) struct KnownStart {
    pub(crate) seq: Seq,
    /// The record of the beginning. Its hash covers everything before it, so a session that was replaced has another one.
    pub(crate) hash: Hash,
    pub(crate) start: FoldStart,
}

impl KnownStart {
    /// Whether this is the record of the beginning.
    pub(crate) fn is_at(&self, record: &Record) -> bool {
        (record.seq, record.hash) == (self.seq, self.hash)
    }
}

impl FoldStarts {
    /// The last known place up to a record.
    pub(crate) fn last_before(&self, session: SessionId, through: Seq) -> Option<KnownStart> {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = places.get(&session)?.iter().filter(|known| known.seq <= through);
        known.max_by_key(|known| known.seq).cloned()
    }

    pub(crate) fn remember(&self, session: SessionId, known: KnownStart) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(&session) {
            sessions.clear();
        }
        let places = sessions.entry(session).or_default();
        places.retain(|place| place.seq != known.seq);
        if places.len() >= MAX_PLACES {
            places.remove(0);
        }
        places.push(known);
    }
}
