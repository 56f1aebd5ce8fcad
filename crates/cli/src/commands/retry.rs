//! `longhaul retry`: runs the last turn again if it failed, or ends the wait before the next attempt.

use longhaul_agent::Request;

use crate::args::{GlobalArgs, SessionOptions};
use crate::commands::resume::run_without_input;
use crate::session_lookup::session_name;

pub(crate) async fn run(globals: &GlobalArgs, options: SessionOptions) -> anyhow::Result<u8> {
    run_without_input(globals, session_name(globals, None).await?, options.json, Request::Retry).await
}
