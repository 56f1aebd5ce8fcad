//! A model behind a wire: one request, one answer, our clocks. Whether to try again is decided elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::classify::{rate_limits, server_delay};
use crate::discovery::{DiscoveredCapabilities, ServerQuery, ask_about};
use crate::hosts::KnownHosts;
use crate::learned::{LearnedCapabilities, LearnedWindow, Lesson, ServedModel};
use crate::limits::corrected_window;
use crate::listening::RemoteAnswer;
use crate::role_check::{RoleCheck, RoleOrders};
use crate::target::Endpoint;
use crate::transport::{HttpRequest, HttpResponse, Transport, TransportError};
use crate::{
    AnswerStream, Capabilities, ContextWindow, CorrectedLimits, FailureClass, Model, ModelFailure,
    RefusedSize, Request, WindowSource,
};

/// So much of an error is read, and for so long.
const LONGEST_ERROR: usize = 64 << 10;
const ERROR_WITHIN: Duration = Duration::from_secs(10);
/// What a context has at least on a server of this machine, and what it has with most models elsewhere.
const LOCAL_WINDOW: u64 = 8_192;
const HOSTED_WINDOW: u64 = 128_000;

/// Finding out about a model that takes longer than this is not done again for a while.
const SLOW: Duration = Duration::from_millis(500);
const SPARED: Duration = Duration::from_secs(30);

/// What was found out, and until when that counts, if not for good.
struct CachedCapabilities {
    facts: Capabilities,
    until: Option<Instant>,
}

/// A model behind a wire.
pub struct RemoteModel {
    target: Arc<Endpoint>,
    transport: Arc<dyn Transport>,
    hosts: Arc<KnownHosts>,
    /// What was found out; what could not be asked is asked again.
    facts: Mutex<Option<CachedCapabilities>>,
    /// The server said that this model can't call tools.
    has_no_tools: Arc<AtomicBool>,
    roles: Arc<RoleOrders>,
    learned: Arc<LearnedCapabilities>,
    served: ServedModel,
}

impl RemoteModel {
    /// The model at this target, reached by this transport.
    pub fn new(
        target: Endpoint,
        transport: Arc<dyn Transport>,
        hosts: Arc<KnownHosts>,
        learned: Arc<LearnedCapabilities>,
    ) -> Self {
        let (facts, has_no_tools) = (Mutex::default(), Arc::default());
        let roles = Arc::new(RoleOrders::new(&target, learned.clone()));
        let served = target.served_model();
        Self { target: Arc::new(target), transport, hosts, facts, has_no_tools, roles, learned, served }
    }

    /// What is known, and whether that is all that can be.
    async fn find_out(&self) -> (Capabilities, bool) {
        let target = &self.target;
        let entry = target.entry.as_ref();
        // A provider that is in the catalogue is not asked what is known.
        let asks =
            target.window.is_none() && (target.is_local || entry.is_none_or(|entry| entry.window.is_none()));
        let (said, is_all) = if asks { self.ask_server().await } else { (None, true) };
        let said_window = said.as_ref().and_then(|said| said.window);
        let known = [
            (target.window, WindowSource::Config),
            (said_window, WindowSource::Server),
            (entry.and_then(|entry| entry.window), WindowSource::Catalogue),
        ];
        let found =
            known.into_iter().find_map(|(tokens, source)| Some(ContextWindow { tokens: tokens?, source }));
        let assumed = if target.is_local {
            ContextWindow { tokens: LOCAL_WINDOW, source: WindowSource::LocalDefault }
        } else {
            ContextWindow { tokens: HOSTED_WINDOW, source: WindowSource::HostedDefault }
        };
        let tools = target
            .tools
            .or(said.and_then(|said| said.tools))
            .or(entry.map(|entry| entry.tools))
            .unwrap_or(true);
        let facts = Capabilities {
            window: Some(found.unwrap_or(assumed)),
            max_output: entry.and_then(|entry| entry.max_output),
            tools,
            prices: entry.and_then(|entry| entry.prices),
        };
        (facts, is_all)
    }

    /// What the server says about the model, and whether that is all that it says.
    async fn ask_server(&self) -> (Option<DiscoveredCapabilities>, bool) {
        let target = &self.target;
        let server = ServerQuery {
            provider: &target.provider,
            protocol: target.protocol,
            base_url: &target.base_url,
            key: target.key.as_ref().map(|key| key.value.as_str()),
        };
        ask_about(&*self.transport, &server, &target.model).await
    }

