//! `longhaul retry`: runs the last turn again if it failed, or ends the wait before the next attempt.

use crate::args::{Choice, Place, SessionOptions};
use crate::commands::resume::again;
use crate::turn_handle::Wish;

pub(crate) async fn run(place: &Place, choice: &Choice, options: SessionOptions) -> anyhow::Result<u8> {
    again(place, choice, options.session, options.json, Wish::Retry).await
}
