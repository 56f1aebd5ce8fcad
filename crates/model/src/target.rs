//! How a model is reached, and the words for what went wrong with it: what happened, whose doing it is, what to do.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use crate::catalogue::CatalogueEntry;
use crate::classify::class_of;
use crate::codec::{Fault, Said};
use crate::learned::ServedModel;
use crate::limits::stated_limits;
use crate::transport::TransportError;
use crate::{FailureClass, ModelFailure, Protocol, Quirks, StatedLimits};

/// So much of what a provider says is shown.
const SHOWN: usize = 300;
/// A shorter key is none, and stands in ordinary words.
const SHORTEST_KEY: usize = 6;

/// How long each part of a call may take. There is no limit for all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Connecting.
    pub connect: Duration,
    /// Until the first byte of the body.
    pub first_byte: Duration,
    /// Between two bytes.
    pub idle: Duration,
}

impl Timeouts {
    /// For servers elsewhere.
    pub const HOSTED: Self = Self {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs(300),
        idle: Duration::from_secs(120),
    };
    /// For servers on this machine, which may have to load a model and have no more speed than it has.
    pub const LOCAL: Self = Self {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs(900),
        idle: Duration::from_secs(600),
    };
}

/// How a model is reached, and what is known about it beforehand.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// As `provider/model`.
    pub name: String,
    /// In the provider's own word.
    pub model: String,
    /// What its server speaks.
    pub protocol: Protocol,
    /// Where its server is.
    pub base_url: String,
    /// Where that differs from others that speak the same.
    pub quirks: Quirks,
    /// The key, if it needs one.
    pub key: Option<ApiKey>,
    /// The provider's name in the table.
    pub provider: String,
    /// Whether the server runs on this machine.
    pub is_local: bool,
    /// How to start it.
    pub start: Option<String>,
    /// How long things may take.
    pub clocks: Timeouts,
    /// What the config says about it.
    pub window: Option<u64>,
    /// What the config says about its tools.
    pub tools: Option<bool>,
    /// What the catalogue says about it.
    pub entry: Option<CatalogueEntry>,
    /// Who said so, for messages.
    pub set_by: SettingSources,
}

/// A key and the variable that it comes from.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// The key itself.
    pub value: String,
    /// The variable.
    pub variable: String,
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "${}", self.variable)
    }
}

/// Who set what, in words such as `model.name in ~/.longhaul/config.toml:3`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingSources {
    /// The model's name.
    pub name: String,
    /// The server's address.
    pub base_url: String,
    /// The variable of the key.
    pub key: String,
}

impl Endpoint {
    /// The host and its port, as people write them.
    pub(crate) fn host(&self) -> String {
        let rest = self.base_url.split_once("://").map_or(self.base_url.as_str(), |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or(rest);
        // A name and a password before it are nobody's business.
        authority.rsplit('@').next().unwrap_or(authority).to_owned()
    }

    /// The model and its server, as what is learned about them is filed.
    pub(crate) fn served_model(&self) -> ServedModel {
        let (scheme, rest) = self.base_url.split_once("://").unwrap_or(("", &self.base_url));
        let path = rest.split_once('/').map_or("", |(_, path)| path.trim_end_matches('/'));
        let server = format!("{scheme}://{}/{path}", self.host());
        ServedModel { server, model: self.model.clone() }
    }

    /// Words of the provider, without the key that it may have quoted.
    pub(crate) fn quoted(&self, words: &str) -> String {
        let clean = match &self.key {
            Some(key) if key.value.len() >= SHORTEST_KEY => words.replace(&key.value, "[key]"),
            _ => words.to_owned(),
        };
        let line: String = clean.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut short: String =
            line.chars().filter(|character| !character.is_control()).take(SHOWN).collect();
        if line.chars().nth(SHOWN).is_some() {
            short.push('…');
        }
        short
    }

    /// What an answer with this status and body means.
    pub(crate) fn refused(
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
            let to = location.map(|to| format!(" to {}", self.quoted(to))).unwrap_or_default();
            let what =
                format!("it answered with a redirect{to} ({status}), as a login page or a moved server does");
            return ModelFailure { status: Some(status), fingerprint, ..self.no_model_server(&what) };
        }
        let said = self.protocol.said(status, body).unwrap_or_else(|| Said {
            status: Some(status),
            message: first_line(body),
            ..Said::default()
        });
        let said = Said { status: Some(status), delay: delay.or(said.delay), ..said };
        ModelFailure { fingerprint, ..self.said(&said) }
    }

    /// What the provider's words mean.
    pub(crate) fn said(&self, said: &Said) -> ModelFailure {
        let class = class_of(said);
        let words = match (said.message.trim(), said.codes.first()) {
            ("", Some(code)) => format!(": {}", self.quoted(code)),
            ("", None) => String::new(),
            (message, _) => format!(": {}", self.quoted(message)),
        };
        let status = said.status.map(|status| format!(" ({status})")).unwrap_or_default();
        let message = format!("{}{status}{words}{}", self.what(class), self.next(class));
        let stated = match class {
            FailureClass::TooLong | FailureClass::Invalid => {
                let stated = stated_limits(&said.message);
                StatedLimits { window: stated.window.or(said.window), ..stated }
            }
            _ => StatedLimits::default(),
        };
        ModelFailure { status: said.status, delay: said.delay, stated, ..ModelFailure::new(class, message) }
    }

