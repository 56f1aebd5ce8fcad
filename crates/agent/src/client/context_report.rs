//! How full a context is, and with what. Compaction decides by the same figures.

use longhaul_context::{CompactionThresholds, ContextBreakdown, ContextBudget, estimate, estimate_bytes};
use longhaul_journal::{Journal, Page};
use longhaul_model::{Capabilities, ContextWindow, WindowSource};
use longhaul_protocol::{CompactDone, SessionId, SessionRecord, StreamName, ToolSchema};

use crate::compaction::plan::ContextLimits;
use crate::config::Settings;
use crate::session::state::State;
use crate::turn::fallback::{max_answer_tokens, model_facts};
use crate::worker::toolset::Toolset;
use crate::{Config, Result};

/// How many records to read from the first record of a compaction to find its last one. A compaction is one append.
const MAX_COMPACTION_RECORDS: usize = 8;

/// How full a context is, and with what. All sizes are in tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextReport {
    /// The model that the next request goes to.
    pub model: String,
    /// The sizes of its parts.
    pub parts: ContextBreakdown,
    /// Inputs and task notices that the next request adds.
    pub incoming: u64,
    /// The provider's last count. Only what was added since is estimated. Without a count, everything is.
    pub reported: Option<u64>,
    /// The size of the model's context window, and the source of that figure.
    pub window: Option<ContextWindow>,
    /// The space in the window. Smaller than the window if the model has refused or truncated prompts below it.
    pub room: Option<ContextBudget>,
    /// The sizes at which the context is compacted.
    pub checks: CompactionThresholds,
    /// The number of the current epoch; `None` before the first.
    pub epoch: Option<u64>,
    /// How many compactions the session has had.
    pub compactions: u64,
}

/// The estimated tokens of the system prompt and the tools, which every request begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PromptOverhead {
    pub(crate) system: u64,
    pub(crate) tools: u64,
}

impl PromptOverhead {
    /// Those of the current epoch; `None` before the first. Schemas that can't be read are estimated by their size.
    pub(crate) async fn of_epoch(journal: &dyn Journal, state: &State) -> Option<Self> {
        let epoch = state.epoch.as_ref()?;
        let schemas = journal.blob(epoch.tools.hash).await.ok();
        let schemas = schemas.and_then(|bytes| serde_json::from_slice::<Vec<ToolSchema>>(&bytes).ok());
        let tools =
            schemas.map_or_else(|| estimate_bytes(epoch.tools.bytes), |schemas| estimate("", &schemas, &[]));
        Some(Self { system: estimate_bytes(epoch.system.bytes), tools })
    }

    /// The overhead of the next epoch.
    pub(crate) fn of_toolset(toolset: &Toolset) -> Self {
        Self { system: toolset.system_tokens(), tools: toolset.tools_tokens() }
    }
}

impl ContextReport {
    /// The size of the context without [`Self::incoming`].
    pub fn tokens(&self) -> u64 {
        self.parts.total()
    }

    /// Free space, not counting the space reserved for the answer; `None` if the window is unknown.
    pub fn free(&self) -> Option<u64> {
        let taken = self.tokens().saturating_add(self.incoming);
        self.room.map(|room| room.usable().saturating_sub(taken))
    }

    pub(crate) fn new(
        state: &State,
        model: &str,
        facts: &Capabilities,
        overhead: PromptOverhead,
        settings: &Settings,
    ) -> Self {
        let PromptOverhead { system, tools } = overhead;
        let tools = if facts.tools { tools } else { 0 };
        let set = settings.model.context_window;
        let set = set.map(|tokens| ContextWindow { tokens, source: WindowSource::Config });
        let window = facts.window.or(set);
        let tokens = window.map(|window| window.tokens);
        let answer = max_answer_tokens(settings.model.max_output_tokens, facts, tokens);
        let fixed = system.saturating_add(tools);
        let space = ContextLimits::new(state, model, tokens, answer, fixed, &settings.context);
        let (total, reported) = state.context_tokens_with(model, state.calibrated(model, fixed));
        let parts =
            ContextBreakdown { system, tools, ..ContextBreakdown::of_items(&state.items, state.preface_len) };
        Self {
            model: model.to_owned(),
            parts: parts.scaled_to(total),
            incoming: crate::compaction::plan::incoming_tokens(state, &space),
            reported: reported.map(|reported| reported.tokens),
            window,
            room: space.room,
            checks: space.checks,
            epoch: state.epoch.as_ref().map(|epoch| epoch.number),
            compactions: state.compaction.count,
        }
    }
}

/// How full the context of a session is for the model chosen for it, else for the configured one. If that model can't be opened, for the last model
/// of the session. May ask the model's server for the window.
pub async fn context_report(config: &Config, journal: &dyn Journal, state: &State) -> ContextReport {
    let mut config = config.clone();
    if let Some(chosen) = config.chosen_model(state) {
        config.settings.model.name = chosen.to_owned();
    }
    let config = &config;
    let (model, facts) = model_facts(config).await.unwrap_or_else(|_| {
        (state.model.clone().unwrap_or_else(|| config.settings.model.name.clone()), Capabilities::default())
    });
    let overhead = PromptOverhead::of_epoch(journal, state).await.unwrap_or_default();
    ContextReport::new(state, &model, &facts, overhead, &config.settings)
}

/// The last compaction of a session, if there was one.
pub async fn last_compaction(
    journal: &dyn Journal,
    session: SessionId,
    state: &State,
) -> Result<Option<CompactDone>> {
    let Some(epoch) = state.epoch.as_ref().filter(|_| state.compaction.count > 0) else { return Ok(None) };
    let page = Page { records: MAX_COMPACTION_RECORDS, ..Page::default() };
    let records = journal.read(&StreamName::session(session), epoch.folds_from, page).await?;
    Ok(records.iter().find_map(|record| match SessionRecord::decode(record) {
        Ok(SessionRecord::CompactDone(done)) => Some(done),
        _ => None,
    }))
}

#[cfg(test)]
#[path = "context_report_tests.rs"]
mod tests;
