use std::collections::HashMap;
use std::error::Error as _;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Client, Response, redirect};

use super::{ByteStream, HttpRequest, HttpResponse, Transport, TransportError};

/// How long the pool keeps an unused connection.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// HTTP over TCP and TLS.
///
/// Certificates are checked as the machine does it, which takes reading its store: a server that is spoken to in plain text
/// never waits for that.
#[derive(Default)]
pub struct HttpTransport {
    /// By what they are for, and how long connecting may take: a client has one clock for all that it is asked.
    clients: Mutex<HashMap<(Kind, Duration), Client>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Near,
    Plain,
    Secure,
}

impl HttpTransport {
    fn client(&self, url: &reqwest::Url, connect_within: Duration) -> Result<Client, TransportError> {
        let kind = match (url.scheme(), leads_here(url)) {
            ("http", true) => Kind::Near,
            ("http", false) => Kind::Plain,
            ("https", _) => Kind::Secure,
            _ => return Err(TransportError::BadUrl(url.to_string())),
        };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&(kind, connect_within)) {
            return Ok(client.clone());
        }
        let builder = match kind {
            // A proxy of the machine leads away from it, not back to it.
            Kind::Near => Client::builder().no_proxy().tls_certs_only([]),
            Kind::Plain => Client::builder().tls_certs_only([]),
            Kind::Secure => Client::builder(),
        };
        // An error means that a provider is installed already: every caller installs the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = builder
            .redirect(redirect::Policy::none())
            .connect_timeout(connect_within)
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .tcp_nodelay(true)
            .http1_only()
            .user_agent(concat!("longhaul/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| TransportError::Certificate(in_full(&error)))?;
        clients.insert((kind, connect_within), client.clone());
        Ok(client)
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&self, outgoing: HttpRequest) -> Result<HttpResponse, TransportError> {
        let url: reqwest::Url =
            outgoing.url.parse().map_err(|_| TransportError::BadUrl(outgoing.url.clone()))?;
        let client = self.client(&url, outgoing.connect_within)?;
        let mut request = match outgoing.body {
            Some(body) => client.post(url).body(body),
            None => client.get(url),
        };
        for (name, value) in &outgoing.headers {
            request = request.header(name, value);
        }
        let response = request.send().await.map_err(|error| trouble(&error))?;
        let headers = response.headers().iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        Ok(HttpResponse {
            status: response.status().as_u16(),
            headers: headers.collect(),
            body: Box::new(Body(response)),
        })
    }
}

struct Body(Response);

#[async_trait]
impl ByteStream for Body {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, TransportError> {
        match self.0.chunk().await {
            Ok(chunk) => Ok(chunk.map(|chunk| chunk.to_vec())),
            Err(error) => Err(TransportError::Broken(in_full(&error))),
        }
    }
}

/// Whether an address leads to this machine.
pub fn is_loopback(url: &str) -> bool {
    url.parse::<reqwest::Url>().is_ok_and(|url| leads_here(&url))
}

fn leads_here(url: &reqwest::Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// What kept a request from being answered.
fn trouble(error: &reqwest::Error) -> TransportError {
    let said = in_full(error);
    if error.is_connect() && error.is_timeout() {
        return TransportError::ConnectTimeout;
    }
    let mut cause = error.source();
    while let Some(current) = cause {
        if current.is::<rustls::Error>() {
            return TransportError::Certificate(current.to_string());
        }
        if let Some(error) = current.downcast_ref::<io::Error>() {
            // TLS hides its own errors in one of these.
            if let Some(hidden) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                return TransportError::Certificate(hidden.to_string());
            }
            match error.kind() {
                io::ErrorKind::ConnectionRefused => return TransportError::Refused,
                io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                    return TransportError::Unreachable(error.to_string());
                }
                io::ErrorKind::NetworkDown | io::ErrorKind::AddrNotAvailable => {
                    return TransportError::Unreachable(error.to_string());
                }
                _ => {}
            }
        }
        // The connector has no type for this, only words.
        if current.to_string().contains("dns error") {
            return TransportError::NoSuchHost(deepest(current));
        }
        cause = current.source();
    }
    TransportError::Broken(said)
}

fn deepest(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

/// An error with its causes, in one line, without the address that it was about: that may hold a key.
fn in_full(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(current) = cause {
        causes.push(current.to_string());
        cause = current.source();
    }
    causes.dedup();
    if causes.is_empty() { "no reason was given".to_owned() } else { causes.join(": ") }
}
