//! A model behind a network: one request, one answer, timeouts. It never retries. Only a request whose reasoning effort
//! is refused is sent again, without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::classify::rate_limits;
use crate::discovery::{DiscoveredCapabilities, ServerQuery, query_model};
use crate::endpoint::Endpoint;
use crate::known_hosts::KnownHosts;
use crate::learned_capabilities::{LearnedCapabilities, LearnedEntry, LearnedWindow, ServedModel};
use crate::limits::corrected_window;
use crate::retry_after::delay_from_headers;
use crate::role_order::{RoleCheck, RoleOrders};
use crate::stream_reader::RemoteAnswer;
use crate::transport::{HttpRequest, HttpResponse, Transport, TransportError};
use crate::{
    AnswerStream, CallPermit, Capabilities, ContextWindow, CorrectedLimits, FailureClass, Model,
    ModelFailure, Protocol, Providers, RefusedSize, Request, SearchSupport, WindowSource,
};

const MAX_ERROR_BYTES: usize = 64 << 10;
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Providers that search the web for their models.
const SEARCHING_PROVIDERS: [&str; 3] = ["anthropic", "openai", "gemini"];
/// The context windows that are assumed if nothing states one: for local servers and for hosted models.
const LOCAL_WINDOW: u64 = 8_192;
const HOSTED_WINDOW: u64 = 128_000;

/// After a discovery that took longer than `SLOW_DISCOVERY`, the next one waits for `DISCOVERY_PAUSE`.
const SLOW_DISCOVERY: Duration = Duration::from_millis(500);
const DISCOVERY_PAUSE: Duration = Duration::from_secs(30);

/// Cached capabilities and their expiry time. `None` means that they never expire.
struct CachedCapabilities {
    facts: Capabilities,
    until: Option<Instant>,
}

pub struct RemoteModel {
    endpoint: Arc<Endpoint>,
    transport: Arc<dyn Transport>,
    hosts: Arc<KnownHosts>,
    /// Final capabilities stay. Incomplete ones are looked up again after a while.
    facts: Mutex<Option<CachedCapabilities>>,
    /// The server reported that the model can't call tools.
    has_no_tools: Arc<AtomicBool>,
    roles: Arc<RoleOrders>,
    learned: Arc<LearnedCapabilities>,
    served: ServedModel,
}

impl RemoteModel {
    pub fn new(
        endpoint: Endpoint,
        transport: Arc<dyn Transport>,
        hosts: Arc<KnownHosts>,
        learned: Arc<LearnedCapabilities>,
    ) -> Self {
        let (facts, has_no_tools) = (Mutex::default(), Arc::default());
        let roles = Arc::new(RoleOrders::new(&endpoint, learned.clone()));
        let served = endpoint.served_model();
        Self { endpoint: Arc::new(endpoint), transport, hosts, facts, has_no_tools, roles, learned, served }
    }

    /// The capabilities, and whether they are final.
    async fn find_capabilities(&self) -> (Capabilities, bool) {
        let endpoint = &self.endpoint;
        let entry = endpoint.entry.as_ref();
        // The server of a hosted model in the catalogue is not asked.
        let asks = endpoint.window.is_none()
            && (endpoint.is_local || entry.is_none_or(|entry| entry.window.is_none()));
        let (reported, is_final) = if asks { self.discover().await } else { (None, true) };
        let reported_window = reported.as_ref().and_then(|reported| reported.window);
        let known = [
            (endpoint.window, WindowSource::Config),
            (reported_window, WindowSource::Server),
            (entry.and_then(|entry| entry.window), WindowSource::Catalogue),
        ];
        let found =
            known.into_iter().find_map(|(tokens, source)| Some(ContextWindow { tokens: tokens?, source }));
        let assumed = if endpoint.is_local {
            ContextWindow { tokens: LOCAL_WINDOW, source: WindowSource::LocalDefault }
        } else {
            ContextWindow { tokens: HOSTED_WINDOW, source: WindowSource::HostedDefault }
        };
        let tools = endpoint
            .tools
            .or(reported.and_then(|reported| reported.tools))
            .or(entry.map(|entry| entry.tools))
            .unwrap_or(true);
        let facts = Capabilities {
            window: Some(found.unwrap_or(assumed)),
            max_output: entry.and_then(|entry| entry.max_output),
            tools,
            prices: entry.and_then(|entry| entry.prices),
        };
        (facts, is_final)
    }

    /// What the server reports, and whether that is final.
    async fn discover(&self) -> (Option<DiscoveredCapabilities>, bool) {
        let endpoint = &self.endpoint;
        let server = ServerQuery {
            provider: &endpoint.provider,
            protocol: endpoint.protocol,
            base_url: &endpoint.base_url,
            key: endpoint.key.as_ref().map(|key| key.value.as_str()),
        };
        query_model(&*self.transport, &server, &endpoint.model).await
    }

    /// What the config, the server and the catalogue say, without the learned corrections.
    async fn declared_capabilities(&self) -> Capabilities {
        let mut known = self.facts.lock().await;
        match &*known {
            Some(found) if found.until.is_none_or(|until| Instant::now() < until) => found.facts.clone(),
            _ => {
                let began = Instant::now();
                let (facts, is_final) = self.find_capabilities().await;
                // An incomplete discovery is repeated: at once if it was quick, after a pause if it was slow enough
                // for the user to notice.
                let again =
                    if began.elapsed() < SLOW_DISCOVERY { began } else { Instant::now() + DISCOVERY_PAUSE };
                *known =
                    Some(CachedCapabilities { facts: facts.clone(), until: (!is_final).then_some(again) });
                facts
            }
        }
    }

