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
/// TLS uses the machine's certificate store. Plain HTTP has a client of its own, so it never waits until the store is
/// read.
#[derive(Default)]
pub struct HttpTransport {
    /// One client for each kind of URL and each connect timeout, because a client has a single connect timeout for
    /// all requests.
    clients: Mutex<HashMap<(ClientKind, Duration), Client>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ClientKind {
    Loopback,
    Plain,
    Secure,
}

impl HttpTransport {
    fn client(&self, url: &reqwest::Url, connect_within: Duration) -> Result<Client, TransportError> {
        let kind = match (url.scheme(), is_loopback_url(url)) {
            ("http", true) => ClientKind::Loopback,
            ("http", false) => ClientKind::Plain,
            ("https", _) => ClientKind::Secure,
            _ => return Err(TransportError::BadUrl(url.to_string())),
        };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&(kind, connect_within)) {
            return Ok(client.clone());
        }
        let builder = match kind {
            // A proxy can't reach this machine's loopback address.
            ClientKind::Loopback => Client::builder().no_proxy().tls_certs_only([]),
            ClientKind::Plain => Client::builder().tls_certs_only([]),
            ClientKind::Secure => Client::builder(),
        };
        // An error means that a crypto provider is installed already. Every caller installs the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = builder
            .redirect(redirect::Policy::none())
            .connect_timeout(connect_within)
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .tcp_nodelay(true)
            .http1_only()
            .user_agent(concat!("longhaul/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| TransportError::Certificate(error_chain(&error)))?;
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
        let response = request.send().await.map_err(|error| transport_error(&error))?;
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
            Err(error) => Err(TransportError::Broken(error_chain(&error))),
        }
    }
}

/// Whether a URL points to this machine.
pub fn is_loopback(url: &str) -> bool {
    url.parse::<reqwest::Url>().is_ok_and(|url| is_loopback_url(&url))
}

fn is_loopback_url(url: &reqwest::Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Why a request got no response.
fn transport_error(error: &reqwest::Error) -> TransportError {
    let causes = error_chain(error);
    if error.is_connect() && error.is_timeout() {
        return TransportError::ConnectTimeout;
    }
    let mut cause = error.source();
    while let Some(current) = cause {
        if current.is::<rustls::Error>() {
            return TransportError::Certificate(current.to_string());
        }
        if let Some(error) = current.downcast_ref::<io::Error>() {
            // An I/O error may wrap the error of TLS.
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
        // The connector has no type for this error, only a text.
        if current.to_string().contains("dns error") {
            return TransportError::NoSuchHost(root_cause(current));
        }
        cause = current.source();
    }
    TransportError::Broken(causes)
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

/// The causes of an error in one line. Leaves out the URL, which may contain a key.
fn error_chain(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(current) = cause {
        causes.push(current.to_string());
        cause = current.source();
    }
    causes.dedup();
    if causes.is_empty() { "unknown reason".to_owned() } else { causes.join(": ") }
}
