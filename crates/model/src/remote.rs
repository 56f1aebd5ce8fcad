//! A model behind a wire: one request, one answer, our clocks. Whether to try again is decided elsewhere.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};

use crate::catalogue::Entry;
use crate::classify::{class_of, server_delay};
use crate::codec::{Asked, Fault, Said};
use crate::discovery::{Server, discover};
use crate::hosts::Hosts;
use crate::listening::Listening;
use crate::transport::{Incoming, Outgoing, Transport, Trouble};
use crate::{Answer, Class, Facts, Failure, Model, Protocol, Quirks, Request, Window, WindowSource};

/// So much of an error is read, and for so long.
const LONGEST_ERROR: usize = 64 << 10;
const ERROR_WITHIN: Duration = Duration::from_secs(10);
/// So much of it is shown.
const SHOWN: usize = 300;
/// What a context has at least on a server of this machine, and what it has with most models elsewhere.
const LOCAL_WINDOW: u64 = 8_192;
const HOSTED_WINDOW: u64 = 128_000;

/// How long each part of a call may take. There is no limit for all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// Connecting.
    pub connect: Duration,
    /// Until the first byte of the body.
    pub first_byte: Duration,
    /// Between two bytes.
    pub silence: Duration,
}

impl Clocks {
    /// For servers elsewhere.
    pub const HOSTED: Self = Self {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs(300),
        silence: Duration::from_secs(120),
    };
    /// For servers on this machine, which may have to load a model and have no more speed than it has.
    pub const LOCAL: Self = Self {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs(900),
        silence: Duration::from_secs(600),
    };
}

/// How a model is reached, and what is known about it beforehand.
#[derive(Debug, Clone)]
pub struct Target {
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
    pub key: Option<Key>,
    /// The provider's name in the table.
    pub provider: String,
    /// Whether the server runs on this machine.
    pub is_local: bool,
    /// How to start it.
    pub start: Option<String>,
    /// How long things may take.
    pub clocks: Clocks,
    /// What the config says about it.
    pub window: Option<u64>,
    /// What the config says about its tools.
    pub tools: Option<bool>,
    /// What the catalogue says about it.
    pub entry: Option<Entry>,
    /// Who said so, for messages.
    pub set_by: SetBy,
}

/// A key and the variable that it comes from.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// The key itself.
    pub value: String,
    /// The variable.
    pub variable: String,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "${}", self.variable)
    }
}

/// Who set what, in words such as `model.name in ~/.longhaul/config.toml:3`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetBy {
    /// The model's name.
    pub name: String,
    /// The server's address.
    pub base_url: String,
    /// The variable of the key.
    pub key: String,
}

/// A model behind a wire.
pub struct Remote {
    target: Arc<Target>,
    transport: Arc<dyn Transport>,
    hosts: Arc<Hosts>,
    facts: OnceCell<Facts>,
    /// The server said that this model can't call tools.
    has_no_tools: AtomicBool,
}

impl Remote {
    /// The model at this target, reached by this transport.
    pub fn new(target: Target, transport: Arc<dyn Transport>, hosts: Arc<Hosts>) -> Self {
        let (facts, has_no_tools) = (OnceCell::new(), AtomicBool::new(false));
        Self { target: Arc::new(target), transport, hosts, facts, has_no_tools }
    }

    async fn find_out(&self) -> Facts {
        let target = &self.target;
        let entry = target.entry.as_ref();
        // A provider that is in the catalogue is not asked what is known.
        let asks =
            target.window.is_none() && (target.is_local || entry.is_none_or(|entry| entry.window.is_none()));
        let server = Server {
            provider: &target.provider,
            protocol: target.protocol,
            base_url: &target.base_url,
            key: target.key.as_ref().map(|key| key.value.as_str()),
        };
        let said = if asks { discover(&*self.transport, &server, &target.model).await } else { None };
        let said_window = said.as_ref().and_then(|said| said.window);
        let known = [
            (target.window, WindowSource::Config),
            (said_window, WindowSource::Server),
            (entry.and_then(|entry| entry.window), WindowSource::Catalogue),
        ];
        let found = known.into_iter().find_map(|(tokens, source)| Some(Window { tokens: tokens?, source }));
        let assumed = if target.is_local {
            Window { tokens: LOCAL_WINDOW, source: WindowSource::LocalDefault }
        } else {
            Window { tokens: HOSTED_WINDOW, source: WindowSource::HostedDefault }
        };
        let tools = target
            .tools
            .or(said.and_then(|said| said.tools))
            .or(entry.map(|entry| entry.tools))
            .unwrap_or(true);
        Facts {
            window: Some(found.unwrap_or(assumed)),
            max_output: entry.and_then(|entry| entry.max_output),
            tools,
            prices: entry.and_then(|entry| entry.prices),
        }
    }

