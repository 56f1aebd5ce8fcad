//! C13: what every request begins with has to leave room for the rest, or nothing is begun.

use longhaul_model::WindowSource;

use crate::client::context_report::Beginning;
use crate::runtime::Inner;
use crate::session::state::State;
use crate::turn::fallback::max_answer_tokens;
use crate::worker::toolset::Toolset;
use crate::{Error, Result};

/// Refuses a window that is set and in which system prompt and tools don't fit. Where none is set, the server may have to be asked,
/// which nobody should wait for at the start: then the first turn says so.
pub(crate) async fn refuse_what_does_not_fit(runtime: &Inner) -> Result<()> {
    let settings = &runtime.config.settings.model;
    let Some(set) = settings.context_window else { return Ok(()) };
    let facts = runtime.model_chain().primary().capabilities().await;
    // The config is not at fault for a window that only the server knows: the turn says what does not fit.
    if facts.window.is_some_and(|window| window.source == WindowSource::Refusal) {
        return Ok(());
    }
    let window = facts.window.map_or(set, |window| window.tokens);
    let mut beginning = Beginning::of_toolset(&Toolset::new(runtime, &State::default()));
    if !facts.tools || settings.tools == Some(false) {
        beginning.tools = 0;
    }
    let answer = max_answer_tokens(settings.max_output_tokens, &facts, Some(window));
    match does_not_fit(beginning, window, answer) {
        Some(reason) => Err(Error::Config { origin: runtime.config.set_by("model.context_window"), reason }),
        None => Ok(()),
    }
}

/// The arithmetic, if nothing is left.
fn does_not_fit(beginning: Beginning, window: u64, answer: u64) -> Option<String> {
    let Beginning { system, tools } = beginning;
    let (fixed, usable) = (system.saturating_add(tools), window.saturating_sub(answer));
    if fixed < usable {
        return None;
    }
    let what = match tools {
        0 => format!("the system prompt takes {fixed} tokens"),
        _ => format!("system prompt ({system} tokens) and tools ({tools}) take {fixed}"),
    };
    let way = match system < usable {
        true => "set model.tools = false",
        false => "shorten the AGENTS.md of the work folder or agent.instructions",
    };
    Some(format!(
        "{what}, and {usable} are usable (a window of {window} less {answer} for the answer); \
         set a larger model.context_window, or {way}"
    ))
}

#[cfg(test)]
#[path = "preflight_tests.rs"]
mod tests;
