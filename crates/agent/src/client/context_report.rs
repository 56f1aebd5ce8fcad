//! How full a context is, and of what, for people. The figures are those by which it is decided when it is made smaller.

use longhaul_context::{CompactionThresholds, ContextBreakdown, ContextBudget, estimate, estimate_bytes};
use longhaul_journal::{Journal, Page};
use longhaul_model::{Capabilities, ContextWindow, WindowSource};
use longhaul_protocol::{CompactDone, SessionId, SessionRecord, StreamName, ToolSchema};

use crate::compaction::plan::ContextLimits;
use crate::config::Settings;
use crate::session::state::State;
use crate::turn::fallback::{max_answer_tokens, model_facts};
use crate::worker::toolset::Toolset;
use crate::{Config, Result, Runtime};

/// A compaction is one append: its last record is so near to its first.
const WITHIN: usize = 8;

/// How full a context is, and of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextReport {
    /// The model that is asked next.
    pub model: String,
    /// What the context is made of.
    pub parts: ContextBreakdown,
    /// What has come and is seen with the next step.
    pub incoming: u64,
    /// What the provider counted last, where the rest is an estimate of what came since; nothing, where all of it is estimated.
    pub reported: Option<u64>,
    /// How large the context may be, and who says so.
    pub window: Option<ContextWindow>,
    /// What there is room for. Where the model has refused or cut less than its window, that is less.
    pub room: Option<ContextBudget>,
    /// From where on it is made smaller.
    pub checks: CompactionThresholds,
    /// The number of its epoch; nothing before the first.
    pub epoch: Option<u64>,
    /// How often it was made smaller.
    pub compactions: u64,
}

/// What system prompt and tools take, before anything is learnt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Beginning {
    pub(crate) system: u64,
    pub(crate) tools: u64,
}

impl Beginning {
    /// Those of the epoch; nothing, where none has begun. What can't be read any more is estimated by its size.
    async fn of_epoch(journal: &dyn Journal, state: &State) -> Option<Self> {
        let epoch = state.epoch.as_ref()?;
        let schemas = journal.blob(epoch.tools.hash).await.ok();
        let schemas = schemas.and_then(|bytes| serde_json::from_slice::<Vec<ToolSchema>>(&bytes).ok());
        let tools =
            schemas.map_or_else(|| estimate_bytes(epoch.tools.bytes), |schemas| estimate("", &schemas, &[]));
        Some(Self { system: estimate_bytes(epoch.system.bytes), tools })
    }

    /// Those that the next epoch begins with.
    pub(crate) fn of_toolset(toolset: &Toolset) -> Self {
        Self { system: toolset.system_tokens(), tools: toolset.tools_tokens() }
    }
}

impl ContextReport {
    /// How many tokens it has, before what has come.
    pub fn tokens(&self) -> u64 {
        self.parts.total()
    }

    /// What is free besides the room for the answer; nothing, where nobody says how much there is.
    pub fn free(&self) -> Option<u64> {
        let taken = self.tokens().saturating_add(self.incoming);
        self.room.map(|room| room.usable().saturating_sub(taken))
    }

    pub(crate) fn new(
        state: &State,
        model: &str,
        facts: &Capabilities,
        beginning: Beginning,
        settings: &Settings,
    ) -> Self {
        let Beginning { system, tools } = beginning;
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

/// How full the context of a session is for the model that the config names; where there is none, for the one that was asked last.
/// Its server may be asked how much it has room for.
pub async fn context_report(config: &Config, journal: &dyn Journal, state: &State) -> ContextReport {
    let (model, facts) = model_facts(config).await.unwrap_or_else(|_| {
        (state.model.clone().unwrap_or_else(|| config.settings.model.name.clone()), Capabilities::default())
    });
    let beginning = Beginning::of_epoch(journal, state).await.unwrap_or_default();
    ContextReport::new(state, &model, &facts, beginning, &config.settings)
}

impl Runtime {
    /// How full a context is for the model that is set.
    pub async fn context_report(&self, state: &State) -> ContextReport {
        let (model, facts) = self.model().await;
        let beginning = Beginning::of_epoch(&*self.0.journal, state)
            .await
            .unwrap_or_else(|| Beginning::of_toolset(&Toolset::new(&self.0, state)));
        ContextReport::new(state, &model, &facts, beginning, &self.0.config.settings)
    }
}

/// What the last compaction of a session did, if there was one.
pub async fn last_compaction(
    journal: &dyn Journal,
    session: SessionId,
    state: &State,
) -> Result<Option<CompactDone>> {
    let Some(epoch) = state.epoch.as_ref().filter(|_| state.compaction.count > 0) else { return Ok(None) };
    let page = Page { records: WITHIN, ..Page::default() };
    let records = journal.read(&StreamName::session(session), epoch.folds_from, page).await?;
    Ok(records.iter().find_map(|record| match SessionRecord::decode(record) {
        Ok(SessionRecord::CompactDone(done)) => Some(done),
        _ => None,
    }))
}

#[cfg(test)]
#[path = "context_report_tests.rs"]
mod tests;
