//! The seam to the network: one request goes out, a head and a stream of bytes come back.
//!
//! A transport knows nothing of models, tries again nothing, and follows no redirect. Its only clock is the one for
//! connecting, which it is told; every other clock is the caller's.

mod http;

use std::time::Duration;

use async_trait::async_trait;

pub use http::{HttpTransport, is_loopback};

/// Sends requests.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends one, and returns with the head of the answer. Dropping what comes back closes the connection.
    async fn send(&self, outgoing: HttpRequest) -> Result<HttpResponse, TransportError>;
}

/// A request. With a body it is a POST, without one a GET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// Where to.
    pub url: String,
    /// Names and values, besides those that HTTP itself needs.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Option<Vec<u8>>,
    /// How long connecting may take.
    pub connect_within: Duration,
}

/// An answer that has begun.
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// Names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The bytes, as they come.
    pub body: Box<dyn ByteStream>,
}

impl HttpResponse {
    /// The value of a header; its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Bytes as they come.
#[async_trait]
pub trait ByteStream: Send {
    /// The next ones; nothing at the end of them.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, TransportError>;
}

/// Why nothing came, or nothing more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The name of the host leads nowhere.
    #[error("the name of the host is not known: {0}")]
    NoSuchHost(String),
    /// The network does not lead there.
    #[error("the host can't be reached: {0}")]
    Unreachable(String),
    /// No server listens at the address.
    #[error("the connection was refused")]
    Refused,
    /// Connecting took too long.
    #[error("connecting took too long")]
    ConnectTimeout,
    /// The host is not who it says it is, or we can't tell.
    #[error("its certificate was not accepted: {0}")]
    Certificate(String),
    /// The address is none.
    #[error("{0} is not an address: it should begin with http:// or https://")]
    BadUrl(String),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
}
