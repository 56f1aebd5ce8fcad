/// An answer may take at most the window divided by this.
const ANSWER_WINDOW_DIVISOR: u64 = 4;
/// The limit of an answer, in tokens, if none is configured.
const DEFAULT_ANSWER_TOKENS: u64 = 8_192;

/// What is known about a model: its context window, its longest answer, whether it calls tools, and its prices.
#[derive(Debug, Clone, PartialEq)]
pub struct Capabilities {
    pub window: Option<ContextWindow>,
    /// The longest answer in tokens.
    pub max_output: Option<u64>,
    pub tools: bool,
    pub prices: Option<Prices>,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self { window: None, max_output: None, tools: true, prices: None }
    }
}

impl Capabilities {
    /// The limit of an answer, in tokens: the configured one, but at most the model's limit and at most a quarter of
    /// the window.
    pub fn answer_tokens(&self, configured: Option<u64>, window: Option<u64>) -> u64 {
        let share = window.map_or(u64::MAX, |window| window / ANSWER_WINDOW_DIVISOR);
        configured.unwrap_or(DEFAULT_ANSWER_TOKENS).min(self.max_output.unwrap_or(u64::MAX)).min(share).max(1)
    }
}

/// A context window and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextWindow {
    pub tokens: u64,
    pub source: WindowSource,
}

/// The source of a context window, the most trustworthy first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSource {
    /// The limit that follows from a refused request.
    Refusal,
    /// The config.
    Config,
    Server,
    /// The built-in catalogue.
    Catalogue,
    /// The default for a local server whose window is unknown.
    LocalDefault,
    /// The default for a hosted model whose window is unknown.
    HostedDefault,
}

impl std::fmt::Display for WindowSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Refusal => "because the server refused more",
            Self::Config => "from the config",
            Self::Server => "from the server",
            Self::Catalogue => "from the catalogue",
            Self::LocalDefault => "assumed for a local server",
            Self::HostedDefault => "assumed",
        })
    }
}

/// The price of a model, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    pub input: f64,
    pub output: f64,
    /// Tokens read from the provider's cache. Default: the price of `input`.
    pub cached: Option<f64>,
    /// Tokens written to the provider's cache. Default: the price of `input`.
    pub written: Option<f64>,
}

/// The most that a call with a given input can cost, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriceBound {
    /// The whole input, none of it read from a cache.
    pub input: f64,
    /// Each token of the answer.
    pub output_token: f64,
}

impl Prices {
    /// The most that a call with so many input tokens can cost: none of them are cached yet, and the provider may
    /// charge for writing its cache.
    pub fn bound(&self, input: u64) -> PriceBound {
        #[allow(clippy::cast_precision_loss, reason = "no call has 2^53 tokens")]
        let input = input as f64 * self.input.max(self.written.unwrap_or(0.0)) / 1e6;
        PriceBound { input, output_token: self.output / 1e6 }
    }

    /// The cost of a call. `None` if its token counts are unknown.
    pub fn cost(&self, tokens: &crate::TokenCounts) -> Option<f64> {
        const MILLION: f64 = 1_000_000.0;
        let (input, output) = (tokens.input?, tokens.output?);
        let (cached, written) = (tokens.cached.unwrap_or(0), tokens.written.unwrap_or(0));
        let plain = input.saturating_sub(cached).saturating_sub(written);
        #[allow(clippy::cast_precision_loss, reason = "no call has 2^53 tokens")]
        let priced = |tokens: u64, price: f64| tokens as f64 * price / MILLION;
        Some(
            priced(plain, self.input)
                + priced(cached, self.cached.unwrap_or(self.input))
                + priced(written, self.written.unwrap_or(self.input))
                + priced(output, self.output),
        )
    }
}
