//! An answer as it comes: bytes, frames, parts, and the clock for silence.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, timeout_at};

use crate::classify::rate_limits;
use crate::codec::{Decoder, Frames, Framing};
use crate::role_check::RoleCheck;
use crate::target::{Endpoint, first_line};
use crate::transport::{ByteStream, HttpResponse};
use crate::{AnswerPart, AnswerStream, FailureClass, ModelFailure};

/// An answer that came in one piece is read up to this size, to say what it is.
const LONGEST_PAGE: usize = 64 << 10;
/// How long what follows the end mark is waited for.
const READ_OUT: Duration = Duration::from_secs(1);

/// An answer on its way.
pub(crate) struct RemoteAnswer {
    target: Arc<Endpoint>,
    /// Nothing more is read once the answer is over.
    body: Option<Box<dyn ByteStream>>,
    frames: Frames,
    framing: Framing,
    decoder: Box<dyn Decoder>,
    parts: VecDeque<AnswerPart>,
    /// What went wrong after these parts.
    failure: Option<ModelFailure>,
    /// Nothing of the body has come yet.
    is_new: bool,
    /// Nothing but blanks has come yet, so that it may be no stream at all.
    is_blank: bool,
    /// The server said that this model can't call tools.
    has_no_tools: Arc<AtomicBool>,
    roles: RoleCheck,
    /// When the next byte has to be there.
    due: Instant,
}

impl RemoteAnswer {
    pub(crate) fn new(
        target: Arc<Endpoint>,
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
            decoder: target.protocol.decoder(&target.quirks),
            parts: limits.into_iter().collect(),
            failure: None,
            body: Some(incoming.body),
            is_new: true,
            is_blank: true,
            has_no_tools,
            roles,
            due: first_byte_by,
            target,
        }
    }

    /// Reads on. Any byte counts as a sign of life.
    async fn read(&mut self) -> Result<(), ModelFailure> {
        let target = &self.target;
        let Some(body) = &mut self.body else { return Err(target.broken("it was over already")) };
        let bytes = match timeout_at(self.due, body.next()).await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None)) if self.is_new => return Err(target.broken("it ended without a single byte")),
            Ok(Ok(None)) => return Err(target.broken("it ended without its end mark")),
            Ok(Err(trouble)) => return Err(target.broken(&trouble.to_string())),
            Err(_) if self.is_new => {
                return Err(target.late("first byte", target.clocks.first_byte, "first_byte_timeout_s"));
            }
            Err(_) => return Err(target.late("further byte", target.clocks.idle, "silence_timeout_s")),
        };
        if bytes.is_empty() {
            return Ok(());
        }
        self.due = Instant::now() + target.clocks.idle;
        self.is_new = false;
        if self.is_blank && self.is_no_stream(&bytes) {
            return Err(self.whole(bytes).await);
        }
        self.is_blank = self.is_blank && bytes.trim_ascii_start().is_empty();
        self.frames.push(&bytes);
        Ok(())
    }

    /// Whether it begins like a page or a single object. No stream of events does.
    fn is_no_stream(&self, bytes: &[u8]) -> bool {
        match bytes.trim_ascii_start().first() {
            Some(b'<') => true,
            Some(b'{' | b'[') => self.framing == Framing::Events,
            _ => false,
        }
    }

    /// What came in one piece, where a stream was asked for.
    async fn whole(&mut self, mut page: Vec<u8>) -> ModelFailure {
        while page.len() < LONGEST_PAGE {
            let Some(body) = &mut self.body else { break };
            match timeout_at(self.due, body.next()).await {
                Ok(Ok(Some(bytes))) => page.extend(bytes),
                _ => break,
            }
        }
        let (target, first) = (&self.target, self.target.quoted(&first_line(&page)));
        if page.trim_ascii_start().starts_with(b"<") {
            return target
                .no_model_server(&format!("it answered with a web page that begins with {first:?}"));
        }
        match target.protocol.said(200, &page) {
            Some(said) => target.said(&crate::codec::Said { status: None, ..said }),
            None => target.no_model_server(&format!(
                "it answered in one piece, not with a stream; it begins with {first:?}"
            )),
        }
    }

    /// The connection can be used again once the last bytes are read, which may come a moment after the end mark.
    fn read_out(&mut self) {
        if let Some(mut body) = self.body.take() {
            tokio::spawn(tokio::time::timeout(READ_OUT, async move {
                while let Ok(Some(_)) = body.next().await {}
            }));
        }
    }

    /// A signature says whose it is, so that it never goes back to anybody else.
    fn sign(&self, part: AnswerPart) -> AnswerPart {
        let signed = |signature: Option<String>| {
            signature.map(|signature| format!("{} {signature}", self.target.name))
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
                    self.read_out();
                }
                return Ok(self.sign(part));
            }
            if let Some(failure) = self.failure.take() {
                if failure.class == FailureClass::NoTools {
                    self.has_no_tools.store(true, Ordering::SeqCst);
                }
                return Err(self.roles.refused(failure));
            }
            let decoded = match self.frames.next() {
                // What came before a fault in the same frame still came.
                Ok(Some(frame)) => self.decoder.decode(frame, &mut self.parts),
                Ok(None) => {
                    if let Err(failure) = self.read().await {
                        self.failure = Some(failure);
                        continue;
                    }
                    Ok(())
                }
                Err(fault) => Err(fault),
            };
            self.failure = decoded.err().map(|fault| self.target.fault(&fault));
        }
    }
}
