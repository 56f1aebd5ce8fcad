use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use longhaul_model::transport::{ByteStream, HttpRequest, HttpResponse, Transport, TransportError};

use super::{End, Piece, Reply, Script, Seen};

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;

/// A transport without a network: whatever the address is, the script answers. Its pauses are tokio's, so that a test can stop
/// the clock.
pub struct Memory {
    script: Script,
    open: Arc<()>,
}

impl Memory {
    /// A transport to this script.
    pub fn new(script: Script) -> Self {
        Self { script, open: Arc::default() }
    }

    /// What was asked so far, also where no answer came.
    pub fn requests(&self) -> Vec<Seen> {
        self.script.requests()
    }

    /// How many answers somebody still holds.
    pub fn open(&self) -> usize {
        Arc::strong_count(&self.open) - 1
    }
}

#[async_trait]
impl Transport for Memory {
    async fn send(&self, outgoing: HttpRequest) -> Result<HttpResponse, TransportError> {
        let within = outgoing.connect_within;
        let reply = self.script.reply(seen(outgoing));
        tokio::time::sleep(reply.connecting.min(within)).await;
        if reply.connecting > within {
            return Err(TransportError::ConnectTimeout);
        }
        tokio::time::sleep(reply.delay).await;
        if let Some(trouble) = reply.trouble {
            return Err(trouble);
        }
        let Reply { status, headers, pieces, end, .. } = reply;
        let headers = headers.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect();
        let body = Body { pieces: pieces.into_iter(), coming: None, end, _open: Arc::clone(&self.open) };
        Ok(HttpResponse { status, headers, body: Box::new(body) })
    }
}

struct Body {
    pieces: std::vec::IntoIter<Piece>,
    /// What is on its way: a caller that stops waiting and asks again finds the same pause, not a new one.
    coming: Option<Pin<Box<dyn Future<Output = Vec<u8>> + Send>>>,
    end: End,
    _open: Arc<()>,
}

#[async_trait]
impl ByteStream for Body {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, TransportError> {
        loop {
            if self.coming.is_none() {
                let Some(piece) = self.pieces.next() else { break };
                self.coming = Some(Box::pin(piece.come()));
            }
            let bytes = self.coming.as_mut().expect("it was put there above").await;
            self.coming = None;
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
        match self.end {
            End::Close => Ok(None),
            End::Cut => Err(TransportError::Broken("it was closed in the middle of an answer".to_owned())),
            End::Reset => Err(TransportError::Broken("it was reset".to_owned())),
            End::Stall => std::future::pending().await,
        }
    }
}

fn seen(outgoing: HttpRequest) -> Seen {
    let after_scheme = outgoing.url.split_once("://").map_or(outgoing.url.as_str(), |(_, rest)| rest);
    let path = after_scheme.find('/').map_or("/", |slash| &after_scheme[slash..]).to_owned();
    let method = if outgoing.body.is_some() { "POST" } else { "GET" }.to_owned();
    let mut headers: Vec<_> =
        outgoing.headers.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect();
    headers.push(("host".to_owned(), after_scheme.split('/').next().unwrap_or_default().to_owned()));
    Seen { method, path, headers, body: outgoing.body.unwrap_or_default() }
}