    fn outgoing(&self, request: &Request) -> Outgoing {
        let target = &self.target;
        let asked = Asked {
            request,
            model: &target.model,
            author: &target.name,
            quirks: &target.quirks,
            reasons: target.entry.as_ref().is_some_and(|entry| entry.reasons),
        };
        Outgoing {
            url: format!("{}{}", target.base_url.trim_end_matches('/'), target.protocol.path(&target.model)),
            headers: target.protocol.headers(target.key.as_ref().map(|key| key.value.as_str())),
            body: Some(target.protocol.encode(&asked)),
            connect_within: target.clocks.connect,
        }
    }

    /// An answer with a status that is none of success.
    async fn refusal(&self, mut incoming: Incoming) -> Failure {
        let body = error_body(&mut incoming).await;
        let delay = server_delay(&incoming.headers, jiff::Timestamp::now());
        let failure = self.target.refused(incoming.status, incoming.header("location"), delay, &body);
        if failure.class == Class::NoTools {
            self.has_no_tools.store(true, Ordering::SeqCst);
        }
        failure
    }

    fn unsent(&self, trouble: &Trouble) -> Failure {
        let target = &self.target;
        let is_known = self.hosts.knows(&target.host());
        target.unsent(trouble, is_known)
    }
}

#[async_trait]
impl Model for Remote {
    fn name(&self) -> &str {
        &self.target.name
    }

    async fn facts(&self) -> Facts {
        let facts = self.facts.get_or_init(|| self.find_out()).await.clone();
        Facts { tools: facts.tools && !self.has_no_tools.load(Ordering::SeqCst), ..facts }
    }

    async fn ask(&self, request: Request) -> Result<Box<dyn Answer>, Failure> {
        let target = &self.target;
        let first_byte_by = Instant::now() + target.clocks.first_byte;
        let sent = timeout_at(first_byte_by, self.transport.send(self.outgoing(&request))).await;
        let incoming = match sent {
            Ok(Ok(incoming)) => incoming,
            Ok(Err(trouble)) => return Err(self.unsent(&trouble)),
            Err(_) => {
                return Err(target.late("first byte", target.clocks.first_byte, "first_byte_timeout_s"));
            }
        };
        self.hosts.answered(&target.host());
        if !(200..300).contains(&incoming.status) {
            return Err(self.refusal(incoming).await);
        }
        Ok(Box::new(Listening::new(target.clone(), incoming, first_byte_by)))
    }
}

async fn error_body(incoming: &mut Incoming) -> Vec<u8> {
    let until = Instant::now() + ERROR_WITHIN;
    let mut body = Vec::new();
    while body.len() < LONGEST_ERROR {
        match timeout_at(until, incoming.body.next()).await {
            Ok(Ok(Some(bytes))) => body.extend(bytes),
            _ => break,
        }
    }
    body.truncate(LONGEST_ERROR);
    body
}

impl Target {
    /// The host and its port, as people write them.
    pub(crate) fn host(&self) -> String {
        let rest = self.base_url.split_once("://").map_or(self.base_url.as_str(), |(_, rest)| rest);
        rest.split('/').next().unwrap_or(rest).to_owned()
    }