    fn http_request(&self, body: Vec<u8>) -> HttpRequest {
        let endpoint = &self.endpoint;
        HttpRequest {
            url: format!(
                "{}{}",
                endpoint.base_url.trim_end_matches('/'),
                endpoint.protocol.path(&endpoint.model)
            ),
            headers: endpoint.protocol.headers(endpoint.key.as_ref().map(|key| key.value.as_str())),
            body: Some(body),
            connect_within: endpoint.clocks.connect,
        }
    }

    async fn send(&self, body: Vec<u8>, first_byte_by: Instant) -> Result<HttpResponse, ModelFailure> {
        let endpoint = &self.endpoint;
        match timeout_at(first_byte_by, self.transport.send(self.http_request(body))).await {
            Ok(Ok(incoming)) => {
                self.hosts.answered(&endpoint.host());
                Ok(incoming)
            }
            Ok(Err(trouble)) => Err(self.transport_failure(&trouble)),
            Err(_) => {
                let within = endpoint.clocks.first_byte;
                Err(endpoint.timeout("first byte", within, "first_byte_timeout_s"))
            }
        }
    }

    /// Reads a response with an error status.
    async fn read_failure(&self, mut incoming: HttpResponse) -> ModelFailure {
        let body = read_error_body(&mut incoming).await;
        let delay = delay_from_headers(&incoming.headers, jiff::Timestamp::now());
        let failure = self.endpoint.http_failure(incoming.status, incoming.header("location"), delay, &body);
        if failure.class == FailureClass::NoTools {
            self.has_no_tools.store(true, Ordering::SeqCst);
        }
        ModelFailure { limits: rate_limits(&incoming.headers), ..failure }
    }

    fn transport_failure(&self, trouble: &TransportError) -> ModelFailure {
        let endpoint = &self.endpoint;
        let is_known = self.hosts.knows(&endpoint.host());
        endpoint.transport_failure(trouble, is_known)
    }
}

#[async_trait]
impl Model for RemoteModel {
    fn name(&self) -> &str {
        &self.endpoint.name
    }

    fn search_support(&self) -> SearchSupport {
        let endpoint = &self.endpoint;
        let is_at_provider = || {
            let provider = Providers::built_in().get(&endpoint.provider);
            let provider = provider.filter(|provider| SEARCHING_PROVIDERS.contains(&provider.name.as_str()));
            provider.is_some_and(|provider| provider.base_url == endpoint.base_url.trim_end_matches('/'))
        };
        match endpoint.protocol {
            Protocol::OpenaiChat => SearchSupport::None,
            Protocol::OpenaiResponses | Protocol::Anthropic | Protocol::Gemini if is_at_provider() => {
                SearchSupport::Known
            }
            Protocol::OpenaiResponses | Protocol::Anthropic | Protocol::Gemini => SearchSupport::Possible,
        }
    }

    async fn capabilities(&self) -> Capabilities {
        let mut facts = self.declared_capabilities().await;
        let lesson = self.learned.get(&self.served);
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
            None => self
                .discover()
                .await
                .0
                .and_then(|reported| reported.window)
                .filter(|reported| *reported < now),
        };
        let tokens = corrected_window(now, stated, size)?;
        let declared = self.declared_capabilities().await.window?.tokens;
        let change = |lesson: &mut LearnedEntry| lesson.window = Some(LearnedWindow { declared, tokens });
        match stated {
            Some(_) => self.learned.learn(&self.served, change),
            None => {
                self.learned.learn_in_memory(&self.served, change);
            }
        }
        Some(CorrectedLimits { window: (now, tokens), answer: None })
    }

    async fn ask(
        &self,
        request: Request,
        _permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let endpoint = &self.endpoint;
        let first_byte_by = Instant::now() + endpoint.clocks.first_byte;
        let wanted = endpoint.sent_effort(request.purpose, self.learned.get(&self.served).effort);
        let mut effort = wanted;
        let (incoming, roles) = loop {
            let mut roles = RoleCheck::new(self.roles.clone(), endpoint.clone(), request.clone(), effort);
            let incoming = self.send(roles.body(), first_byte_by).await?;
            if (200..300).contains(&incoming.status) {
                break (incoming, roles);
            }
            let failure = self.read_failure(incoming).await;
            match effort.and_then(|effort| effort.after_refusal(&failure)) {
                // Sent again at once, in a form that the server may accept, or without the effort.
                Some(plainer) => effort = plainer,
                None => return Err(roles.refused(failure)),
            }
        };
        if let Some(refused) = wanted.filter(|_| effort != wanted) {
            self.learned.learn(&self.served, |lesson| lesson.effort = Some(refused.learned(effort)));
        }
        if let Some(encoding) = incoming.header("content-encoding").filter(|encoding| *encoding != "identity")
        {
            let what = format!(
                "it answers with the encoding {encoding}, which was not requested; check for a proxy"
            );
            return Err(endpoint.not_a_model_server(&endpoint.quote(&what)));
        }
        let has_no_tools = self.has_no_tools.clone();
        Ok(Box::new(RemoteAnswer::new(endpoint.clone(), incoming, first_byte_by, has_no_tools, roles)))
    }
}

async fn read_error_body(incoming: &mut HttpResponse) -> Vec<u8> {
    let until = Instant::now() + ERROR_BODY_TIMEOUT;
    let mut body = Vec::new();
    while body.len() < MAX_ERROR_BYTES {
        match timeout_at(until, incoming.body.next()).await {
            Ok(Ok(Some(bytes))) => body.extend(bytes),
            _ => break,
        }
    }
    body.truncate(MAX_ERROR_BYTES);
    body
}
