//! `longhaul continue`: goes on with an answer where it was interrupted.

use longhaul_agent::Request;

use crate::args::{Choice, Place, SessionOptions};
use crate::commands::resume::again;

pub(crate) async fn run(place: &Place, choice: &Choice, options: SessionOptions) -> anyhow::Result<u8> {
    again(place, choice, options.session, options.json, Request::Continue).await
}
