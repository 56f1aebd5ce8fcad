//! `longhaul retry`: runs the last turn again if it failed, or ends the wait before the next attempt.

use longhaul_agent::Request;

use crate::args::{Choice, Place, SessionOptions};
use crate::commands::resume::again;

pub(crate) async fn run(place: &Place, choice: &Choice, options: SessionOptions) -> anyhow::Result<u8> {
    again(place, choice, options.session, options.json, Request::Retry).await
}
