//! C13: checks at the start that the system prompt and the tools leave room in the context window.

use longhaul_model::WindowSource;

use crate::client::context_report::PromptOverhead;
use crate::runtime::RuntimeShared;
use crate::session::state::State;
use crate::turn::fallback::max_answer_tokens;
use crate::worker::toolset::Toolset;
use crate::{Error, Result};

/// Fails if the system prompt and the tools do not fit into the configured window. Without a configured window the
/// server would have to be asked, which would delay the start. Then the first turn reports the problem.
pub(crate) async fn check_prompt_fits(runtime: &RuntimeShared) -> Result<()> {
    let settings = &runtime.config.settings.model;
    let Some(set) = settings.context_window else { return Ok(()) };
    let model = runtime.model_chain().primary();
    let capabilities = model.capabilities().await;
    // A smaller window that a refusal revealed is no error in the config. The turn reports what does not fit.
    if capabilities.window.is_some_and(|window| window.source == WindowSource::Refusal) {
        return Ok(());
    }
    let window = capabilities.window.map_or(set, |window| window.tokens);
    let mut overhead =
        PromptOverhead::of_toolset(&Toolset::new(runtime, &State::default(), model.name(), None));
    if !capabilities.tools || settings.tools == Some(false) {
        overhead.tools = 0;
    }
    let answer = max_answer_tokens(settings.max_output_tokens, &capabilities, Some(window));
    match misfit_reason(overhead, window, answer) {
        Some(reason) => Err(Error::Config { origin: runtime.config.set_by("model.context_window"), reason }),
        None => Ok(()),
    }
}

/// Why the prompt does not fit, with the figures; `None` if it does.
fn misfit_reason(overhead: PromptOverhead, window: u64, answer: u64) -> Option<String> {
    let PromptOverhead { system, tools } = overhead;
    let (fixed, usable) = (system.saturating_add(tools), window.saturating_sub(answer));
    if fixed < usable {
        return None;
    }
    let what = match tools {
        0 => format!("the system prompt takes {fixed} tokens"),
        _ => format!("the system prompt ({system} tokens) and the tools ({tools}) take {fixed}"),
    };
    let way = match system < usable {
        true => "set model.tools = false",
        false => "shorten the AGENTS.md of the work folder or agent.instructions",
    };
    Some(format!(
        "{what}, but only {usable} are available (a window of {window} less {answer} for the answer); \
         raise model.context_window, or {way}"
    ))
}

#[cfg(test)]
#[path = "preflight_tests.rs"]
mod tests;
