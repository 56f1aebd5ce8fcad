//! `longhaul continue`: goes on with an answer where it was interrupted.

use crate::args::{Choice, Place, SessionOptions};
use crate::commands::resume::again;
use crate::turn_handle::Wish;

pub(crate) async fn run(place: &Place, choice: &Choice, options: SessionOptions) -> anyhow::Result<u8> {
    again(place, choice, options.session, options.json, Wish::Continue).await
}
