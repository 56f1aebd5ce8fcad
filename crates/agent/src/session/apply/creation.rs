//! The first record of a session.

use std::sync::Arc;

use longhaul_protocol::{At, SessionCreated};

use crate::session::state::{SessionCreation, State};

/// Folds where the session works, and whose subagent it is.
pub(super) fn fold_creation(state: &mut State, at: At, created: SessionCreated) {
    let parent = created.parent.map(|parent| Arc::new(*parent));
    state.created = Some(SessionCreation { at, work_dir: created.work_dir, parent });
}