    /// Words of the provider, without the key that it may have quoted.
    fn quoted(&self, words: &str) -> String {
        let clean = match &self.key {
            Some(key) if !key.value.is_empty() => words.replace(&key.value, "[key]"),
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
    ) -> Failure {
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let fingerprint = hasher.finish();
        if (300..400).contains(&status) {
            let to = location.map(|to| format!(" to {}", self.quoted(to))).unwrap_or_default();
            let what =
                format!("it answered with a redirect{to} ({status}), as a login page or a moved server does");
            return Failure { status: Some(status), fingerprint, ..self.no_model_server(&what) };
        }
        let said = self.protocol.said(status, body).unwrap_or_else(|| Said {
            status: Some(status),
            message: first_line(body),
            ..Said::default()
        });
        let said = Said { status: Some(status), delay: delay.or(said.delay), ..said };
        Failure { fingerprint, ..self.said(&said) }
    }

    /// What the provider's words mean.
    pub(crate) fn said(&self, said: &Said) -> Failure {
        let class = class_of(said);
        let words = match (said.message.trim(), said.codes.first()) {
            ("", Some(code)) => format!(": {}", self.quoted(code)),
            ("", None) => String::new(),
            (message, _) => format!(": {}", self.quoted(message)),
        };
        let status = said.status.map(|status| format!(" ({status})")).unwrap_or_default();
        let message = format!("{}{status}{words}{}", self.what(class), self.next(class));
        Failure { class, message, status: said.status, delay: said.delay, fingerprint: 0 }
    }

    /// What happened, and whose doing it is.
    fn what(&self, class: Class) -> String {
        let (name, host) = (&self.name, self.host());
        match class {
            Class::Throttled => format!("{host} takes no more requests for now"),
            Class::Overloaded => format!("{host} has too much to do right now"),
            Class::Server => format!("{host} failed, which is its own fault"),
            Class::Timeout => format!("{host} gave up waiting"),
            Class::Quota => format!("{host} gives nothing more: quota or credit is used up"),
            Class::Key if self.key.is_some() => format!("{host} did not accept the key"),
            Class::Key => format!("{host} wants a key, and none was sent"),
            Class::NotFound => format!("{host} knows no model {:?}, or no such address", self.model),
            Class::TooLong => format!("the context is longer than {name} takes"),
            Class::NoTools => format!("{name} can't call tools"),
            Class::Refused => format!("{name} did not want to answer this"),
            _ => format!("{host} refused the request"),
        }
    }

    /// What to do about it.
    fn next(&self, class: Class) -> String {
        let SetBy { name, base_url, key } = &self.set_by;
        match class {
            Class::Quota => {
                "; add credit there, or choose another model with --model or model.fallback".to_owned()
            }
            Class::Key => match &self.key {
                Some(Key { variable, .. }) => format!("; the key is the value of {variable}, named by {key}"),
                None => format!("; put it into the variable that model.api_key_env names ({key})"),
            },
            Class::NotFound => format!("; the model is set by {name}, the address by {base_url}"),
            Class::TooLong => {
                "; start a new session, or choose a model with a larger context window".to_owned()
            }
            Class::NoTools => "; it is asked without them from here on".to_owned(),
            Class::Refused => "; say it differently, or choose another model".to_owned(),
            Class::Invalid => format!("; the model is set by {name}, the address by {base_url}"),
            _ => String::new(),
        }
    }

    /// What answered is no model server.
    pub(crate) fn no_model_server(&self, what: &str) -> Failure {
        let (host, by) = (self.host(), &self.set_by.base_url);
        Failure::new(
            Class::NotAModel,
            format!("{host} is no model server: {what}; its address is set by {by}"),
        )
    }

    /// Nothing came in time.
    pub(crate) fn late(&self, what: &str, within: Duration, key: &str) -> Failure {
        let (host, seconds) = (self.host(), within.as_secs_f64());
        Failure::new(Class::Timeout, format!("no {what} from {host} within {seconds} s (model.{key})"))
    }

    /// The answer broke off, or can't be read.
    pub(crate) fn broken(&self, what: &str) -> Failure {
        Failure::new(Class::Broken, format!("the answer of {} broke off: {}", self.host(), self.quoted(what)))
    }

    /// A frame that is no part of an answer.
    pub(crate) fn fault(&self, fault: &Fault) -> Failure {
        match fault {
            Fault::Unreadable(frame) => self.broken(&format!("a frame can't be read: {frame}")),
            Fault::Said(said) => self.said(said),
        }
    }

    /// Why a request was not answered at all.
    fn unsent(&self, trouble: &Trouble, is_known: bool) -> Failure {
        let (host, by) = (self.host(), &self.set_by.base_url);
        match trouble {
            Trouble::Refused if self.is_local => {
                let start = self.start.as_ref().map(|start| format!(": {start}")).unwrap_or_default();
                let message =
                    format!("nothing listens at {host}, which is set by {by}; start the server{start}");
                Failure::new(Class::Connection, message)
            }
            Trouble::NoSuchHost(_) | Trouble::Unreachable(_) | Trouble::Refused if is_known => {
                Failure::new(Class::Offline, format!("there is no way to {host} right now: {trouble}"))
            }
            Trouble::NoSuchHost(_) | Trouble::Unreachable(_) | Trouble::Refused => Failure::new(
                Class::Unreachable,
                format!(
                    "there is no way to {host}, which never answered before: {trouble}; its address is set by {by}"
                ),
            ),
            Trouble::ConnectTimeout => self.late("connection", self.clocks.connect, "connect_timeout_s"),
            Trouble::Certificate(_) => Failure::new(
                Class::Certificate,
                format!("{host}: {trouble}; check its address ({by}), this machine's clock and its proxy"),
            ),
            Trouble::BadUrl(_) => Failure::new(Class::Unreachable, format!("{trouble}; it is set by {by}")),
            Trouble::Broken(_) => Failure::new(
                Class::Connection,
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
