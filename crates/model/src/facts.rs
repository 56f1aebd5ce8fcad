/// What is known about a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Capabilities {
    /// How many tokens a context may have.
    pub window: Option<ContextWindow>,
    /// How many tokens an answer may have.
    pub max_output: Option<u64>,
    /// Whether it can call tools.
    pub tools: bool,
    /// What it costs.
    pub prices: Option<Prices>,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self { window: None, max_output: None, tools: true, prices: None }
    }
}

/// The size of a context, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextWindow {
    /// In tokens.
    pub tokens: u64,
    /// Who says so.
    pub source: WindowSource,
}

/// Who says how large a context may be, the most trustworthy first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSource {
    /// The server, when it refused a request that was larger.
    Refusal,
    /// The config.
    Config,
    /// The server.
    Server,
    /// The catalogue that this program carries.
    Catalogue,
    /// Nobody: this is what a server on this machine has at least.
    LocalDefault,
    /// Nobody: this is what most models have.
    HostedDefault,
}

impl std::fmt::Display for WindowSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Refusal => "since the server refused more",
            Self::Config => "from the config",
            Self::Server => "as the server says",
            Self::Catalogue => "from the catalogue",
            Self::LocalDefault => "assumed for a local server",
            Self::HostedDefault => "assumed, since nobody says",
        })
    }
}

/// What a model costs, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Sent.
    pub input: f64,
    /// Received.
    pub output: f64,
    /// Found in the provider's cache; like `input` where it is not said.
    pub cached: Option<f64>,
    /// Put into the provider's cache; like `input` where it is not said.
    pub written: Option<f64>,
}

impl Prices {
    /// What a call costs, if enough of it is known.
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
