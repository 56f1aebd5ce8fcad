//! The models that answer a session: the configured one, then its fallbacks. Selects the one that a turn calls, and
//! counts its failures so far.

use std::sync::Arc;
use std::time::Duration;

use longhaul_model::{
    Capabilities, LongDelayPolicy, MAX_ROLE_REORDERS, Model, ModelFailure, ModelSpec, Models, RetryDecision,
    RetryPolicy, RetryState, SettingSources,
};

use crate::config::ModelSettings;
use crate::session::state::State;
use crate::{Config, Result};

/// The maximum answer length in tokens, unless the config or the catalogue states one.
const DEFAULT_ANSWER_TOKENS: u64 = 8_192;
/// An answer that continues a truncated one may be this many times longer.
const CONTINUED_ANSWER_FACTOR: u64 = 4;
/// An answer may take at most the context window divided by this.
const MAX_ANSWER_SHARE: u64 = 4;
/// How often one step may correct the assumed context window or answer length. Each correction makes it smaller.
const MAX_LIMIT_CORRECTIONS: u32 = 4;

/// A model and its fallbacks, in the order in which they are called. There is at least one.
pub(crate) struct ModelChain {
    models: Vec<Arc<dyn Model>>,
    /// The user chose the first model for one session.
    is_chosen: bool,
}

impl ModelChain {
    /// The configured model, then its fallbacks.
    pub(crate) fn from_config(models: &Models, config: &Config) -> Result<Self> {
        Self::named(models, config, &config.settings.model.name)
    }

    /// This model, then the configured fallbacks.
    pub(crate) fn named(models: &Models, config: &Config, name: &str) -> Result<Self> {
        let names = std::iter::once(name).chain(config.settings.model.fallback.iter().map(String::as_str));
        let models = names.map(|name| open_model(models, config, name)).collect::<Result<_>>()?;
        Ok(Self { models, is_chosen: false })
    }

    /// The same models. The first is the user's choice for one session.
    pub(crate) fn to_chosen(&self) -> Self {
        Self { models: self.models.clone(), is_chosen: true }
    }

    /// One model without fallbacks.
    pub(crate) fn single(model: Arc<dyn Model>) -> Self {
        Self { models: vec![model], is_chosen: false }
    }

    /// The model that is called first.
    pub(crate) fn primary(&self) -> Arc<dyn Model> {
        self.models[0].clone()
    }
}

/// The model of a chain that the turn calls, and the counters that limit retries.
///
/// Nothing of this is recorded: a restart costs at most a few more tries.
pub(crate) struct ModelSelection {
    chain: Arc<ModelChain>,
    index: usize,
    /// The context window of the model, if it is known.
    window: Option<u64>,
    /// Answers of this turn that were truncated at their maximum length.
    truncated_answers: u32,
    /// The model refused a request with tools.
    refuses_tools: bool,
    /// The model refused a longer answer, or the window has no room for one.
    refuses_longer_answers: bool,
    step: StepCounters,
}

/// The failures in this step.
#[derive(Default)]
struct StepCounters {
    tries: Option<RetryState>,
    empty_answers: u32,
    /// Answers that were only reasoning.
    silent_answers: u32,
    /// Requests sent again with their roles in another order.
    reordered_requests: u32,
    limit_corrections: u32,
}

impl ModelSelection {
    /// Continues with the model that was called last, if the chain still has it.
    pub(crate) fn resume(chain: Arc<ModelChain>, state: &State) -> Self {
        let last = state.model.as_deref();
        let index =
            last.and_then(|last| chain.models.iter().position(|model| model.name() == last)).unwrap_or(0);
        let truncated_answers = state.turn.as_ref().map_or(0, |turn| turn.length_cuts);
        Self { index, truncated_answers, ..Self::new(chain) }
    }

    fn new(chain: Arc<ModelChain>) -> Self {
        Self {
            chain,
            index: 0,
            window: None,
            truncated_answers: 0,
            refuses_tools: false,
            refuses_longer_answers: false,
            step: StepCounters::default(),
        }
    }

    /// Starts again with the first model of a chain.
    pub(crate) fn start_turn(&mut self, chain: Arc<ModelChain>) {
        *self = Self::new(chain);
    }

    /// Resets the counters of a step.
    pub(crate) fn start_step(&mut self) {
        self.step = StepCounters::default();
    }

    pub(crate) fn is_of_chain(&self, chain: &Arc<ModelChain>) -> bool {
        Arc::ptr_eq(chain, &self.chain)
    }

    /// The model to call.
    pub(crate) fn model(&self) -> Arc<dyn Model> {
        self.chain.models[self.index].clone()
    }

    /// Whether that is the model that the user chose for the session.
    pub(crate) fn is_chosen(&self) -> bool {
        self.chain.is_chosen && self.index == 0
    }

    fn has_fallback(&self) -> bool {
        self.index + 1 < self.chain.models.len()
    }

    /// Switches to the next model of the chain. Returns the names of the old one and the new one, or `None` if there
    /// is no other.
    pub(crate) fn fall_back(&mut self) -> Option<(String, String)> {
        let from = self.model().name().to_owned();
        let to = self.chain.models.get(self.index + 1)?.name().to_owned();
        self.index += 1;
        (self.refuses_tools, self.refuses_longer_answers) = (false, false);
        self.start_step();
        Some((from, to))
    }

    /// Counts a failed try. Returns whether to wait and retry, or to give up.
    pub(crate) fn record_failure(
        &mut self,
        mut policy: RetryPolicy,
        failure: &ModelFailure,
    ) -> RetryDecision {
        // A fallback answers sooner than a server that asks for hours of delay (Retry-After).
        if self.has_fallback() {
            policy.long_delays = LongDelayPolicy::GiveUp;
        }
        self.step.tries.get_or_insert_with(|| RetryState::new(policy)).failed(failure, fastrand::f64())
    }