    /// What config, server and catalogue say, whatever was learned since.
    async fn declared_facts(&self) -> Capabilities {
        let mut known = self.facts.lock().await;
        match &*known {
            Some(found) if found.until.is_none_or(|until| Instant::now() < until) => found.facts.clone(),
            _ => {
                let began = Instant::now();
                let (facts, is_all) = self.find_out().await;
                // Whoever could not be asked is asked again: at once, unless that took so long that it would be felt.
                let again = if began.elapsed() < SLOW { began } else { Instant::now() + SPARED };
                *known = Some(CachedCapabilities { facts: facts.clone(), until: (!is_all).then_some(again) });
                facts
            }
        }
    }

    fn outgoing(&self, body: Vec<u8>) -> HttpRequest {
        let target = &self.target;
        HttpRequest {
            url: format!("{}{}", target.base_url.trim_end_matches('/'), target.protocol.path(&target.model)),
            headers: target.protocol.headers(target.key.as_ref().map(|key| key.value.as_str())),
            body: Some(body),
            connect_within: target.clocks.connect,
        }
    }

    /// An answer with a status that is none of success.
    async fn refusal(&self, mut incoming: HttpResponse) -> ModelFailure {
        let body = error_body(&mut incoming).await;
        let delay = server_delay(&incoming.headers, jiff::Timestamp::now());
        let failure = self.target.refused(incoming.status, incoming.header("location"), delay, &body);
        if failure.class == FailureClass::NoTools {
            self.has_no_tools.store(true, Ordering::SeqCst);
        }
        ModelFailure { limits: rate_limits(&incoming.headers), ..failure }
    }

    fn unsent(&self, trouble: &TransportError) -> ModelFailure {
        let target = &self.target;
        let is_known = self.hosts.knows(&target.host());
        target.unsent(trouble, is_known)
    }
}

#[async_trait]
impl Model for RemoteModel {
    fn name(&self) -> &str {
        &self.target.name
    }

    async fn capabilities(&self) -> Capabilities {
        let mut facts = self.declared_facts().await;
        let lesson = self.learned.about(&self.served);
        let declared = facts.window.map(|window| window.tokens);
        if let Some(learned) = lesson.window.filter(|learned| declared == Some(learned.declared)) {
            facts.window = Some(ContextWindow { tokens: learned.tokens, source: WindowSource::Refusal });
        }
        facts.max_output = facts.max_output.into_iter().chain(lesson.max_output).min();
        Capabilities { tools: facts.tools && !self.has_no_tools.load(Ordering::SeqCst), ..facts }
    }

    async fn correct_limits(&self, failure: &ModelFailure, size: RefusedSize) -> Option<CorrectedLimits> {
        let now = self.capabilities().await.window?.tokens;
        if let Some(most) = failure.stated.answer.filter(|most| *most < size.answer) {
            self.learned.learn(&self.served, |lesson| lesson.max_output = Some(most));
            return Some(CorrectedLimits { window: (now, now), answer: Some(most) });
        }
        if failure.class != FailureClass::TooLong {
            return None;
        }
        let stated = match failure.stated.window {
            Some(stated) => Some(stated),
            None => self.ask_server().await.0.and_then(|said| said.window).filter(|said| *said < now),
        };
        let tokens = corrected_window(now, stated, size)?;
        let declared = self.declared_facts().await.window?.tokens;
        let change = |lesson: &mut Lesson| lesson.window = Some(LearnedWindow { declared, tokens });
        match stated {
            Some(_) => self.learned.learn(&self.served, change),
            None => {
                self.learned.suppose(&self.served, change);
            }
        }
        Some(CorrectedLimits { window: (now, tokens), answer: None })
    }

    async fn ask(&self, request: Request) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let target = &self.target;
        let first_byte_by = Instant::now() + target.clocks.first_byte;
        let mut roles = RoleCheck::new(self.roles.clone(), target.clone(), request);
        let sent = timeout_at(first_byte_by, self.transport.send(self.outgoing(roles.body()))).await;
        let incoming = match sent {
            Ok(Ok(incoming)) => incoming,
            Ok(Err(trouble)) => return Err(self.unsent(&trouble)),
            Err(_) => {
                return Err(target.late("first byte", target.clocks.first_byte, "first_byte_timeout_s"));
            }
        };
        self.hosts.answered(&target.host());
        if !(200..300).contains(&incoming.status) {
            return Err(roles.refused(self.refusal(incoming).await));
        }
        if let Some(encoding) = incoming.header("content-encoding").filter(|encoding| *encoding != "identity")
        {
            let what = format!("it answers as {encoding}, which nobody asked for; a proxy may do that");
            return Err(target.no_model_server(&target.quoted(&what)));
        }
        let has_no_tools = self.has_no_tools.clone();
        Ok(Box::new(RemoteAnswer::new(target.clone(), incoming, first_byte_by, has_no_tools, roles)))
    }
}

async fn error_body(incoming: &mut HttpResponse) -> Vec<u8> {
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
