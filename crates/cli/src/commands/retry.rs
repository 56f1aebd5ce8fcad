//! `longhaul retry`: runs the last turn again if it failed, or ends the wait before the next attempt.

use longhaul_agent::Request;

use crate::args::{GlobalArgs, SessionOptions};
use crate::commands::resume::run_without_input;

pub(crate) async fn run(globals: &GlobalArgs, options: SessionOptions) -> anyhow::Result<u8> {
    run_without_input(globals, options.session, options.json, Request::Retry).await
}