    /// What happened, and whose doing it is.
    fn what(&self, class: FailureClass) -> String {
        let (name, host) = (&self.name, self.host());
        match class {
            FailureClass::Throttled => format!("{host} takes no more requests for now"),
            FailureClass::Overloaded => format!("{host} has too much to do right now"),
            FailureClass::Server => format!("{host} failed, which is its own fault"),
            FailureClass::Timeout => format!("{host} gave up waiting"),
            FailureClass::Quota => format!("{host} gives nothing more: quota or credit is used up"),
            FailureClass::Key if self.key.is_some() => format!("{host} did not accept the key"),
            FailureClass::Key => format!("{host} wants a key, and none was sent"),
            FailureClass::NotFound => format!("{host} knows no model {:?}, or no such address", self.model),
            FailureClass::TooLong => format!("the context is longer than {name} takes"),
            FailureClass::RoleOrder => format!("{host} refused the order of the messages' roles"),
            FailureClass::NoTools => format!("{name} can't call tools"),
            FailureClass::Refused => format!("{name} did not want to answer this"),
            _ => format!("{host} refused the request"),
        }
    }

    /// What to do about it.
    fn next(&self, class: FailureClass) -> String {
        let SettingSources { name, base_url, key } = &self.set_by;
        match class {
            FailureClass::Quota => {
                "; add credit there, or choose another model with --model or model.fallback".to_owned()
            }
            FailureClass::Key => match &self.key {
                Some(ApiKey { variable, .. }) => {
                    format!("; the key is the value of {variable}, named by {key}")
                }
                None => {
                    format!("; put it into a variable, and name that with model.api_key_env (now: {key})")
                }
            },
            FailureClass::NotFound => format!("; the model is set by {name}, the address by {base_url}"),
            FailureClass::TooLong => {
                "; start a new session, or choose a model with a larger context window".to_owned()
            }
            FailureClass::NoTools => "; it is asked without them from here on".to_owned(),
            FailureClass::Refused => "; say it differently, or choose another model".to_owned(),
            FailureClass::Invalid => format!("; the model is set by {name}, the address by {base_url}"),
            _ => String::new(),
        }
    }

    /// A refusal after which the same request is sent in another order of roles.
    pub(crate) fn another_order(&self, failure: ModelFailure) -> ModelFailure {
        let message =
            format!("{}; it is sent again in another order of roles, in case that is why", failure.message);
        ModelFailure { class: FailureClass::RoleOrder, message, ..failure }
    }

    /// A refusal that no other order of roles can help with.
    pub(crate) fn no_other_order(&self, failure: ModelFailure) -> ModelFailure {
        if failure.class != FailureClass::RoleOrder {
            return failure;
        }
        let SettingSources { name, base_url, .. } = &self.set_by;
        let message = format!(
            "{}; every order of roles was refused, so choose another model (set by {name}) or server (set by {base_url})",
            failure.message
        );
        ModelFailure { class: FailureClass::Invalid, message, ..failure }
    }

    /// What answered is no model server.
    pub(crate) fn no_model_server(&self, what: &str) -> ModelFailure {
        let (host, by) = (self.host(), &self.set_by.base_url);
        ModelFailure::new(
            FailureClass::NotAModel,
            format!("{host} is no model server: {what}; its address is set by {by}"),
        )
    }

    /// Nothing came in time.
    pub(crate) fn late(&self, what: &str, within: Duration, key: &str) -> ModelFailure {
        let (host, seconds) = (self.host(), within.as_secs_f64());
        ModelFailure::new(
            FailureClass::Timeout,
            format!("no {what} from {host} within {seconds} s (model.{key})"),
        )
    }

    /// The answer broke off, or can't be read.
    pub(crate) fn broken(&self, what: &str) -> ModelFailure {
        ModelFailure::new(
            FailureClass::Broken,
            format!("the answer of {} broke off: {}", self.host(), self.quoted(what)),
        )
    }

    /// A frame that is no part of an answer.
    pub(crate) fn fault(&self, fault: &Fault) -> ModelFailure {
        match fault {
            Fault::Unreadable(frame) => self.broken(&format!("a frame can't be read: {frame}")),
            Fault::Said(said) => self.said(said),
        }
    }

    /// Why a request was not answered at all.
    pub(crate) fn unsent(&self, trouble: &TransportError, is_known: bool) -> ModelFailure {
        let (host, by) = (self.host(), &self.set_by.base_url);
        match trouble {
            TransportError::Refused if self.is_local => {
                let start = self.start.as_ref().map(|start| format!(": {start}")).unwrap_or_default();
                let message =
                    format!("nothing listens at {host}, which is set by {by}; start the server{start}");
                ModelFailure::new(FailureClass::Connection, message)
            }
            TransportError::NoSuchHost(_) | TransportError::Unreachable(_) | TransportError::Refused
                if is_known =>
            {
                ModelFailure::new(
                    FailureClass::Offline,
                    format!("there is no way to {host} right now: {trouble}"),
                )
            }
            TransportError::NoSuchHost(_) | TransportError::Unreachable(_) | TransportError::Refused => {
                ModelFailure::new(
                    FailureClass::Unreachable,
                    format!(
                        "there is no way to {host}, which never answered before: {trouble}; its address is set by {by}"
                    ),
                )
            }
            TransportError::ConnectTimeout => {
                self.late("connection", self.clocks.connect, "connect_timeout_s")
            }
            TransportError::Certificate(_) => ModelFailure::new(
                FailureClass::Certificate,
                format!("{host}: {trouble}; check its address ({by}), this machine's clock and its proxy"),
            ),
            TransportError::BadUrl(_) => {
                ModelFailure::new(FailureClass::Unreachable, format!("{trouble}; it is set by {by}"))
            }
            TransportError::Broken(_) => ModelFailure::new(
                FailureClass::Connection,
                format!("{host} did not answer: {}", self.quoted(&trouble.to_string())),
            ),
        }
    }
}

/// The first line of something that nobody expected.
pub(crate) fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}
