//! The endpoint of a model: how to reach it, and the messages for failures there.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use crate::catalogue::CatalogueEntry;
use crate::classify::classify_error;
use crate::codec::{Fault, ProviderError};
use crate::effort::{LearnedEffort, SentEffort};
use crate::learned_capabilities::ServedModel;
use crate::limits::stated_limits;
use crate::transport::TransportError;
use crate::{Effort, EffortForm, FailureClass, ModelFailure, Protocol, Purpose, Quirks, StatedLimits};

const MAX_QUOTED_CHARS: usize = 300;
/// A shorter value is probably no key and may be part of ordinary words, so it is not masked.
const MIN_KEY_BYTES: usize = 6;

/// The timeouts of a call. The call as a whole has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    pub connect: Duration,
    pub first_byte: Duration,
    /// The longest time between two bytes of the body.
    pub idle: Duration,
}

impl Timeouts {
    pub const HOSTED: Self = Self {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs(300),
        idle: Duration::from_secs(120),
    };
    /// For local servers, which may have to load the model first and may be slow.
    pub const LOCAL: Self = Self {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs(900),
        idle: Duration::from_secs(600),
    };
}

/// How to reach a model, and what the config says about it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub name: String,
    /// The provider's own name of the model.
    pub model: String,
    pub protocol: Protocol,
    pub base_url: String,
    /// Where its server differs from others with this protocol.
    pub quirks: Quirks,
    pub key: Option<ApiKey>,
    pub provider: String,
    pub is_local: bool,
    /// The command that starts a local server.
    pub start: Option<String>,
    pub clocks: Timeouts,
    /// The context window from the config, in tokens.
    pub window: Option<u64>,
    /// Whether the model can call tools, from the config.
    pub tools: Option<bool>,
    /// How much the model should reason, from the config.
    pub effort: Option<Effort>,
    pub entry: Option<CatalogueEntry>,
    pub set_by: SettingSources,
}

/// An API key and the environment variable that holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub value: String,
    pub variable: String,
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "${}", self.variable)
    }
}

/// Where each setting comes from, such as `model.name in ~/.longhaul/config.toml:3`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingSources {
    pub name: String,
    pub base_url: String,
    pub key: String,
}

