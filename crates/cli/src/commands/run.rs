//! `longhaul run`: one turn, its answer, and an exit code that says how it went.

use longhaul_protocol::SessionId;

use longhaul_agent::Request;

use crate::args::{GlobalArgs, RunOptions};
use crate::event_printer::Form;
use crate::input_text::words;
use crate::one_shot::{OneShot, Stay};

pub(crate) async fn run(globals: &GlobalArgs, options: RunOptions) -> anyhow::Result<u8> {
    let RunOptions { session, json, wait, prompt } = options;
    let stay = if wait { Stay::ForTasks } else { Stay::ForTurn };
    let text = words(prompt)?;
    let key = session.unwrap_or_else(|| format!("run:{}", SessionId::generate()));
    OneShot { globals, key, form: Form::of_answer(json), stay }.carry_out(Request::Send(text)).await
}
