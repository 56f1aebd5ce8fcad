//! Reads a streamed answer: bytes become frames, frames become parts. Enforces the idle timeout.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, timeout_at};

use crate::classify::rate_limits;
use crate::codec::{Decoder, Frames, Framing};
use crate::endpoint::{Endpoint, first_line};
use crate::role_order::RoleCheck;
use crate::transport::{ByteStream, HttpResponse};
use crate::{AnswerPart, AnswerStream, FailureClass, ModelFailure};

/// Up to this many bytes of a body that is no stream are read for the error message.
const MAX_WHOLE_BODY: usize = 64 << 10;
/// How long to wait for the end of the body after the end of the answer.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) struct RemoteAnswer {
    endpoint: Arc<Endpoint>,
    /// `None` once the answer has ended.
    body: Option<Box<dyn ByteStream>>,
    frames: Frames,
    framing: Framing,
    decoder: Box<dyn Decoder>,
    parts: VecDeque<AnswerPart>,
    /// Returned after the queued parts.
    failure: Option<ModelFailure>,
    is_new: bool,
    /// Only white space has come so far, so the body may be no stream at all.
    is_blank: bool,
    /// Set when the server reports that the model can't call tools.
    has_no_tools: Arc<AtomicBool>,
    roles: RoleCheck,
    next_byte_by: Instant,
}

impl RemoteAnswer {
    pub(crate) fn new(
        endpoint: Arc<Endpoint>,
        incoming: HttpResponse,
        first_byte_by: Instant,
        has_no_tools: Arc<AtomicBool>,
        roles: RoleCheck,
    ) -> Self {
        let media = incoming.header("content-type").unwrap_or_default().to_ascii_lowercase();
        let framing = if media.contains("ndjson") || media.contains("jsonl") {
            Framing::Lines
        } else {
            Framing::Events
        };
        let limits = rate_limits(&incoming.headers);
        let limits = (!limits.is_empty()).then_some(AnswerPart::Limits(limits));
        Self {
            frames: Frames::new(framing),
            framing,
            decoder: endpoint.protocol.decoder(&endpoint.quirks),
            parts: limits.into_iter().collect(),
            failure: None,
            body: Some(incoming.body),
            is_new: true,
            is_blank: true,
            has_no_tools,
            roles,
            next_byte_by: first_byte_by,
            endpoint,
        }
    }

    /// Reads more bytes. Any byte resets the idle timeout.
    async fn read_bytes(&mut self) -> Result<(), ModelFailure> {
        let endpoint = &self.endpoint;
        let Some(body) = &mut self.body else { return Err(endpoint.broken_stream("it had already ended")) };
        let bytes = match timeout_at(self.next_byte_by, body.next()).await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None)) if self.is_new => {
                return Err(endpoint.broken_stream("the connection closed without data"));
            }
            Ok(Ok(None)) => return Err(endpoint.broken_stream("the connection closed before the end")),
            Ok(Err(trouble)) => return Err(endpoint.broken_stream(&trouble.to_string())),
            Err(_) if self.is_new => {
                return Err(endpoint.timeout(
                    "first byte",
                    endpoint.clocks.first_byte,
                    "first_byte_timeout_s",
                ));
            }
            Err(_) => {
                return Err(endpoint.timeout("further byte", endpoint.clocks.idle, "silence_timeout_s"));
            }
        };
        if bytes.is_empty() {
            return Ok(());
        }
        self.next_byte_by = Instant::now() + endpoint.clocks.idle;
        self.is_new = false;
        if self.is_blank && self.is_not_a_stream(&bytes) {
            return Err(self.not_a_stream_failure(bytes).await);
        }
        self.is_blank = self.is_blank && bytes.trim_ascii_start().is_empty();
        self.frames.push(&bytes);
        Ok(())
    }

    /// Whether the body begins like a web page or a single JSON value.
    fn is_not_a_stream(&self, bytes: &[u8]) -> bool {
        match bytes.trim_ascii_start().first() {
            Some(b'<') => true,
            Some(b'{' | b'[') => self.framing == Framing::Events,
            _ => false,
        }
    }

    /// The failure for a body that is no stream.
    async fn not_a_stream_failure(&mut self, mut page: Vec<u8>) -> ModelFailure {
        while page.len() < MAX_WHOLE_BODY {
            let Some(body) = &mut self.body else { break };
            match timeout_at(self.next_byte_by, body.next()).await {
                Ok(Ok(Some(bytes))) => page.extend(bytes),
                _ => break,
            }
        }
        let (endpoint, first) = (&self.endpoint, self.endpoint.quote(&first_line(&page)));
        if page.trim_ascii_start().starts_with(b"<") {
            return endpoint
                .not_a_model_server(&format!("it answered with a web page that starts with {first:?}"));
        }
        match endpoint.protocol.parse_error(200, &page) {
            Some(error) => endpoint.provider_failure(&crate::codec::ProviderError { status: None, ..error }),
            None => endpoint.not_a_model_server(&format!(
                "it did not answer with a stream; the answer starts with {first:?}"
            )),
        }
    }

    /// Reads the rest of the body, so that the connection can be reused.
    fn drain_body(&mut self) {
        if let Some(mut body) = self.body.take() {
            tokio::spawn(tokio::time::timeout(DRAIN_TIMEOUT, async move {
                while let Ok(Some(_)) = body.next().await {}
            }));
        }
    }

    /// Prefixes signatures with the model's name, so that they are never sent to another model.
    fn with_author(&self, part: AnswerPart) -> AnswerPart {
        let signed = |signature: Option<String>| {
            signature.map(|signature| format!("{} {signature}", self.endpoint.name))
        };
        match part {
            AnswerPart::ReasoningStop { signature } => {
                AnswerPart::ReasoningStop { signature: signed(signature) }
            }
            AnswerPart::CallStop { signature } => AnswerPart::CallStop { signature: signed(signature) },
            part => part,
        }
    }
}

#[async_trait]
impl AnswerStream for RemoteAnswer {
    async fn next(&mut self) -> Result<AnswerPart, ModelFailure> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                if !matches!(part, AnswerPart::Limits(_) | AnswerPart::Usage(_)) {
                    self.roles.accepted();
                }
                if matches!(part, AnswerPart::End(_)) {
                    self.drain_body();
                }
                return Ok(self.with_author(part));
            }
            if let Some(failure) = self.failure.take() {
                if failure.class == FailureClass::NoTools {
                    self.has_no_tools.store(true, Ordering::SeqCst);
                }
                return Err(self.roles.refused(failure));
            }
            let decoded = match self.frames.next() {
                // Parts that precede a fault in the same frame still count.
                Ok(Some(frame)) => self.decoder.decode(frame, &mut self.parts),
                Ok(None) => {
                    if let Err(failure) = self.read_bytes().await {
                        self.failure = Some(failure);
                        continue;
                    }
                    Ok(())
                }
                Err(fault) => Err(fault),
            };
            self.failure = decoded.err().map(|fault| self.endpoint.frame_failure(&fault));
        }
    }
}
