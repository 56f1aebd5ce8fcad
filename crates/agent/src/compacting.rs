//! Making the context of a session smaller.

use std::sync::Arc;

use crate::Result;
use crate::runtime::Inner;
use crate::shared::Shared;
use crate::state::State;

/// The job of the idle worker: makes the context of an idle session smaller, if it is due, so that the next reply need not wait.
/// Returns when that is done, or was not due: whether something was done.
pub(crate) async fn compact_if_idle(
    _runtime: &Arc<Inner>,
    _shared: &Arc<Shared>,
    _state: &State,
) -> Result<bool> {
    Ok(false)
}