impl Endpoint {
    /// Host and port.
    pub(crate) fn host(&self) -> String {
        let rest = self.base_url.split_once("://").map_or(self.base_url.as_str(), |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or(rest);
        // Drops the user name and password.
        authority.rsplit('@').next().unwrap_or(authority).to_owned()
    }

    /// Under this key the runtime stores what it learns about the model.
    pub(crate) fn served_model(&self) -> ServedModel {
        let (scheme, rest) = self.base_url.split_once("://").unwrap_or(("", &self.base_url));
        let path = rest.split_once('/').map_or("", |(_, path)| path.trim_end_matches('/'));
        let server = format!("{scheme}://{}/{path}", self.host());
        ServedModel { server, model: self.model.clone() }
    }

    /// How much the model should reason for a request. `None` if the config doesn't say, or if it is known that the
    /// model doesn't reason.
    pub(crate) fn sent_effort(&self, purpose: Purpose, learned: Option<LearnedEffort>) -> Option<SentEffort> {
        let effort = self.effort.filter(|_| self.entry.as_ref().is_none_or(|entry| entry.reasons))?;
        let usual = match self.protocol {
            Protocol::OpenaiChat | Protocol::OpenaiResponses => EffortForm::Level,
            Protocol::Anthropic | Protocol::Gemini => EffortForm::Budget,
        };
        let form = self.entry.as_ref().and_then(|entry| entry.effort).unwrap_or(usual);
        SentEffort::new(effort, purpose, form, learned)
    }

    /// Quotes the provider: in one line, truncated, with the key masked.
    pub(crate) fn quote(&self, words: &str) -> String {
        let clean = match &self.key {
            Some(key) if key.value.len() >= MIN_KEY_BYTES => words.replace(&key.value, "[key]"),
            _ => words.to_owned(),
        };
        let line: String = clean.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut short: String =
            line.chars().filter(|character| !character.is_control()).take(MAX_QUOTED_CHARS).collect();
        if line.chars().nth(MAX_QUOTED_CHARS).is_some() {
            short.push('…');
        }
        short
    }

    /// The failure for a response with an error status.
    pub(crate) fn http_failure(
        &self,
        status: u16,
        location: Option<&str>,
        delay: Option<Duration>,
        body: &[u8],
    ) -> ModelFailure {
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let fingerprint = hasher.finish();
        if (300..400).contains(&status) {
            let to = location.map(|to| format!(" to {}", self.quote(to))).unwrap_or_default();
            let what = format!("it redirects{to} ({status}), like a login page or a moved server");
            return ModelFailure { status: Some(status), fingerprint, ..self.not_a_model_server(&what) };
        }
        let error = self.protocol.parse_error(status, body).unwrap_or_else(|| ProviderError {
            status: Some(status),
            message: first_line(body),
            ..ProviderError::default()
        });
        let error = ProviderError { status: Some(status), delay: delay.or(error.delay), ..error };
        ModelFailure { fingerprint, ..self.provider_failure(&error) }
    }

    /// The failure for an error that the provider reported.
    pub(crate) fn provider_failure(&self, error: &ProviderError) -> ModelFailure {
        let class = classify_error(error);
        let words = match (error.message.trim(), error.codes.first()) {
            ("", Some(code)) => format!(": {}", self.quote(code)),
            ("", None) => String::new(),
            (message, _) => format!(": {}", self.quote(message)),
        };
        let status = error.status.map(|status| format!(" ({status})")).unwrap_or_default();
        let message = format!("{}{status}{words}{}", self.describe(class), self.advice(class));
        let stated = match class {
            FailureClass::TooLong | FailureClass::Invalid => {
                let stated = stated_limits(&error.message);
                StatedLimits { window: stated.window.or(error.window), ..stated }
            }
            _ => StatedLimits::default(),
        };
        ModelFailure { status: error.status, delay: error.delay, stated, ..ModelFailure::new(class, message) }
    }

    /// What happened, for the message.
    fn describe(&self, class: FailureClass) -> String {
        let (name, host) = (&self.name, self.host());
        match class {
            FailureClass::Throttled => format!("{host}: rate limited"),
            FailureClass::Overloaded => format!("{host} is overloaded"),
            FailureClass::Server => format!("the server at {host} failed"),
            FailureClass::Timeout => format!("{host} timed out"),
            FailureClass::Quota => format!("{host}: out of quota or credit"),
            FailureClass::Key if self.key.is_some() => format!("{host} rejected the API key"),
            FailureClass::Key => format!("{host} requires an API key"),
            FailureClass::NotFound => {
                format!("{host} has no model {:?}, or the address is wrong", self.model)
            }
            FailureClass::TooLong => format!("the context is too long for {name}"),
            FailureClass::RoleOrder => format!("{host} refused the order of message roles"),
            FailureClass::NoTools => format!("{name} can't call tools"),
            FailureClass::Refused => format!("{name} declined to answer"),
            _ => format!("{host} refused the request"),
        }
    }

    /// What the user can do, for the message.
    fn advice(&self, class: FailureClass) -> String {
        let SettingSources { name, base_url, key } = &self.set_by;
        match class {
            FailureClass::Quota => {
                "; add credit, or choose another model: /model, --model or model.fallback".to_owned()
            }
            FailureClass::Key => match &self.key {
                Some(ApiKey { variable, .. }) => {
                    format!("; check {variable} (set by {key})")
                }
                None => {
                    format!(
                        "; put it in an environment variable and name that with model.api_key_env (now: {key})"
                    )
                }
            },
            FailureClass::NotFound => format!("; the model is set by {name}, the address by {base_url}"),
            FailureClass::TooLong => {
                "; start a new session, or choose a model with a larger context window".to_owned()
            }
            FailureClass::NoTools => "; continuing without tools".to_owned(),
            FailureClass::Refused => "; rephrase the request, or choose another model".to_owned(),
            FailureClass::Invalid => format!("; the model is set by {name}, the address by {base_url}"),
            _ => String::new(),
        }
    }

    /// The failure while other orders of roles are left to try: the caller sends the request again.
    pub(crate) fn will_reorder_roles(&self, failure: ModelFailure) -> ModelFailure {
        let message = format!("{}; retrying with another order of roles", failure.message);
        ModelFailure { class: FailureClass::RoleOrder, message, ..failure }
    }

    /// The failure when no other order of roles is left to try.
    pub(crate) fn no_role_order_left(&self, failure: ModelFailure) -> ModelFailure {
        if failure.class != FailureClass::RoleOrder {
            return failure;
        }
        let SettingSources { name, base_url, .. } = &self.set_by;
        let message = format!(
            "{}; every order of roles was refused; choose another model (set by {name}) or server (set by {base_url})",
            failure.message
        );
        ModelFailure { class: FailureClass::Invalid, message, ..failure }
    }

    pub(crate) fn not_a_model_server(&self, what: &str) -> ModelFailure {
        let (host, by) = (self.host(), &self.set_by.base_url);
        ModelFailure::new(
            FailureClass::NotAModel,
            format!("{host} is not a model server: {what}; the address is set by {by}"),
        )
    }

    pub(crate) fn timeout(&self, what: &str, within: Duration, key: &str) -> ModelFailure {
        let (host, seconds) = (self.host(), within.as_secs_f64());
        ModelFailure::new(
            FailureClass::Timeout,
            format!("no {what} from {host} within {seconds} s (model.{key})"),
        )
    }

    pub(crate) fn broken_stream(&self, what: &str) -> ModelFailure {
        ModelFailure::new(
            FailureClass::Broken,
            format!("the answer from {} was cut off: {}", self.host(), self.quote(what)),
        )
    }

    pub(crate) fn frame_failure(&self, fault: &Fault) -> ModelFailure {
        match fault {
            Fault::Unreadable(frame) => self.broken_stream(&format!("unreadable data: {frame}")),
            Fault::Provider(error) => self.provider_failure(error),
        }
    }

    /// The failure for a request without a response.
    pub(crate) fn transport_failure(&self, trouble: &TransportError, is_known: bool) -> ModelFailure {
        let (host, by) = (self.host(), &self.set_by.base_url);
        match trouble {
            TransportError::Refused if self.is_local => {
                let start = self.start.as_ref().map(|start| format!(": {start}")).unwrap_or_default();
                let message =
                    format!("no server is running at {host} (set by {by}); start the server{start}");
                ModelFailure::new(FailureClass::Connection, message)
            }
            TransportError::NoSuchHost(_) | TransportError::Unreachable(_) | TransportError::Refused
                if is_known =>
            {
                ModelFailure::new(FailureClass::Offline, format!("can't reach {host}: {trouble}"))
            }
            TransportError::NoSuchHost(_) | TransportError::Unreachable(_) | TransportError::Refused => {
                ModelFailure::new(
                    FailureClass::Unreachable,
                    format!("can't reach {host}: {trouble}; the address is set by {by}"),
                )
            }
            TransportError::ConnectTimeout => {
                self.timeout("connection", self.clocks.connect, "connect_timeout_s")
            }
            TransportError::Certificate(_) => ModelFailure::new(
                FailureClass::Certificate,
                format!("{host}: {trouble}; check the address (set by {by}), the system clock and the proxy"),
            ),
            TransportError::BadUrl(_) => {
                ModelFailure::new(FailureClass::Unreachable, format!("{trouble}; the address is set by {by}"))
            }
            TransportError::Broken(_) => ModelFailure::new(
                FailureClass::Connection,
                format!("{host} did not answer: {}", self.quote(&trouble.to_string())),
            ),
        }
    }
}

/// The first line of a body that the codec does not expect.
pub(crate) fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}
