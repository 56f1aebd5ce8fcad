//! An answer as it comes: bytes, frames, parts, and the clock for silence.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::{Instant, timeout_at};

use crate::codec::{Decoder, Frames, Framing};
use crate::target::{Target, first_line};
use crate::transport::{Bytes, Incoming};
use crate::{Answer, Failure, Part, RateLimits};

/// An answer that came in one piece is read up to this size, to say what it is.
const LONGEST_PAGE: usize = 64 << 10;

/// An answer on its way.
pub(crate) struct Listening {
    target: Arc<Target>,
    body: Box<dyn Bytes>,
    frames: Frames,
    framing: Framing,
    decoder: Box<dyn Decoder>,
    parts: VecDeque<Part>,
    /// What went wrong after these parts.
    failure: Option<Failure>,
    /// Nothing of the body has come yet.
    is_new: bool,
    /// When the next byte has to be there.
    due: Instant,
}

impl Listening {
    pub(crate) fn new(target: Arc<Target>, incoming: Incoming, first_byte_by: Instant) -> Self {
        let media = incoming.header("content-type").unwrap_or_default().to_ascii_lowercase();
        let framing = if media.contains("ndjson") || media.contains("jsonl") {
            Framing::Lines
        } else {
            Framing::Events
        };
        let limits: RateLimits =
            incoming.headers.iter().filter(|(name, _)| name.contains("ratelimit-")).cloned().collect();
        let limits = (!limits.is_empty()).then_some(Part::Limits(limits));
        Self {
            frames: Frames::new(framing),
            framing,
            decoder: target.protocol.decoder(&target.quirks),
            parts: limits.into_iter().collect(),
            failure: None,
            body: incoming.body,
            is_new: true,
            due: first_byte_by,
            target,
        }
    }

    /// Reads on. Any byte counts as a sign of life.
    async fn read(&mut self) -> Result<(), Failure> {
        let target = &self.target;
        let bytes = match timeout_at(self.due, self.body.next()).await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None)) if self.is_new => return Err(target.broken("it ended without a single byte")),
            Ok(Ok(None)) => return Err(target.broken("it ended without its end mark")),
            Ok(Err(trouble)) => return Err(target.broken(&trouble.to_string())),
            Err(_) if self.is_new => {
                return Err(target.late("first byte", target.clocks.first_byte, "first_byte_timeout_s"));
            }
            Err(_) => return Err(target.late("further byte", target.clocks.silence, "silence_timeout_s")),
        };
        if bytes.is_empty() {
            return Ok(());
        }
        self.due = Instant::now() + target.clocks.silence;
        if std::mem::take(&mut self.is_new) && self.is_no_stream(&bytes) {
            return Err(self.whole(bytes).await);
        }
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
    async fn whole(&mut self, mut page: Vec<u8>) -> Failure {
        while page.len() < LONGEST_PAGE {
            match timeout_at(self.due, self.body.next()).await {
                Ok(Ok(Some(bytes))) => page.extend(bytes),
                _ => break,
            }
        }
        let (target, first) = (&self.target, first_line(&page));
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

    /// A signature says whose it is, so that it never goes back to anybody else.
    fn sign(&self, part: Part) -> Part {
        let signed = |signature: Option<String>| {
            signature.map(|signature| format!("{} {signature}", self.target.name))
        };
        match part {
            Part::ReasoningStop { signature } => Part::ReasoningStop { signature: signed(signature) },
            Part::CallStop { signature } => Part::CallStop { signature: signed(signature) },
            part => part,
        }
    }
}

#[async_trait]
impl Answer for Listening {
    async fn next(&mut self) -> Result<Part, Failure> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Ok(self.sign(part));
            }
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            let decoded = match self.frames.next() {
                // What came before a fault in the same frame still came.
                Ok(Some(frame)) => self.decoder.decode(frame, &mut self.parts),
                Ok(None) => {
                    self.read().await?;
                    Ok(())
                }
                Err(fault) => Err(fault),
            };
            self.failure = decoded.err().map(|fault| self.target.fault(&fault));
        }
    }
}