    /// Counts an answer without content. Returns how many this step has had.
    pub(crate) fn count_empty_answer(&mut self) -> u32 {
        self.step.empty_answers += 1;
        self.step.empty_answers
    }

    /// Counts an answer that was only reasoning. Returns how many this step has had.
    pub(crate) fn count_silent_answer(&mut self) -> u32 {
        self.step.silent_answers += 1;
        self.step.silent_answers
    }

    /// Counts a truncated answer. Returns how many this turn has had.
    pub(crate) fn count_truncated_answer(&mut self) -> u32 {
        self.truncated_answers += 1;
        self.truncated_answers
    }

    /// Whether a request whose order of roles was refused may be sent once more. Counts the request.
    pub(crate) fn may_reorder(&mut self) -> bool {
        self.step.reordered_requests += 1;
        self.step.reordered_requests <= MAX_ROLE_REORDERS
    }

    pub(crate) fn may_correct_limits(&self) -> bool {
        self.step.limit_corrections < MAX_LIMIT_CORRECTIONS
    }

    pub(crate) fn count_limit_correction(&mut self) {
        self.step.limit_corrections += 1;
    }

    /// Calls the model without tools from now on.
    pub(crate) fn disable_tools(&mut self) {
        self.refuses_tools = true;
    }

    pub(crate) fn refuses_tools(&self) -> bool {
        self.refuses_tools
    }

    /// Stops raising the maximum answer length.
    pub(crate) fn disable_longer_answers(&mut self) {
        self.refuses_longer_answers = true;
    }

    pub(crate) fn window(&self) -> Option<u64> {
        self.window
    }

    pub(crate) fn set_window(&mut self, window: Option<u64>) {
        self.window = window;
    }

    /// The maximum length, in tokens, of an answer that does not continue another one.
    pub(crate) fn base_answer_tokens(&self, settings: &ModelSettings, capabilities: &Capabilities) -> u64 {
        max_answer_tokens(settings.max_output_tokens, capabilities, self.window)
    }

    /// The maximum length of the next answer, in tokens. It is longer after a truncated one.
    pub(crate) fn answer_tokens(&self, settings: &ModelSettings, capabilities: &Capabilities) -> u64 {
        let base = self.base_answer_tokens(settings, capabilities);
        if self.truncated_answers == 0 || self.refuses_longer_answers {
            return base;
        }
        max_answer_tokens(Some(base.saturating_mul(CONTINUED_ANSWER_FACTOR)), capabilities, self.window)
    }
}

/// The maximum length of an answer in tokens: the configured one, otherwise that of the model, otherwise the default.
/// It is bounded by the model and by a share of the window (C1).
pub(crate) fn max_answer_tokens(
    configured: Option<u64>,
    capabilities: &Capabilities,
    window: Option<u64>,
) -> u64 {
    let share = window.map_or(u64::MAX, |window| window / MAX_ANSWER_SHARE);
    let model = capabilities.max_output;
    configured.or(model).unwrap_or(DEFAULT_ANSWER_TOKENS).min(model.unwrap_or(u64::MAX)).min(share).max(1)
}

/// The configured model, as `provider/model`, and its capabilities. May ask the model's server.
pub async fn model_facts(config: &Config) -> Result<(String, Capabilities)> {
    let model = ModelChain::from_config(&Models::at(&config.home)?, config)?.primary();
    Ok((model.name().to_owned(), model.capabilities().await))
}

/// Opens one model by its name.
pub(crate) fn open_model(models: &Models, config: &Config, name: &str) -> Result<Arc<dyn Model>> {
    Ok(models.open(&model_spec(models, config, name))?)
}

/// How to reach a model: the one rule about which address gets which key. The configured server settings apply to the
/// configured model and to models of the same provider. A model of another provider is reached at that provider's usual address.
pub fn model_spec(models: &Models, config: &Config, name: &str) -> ModelSpec {
    let settings = &config.settings.model;
    // A name without a known provider belongs to the server at the configured address.
    let provider = |name: &str| match name.split_once('/') {
        Some((provider, _)) if models.providers().get(provider).is_some() => provider.to_owned(),
        _ => "custom".to_owned(),
    };
    let seconds = |seconds: Option<u64>| seconds.map(Duration::from_secs);
    let is_configured = name == settings.name;
    let common = ModelSpec {
        name: name.to_owned(),
        connect_timeout: seconds(settings.connect_timeout_s),
        first_byte_timeout: seconds(settings.first_byte_timeout_s),
        idle_timeout: seconds(settings.silence_timeout_s),
        effort: settings.effort,
        set_by: SettingSources {
            name: if is_configured { config.set_by("model.name") } else { format!("the name {name:?}") },
            base_url: config.set_by("model.base_url"),
            key: config.set_by("model.api_key_env"),
        },
        ..ModelSpec::default()
    };
    // A flag or a variable may name another model than the files. Then its key must not be sent to the address in the
    // files.
    let file_name = config.model_in_files.as_ref().unwrap_or(&settings.name);
    if !file_name.is_empty() && provider(name) != provider(file_name) {
        return common;
    }
    ModelSpec {
        base_url: settings.base_url.clone(),
        api_key_env: settings.api_key_env.clone(),
        protocol: settings.protocol,
        tools: settings.tools.filter(|_| is_configured),
        context_window: settings.context_window.filter(|_| is_configured),
        ..common
    }
}
