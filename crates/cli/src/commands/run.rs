//! `longhaul run`: one turn; the answer on standard output, the outcome as exit code.

use longhaul_protocol::SessionId;

use longhaul_agent::Request;

use crate::args::{GlobalArgs, RunOptions};
use crate::event_printer::Form;
use crate::input_text::read_prompt;
use crate::one_shot::{OneShot, Stay};

pub(crate) async fn run(globals: &GlobalArgs, options: RunOptions) -> anyhow::Result<u8> {
    let RunOptions { session, json, wait, prompt } = options;
    let stay = if wait { Stay::ForTasks } else { Stay::ForTurn };
    let text = read_prompt(prompt)?;
    let key = session.unwrap_or_else(|| format!("run:{}", SessionId::generate()));
    OneShot { globals, key, form: Form::of_answer(json), stay }.carry_out(Request::Send(text)).await
}
