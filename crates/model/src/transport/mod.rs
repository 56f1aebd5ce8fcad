//! The interface to the network: a request goes out, a response head and a stream of bytes come back.
//!
//! A transport never retries and follows no redirect. Its only timeout is the connect timeout that the caller passes.

mod http;

use std::time::Duration;

use async_trait::async_trait;

pub use http::{HttpTransport, is_loopback};

#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends a request and returns once the head of the response has arrived. Dropping the response closes the
    /// connection.
    async fn send(&self, outgoing: HttpRequest) -> Result<HttpResponse, TransportError>;
}

/// A request. With a body it is a POST, without one a GET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    pub url: String,
    /// Names and values, without the headers that HTTP itself needs.
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    /// The connect timeout.
    pub connect_within: Duration,
}

/// A response whose body may still be arriving.
pub struct HttpResponse {
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    pub body: Box<dyn ByteStream>,
}

impl HttpResponse {
    /// The value of a header. `name` is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The bytes of a body as they arrive.
#[async_trait]
pub trait ByteStream: Send {
    /// The next bytes. `None` at the end of the body.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, TransportError>;
}

/// Why a request got no response, or only a part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// DNS does not know the name of the host.
    #[error("unknown host: {0}")]
    NoSuchHost(String),
    /// The network has no route to the host.
    #[error("host unreachable: {0}")]
    Unreachable(String),
    /// No server listens at the address.
    #[error("connection refused")]
    Refused,
    #[error("connection timed out")]
    ConnectTimeout,
    /// The host is not the one that it claims to be, or the machine can't verify it.
    #[error("invalid certificate: {0}")]
    Certificate(String),
    /// The URL is invalid.
    #[error("{0} is not a valid address: it must start with http:// or https://")]
    BadUrl(String),
    /// The connection broke before the end of the response.
    #[error("connection lost: {0}")]
    Broken(String),
}
