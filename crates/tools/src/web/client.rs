//! Requests and redirects.

use std::collections::HashMap;
use std::error::Error as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Method, RequestBuilder, Response, Url, redirect};

use super::WebError;
use super::body::{BoundedBody, ReadBody};
use super::guard::{GuardedResolver, NetworkGuard, Route};

const USER_AGENT: &str = concat!("longhaul/", env!("CARGO_PKG_VERSION"));
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Bounds of one request with all its redirects.
#[derive(Debug, Clone, Copy)]
pub struct WebLimits {
    pub connect: Duration,
    /// From the first request to the last byte.
    pub total: Duration,
    /// Of a body, decompressed.
    pub bytes: usize,
    pub redirects: usize,
}

impl Default for WebLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            total: Duration::from_secs(30),
            bytes: 8 << 20,
            redirects: 5,
        }
    }
}

/// An HTTP client that reaches only what its guard allows. Cheap to clone.
#[derive(Clone)]
pub struct GuardedClient {
    guard: NetworkGuard,
    limits: WebLimits,
    clients: Arc<Mutex<HashMap<(Route, Security), Client>>>,
}

/// Plain HTTP has clients of its own, which never wait until the machine's certificates are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Security {
    Plain,
    Tls,
}

/// An answer that was read whole, or up to the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebResponse {
    /// Where it came from, after all redirects.
    pub url: Url,
    pub status: u16,
    /// As the server wrote it; empty if it said nothing.
    pub content_type: String,
    pub body: Vec<u8>,
    /// Whether there was more than the limit.
    pub is_cut: bool,
}

impl GuardedClient {
    pub fn new(guard: NetworkGuard, limits: WebLimits) -> Self {
        Self { guard, limits, clients: Arc::default() }
    }

    pub fn guard(&self) -> &NetworkGuard {
        &self.guard
    }

    /// A request to this URL, which is checked first. The HTTP client follows no redirect; check each new address with this, too.
    pub fn request(&self, method: Method, url: &str) -> Result<RequestBuilder, WebError> {
        self.request_checked(method, self.guard.check_url(url)?)
    }

    /// Sends a request that [`Self::request`] made, and reads its answer. Follows no redirect.
    pub async fn send(&self, request: RequestBuilder) -> Result<WebResponse, WebError> {
        let request = request.header(ACCEPT_ENCODING, "gzip");
        let (client, request) = request.build_split();
        let request = request.map_err(|error| WebError::Setup(error.to_string()))?;
        let url = request.url().clone();
        let answer = async {
            let response = client.execute(request).await.map_err(|error| web_error(&url, &error))?;
            self.read(response).await
        };
        self.within_limit(&url, answer).await
    }

    /// Gets a page. Follows redirects as far as the limits, the guard and `may_follow` allow: `may_follow` decides about each other host.
    pub async fn get(
        &self,
        url: &str,
        accept: &str,
        may_follow: impl Fn(&Url) -> bool,
    ) -> Result<WebResponse, WebError> {
        let first = self.guard.check_url(url)?;
        let following = async {
            let mut url = first.clone();
            for _ in 0..=self.limits.redirects {
                let request = self.request_checked(Method::GET, url.clone())?;
                let request = request.header(ACCEPT, accept).header(ACCEPT_ENCODING, "gzip");
                let response = request.send().await.map_err(|error| web_error(&url, &error))?;
                let Some(next) = redirect_target(&response)? else { return self.read(response).await };
                self.check_redirect(&url, &next, &may_follow)?;
                url = next;
            }
            Err(WebError::TooManyRedirects { most: self.limits.redirects, url: url.to_string() })
        };
        self.within_limit(&first, following).await
    }

    fn check_redirect(
        &self,
        from: &Url,
        to: &Url,
        may_follow: impl Fn(&Url) -> bool,
    ) -> Result<(), WebError> {
        self.guard.check_parsed(to)?;
        let names = || (from.to_string(), to.to_string());
        if from.scheme() == "https" && to.scheme() == "http" {
            let (from, to) = names();
            return Err(WebError::Downgrade { from, to });
        }
        if from.host_str() != to.host_str() && !may_follow(to) {
            let (from, to) = names();
            return Err(WebError::OtherHost { from, to });
        }
        Ok(())
    }

    async fn within_limit<T>(
        &self,
        url: &Url,
        work: impl Future<Output = Result<T, WebError>>,
    ) -> Result<T, WebError> {
        tokio::time::timeout(self.limits.total, work).await.unwrap_or_else(|_| {
            let seconds = self.limits.total.as_secs();
            Err(WebError::TimedOut { host: host_of(url), seconds })
        })
    }

    async fn read(&self, mut response: Response) -> Result<WebResponse, WebError> {
        let url = response.url().clone();
        let header = |name| {
            let value = response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
            value.unwrap_or_default().into_owned()
        };
        let (status, content_type, encoding) =
            (response.status().as_u16(), header(CONTENT_TYPE), header(CONTENT_ENCODING));
        let broken = |reason| WebError::Broken { host: host_of(&url), reason };
        let mut body = BoundedBody::new(&encoding, self.limits.bytes).map_err(broken)?;
        while let Some(chunk) = response.chunk().await.map_err(|error| web_error(&url, &error))? {
            if !body.push(&chunk).map_err(broken)? {
                break;
            }
        }
        let ReadBody { bytes, is_cut } = body.finish().map_err(broken)?;
        Ok(WebResponse { url, status, content_type, body: bytes, is_cut })
    }

    fn request_checked(&self, method: Method, url: Url) -> Result<RequestBuilder, WebError> {
        Ok(self.client(&url)?.request(method, url))
    }

    fn client(&self, url: &Url) -> Result<Client, WebError> {
        let security = if url.scheme() == "https" { Security::Tls } else { Security::Plain };
        let route = self.guard.route(url);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&(route, security)) {
            return Ok(client.clone());
        }
        // An error means that a crypto provider is installed already. Every caller installs the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A proxy of the environment would resolve names, and could reach what this machine can't.
        let mut builder = Client::builder().no_proxy();
        if security == Security::Plain && self.guard.proxy().is_none() {
            builder = builder.tls_certs_only([]);
        }
        if let Some(proxy) = self.guard.proxy().filter(|_| route == Route::Public) {
            let all =
                reqwest::Proxy::all(proxy.clone()).map_err(|error| WebError::Proxy(error.to_string()))?;
            builder = builder.proxy(all);
        }
        let client = builder
            .dns_resolver(Arc::new(GuardedResolver { guard: self.guard.clone(), route }))
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(self.limits.connect)
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .http1_only()
            .user_agent(USER_AGENT)
            .build()
            .map_err(|error| WebError::Setup(error_chain(&error)))?;
        clients.insert((route, security), client.clone());
        Ok(client)
    }
}

/// Where a response leads, if it is a redirect.
fn redirect_target(response: &Response) -> Result<Option<Url>, WebError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let url = response.url();
    let bad = |reason: String| WebError::BadRedirect { host: host_of(url), reason };
    let location = response.headers().get(LOCATION).ok_or_else(|| bad("it names no address".to_owned()))?;
    let location = String::from_utf8_lossy(location.as_bytes());
    let mut target = url.join(&location).map_err(|error| bad(format!("{location:?}: {error}")))?;
    // The part behind # is for the page that was asked for.
    target.set_fragment(None);
    Ok(Some(target))
}

fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

/// Why a request got no answer.
fn web_error(url: &Url, error: &reqwest::Error) -> WebError {
    let host = host_of(url);
    let mut cause = error.source();
    while let Some(current) = cause {
        if let Some(refused) = current.downcast_ref::<WebError>() {
            return refused.clone();
        }
        if current.is::<rustls::Error>() {
            return WebError::Certificate { host, reason: current.to_string() };
        }
        if let Some(error) = current.downcast_ref::<io::Error>()
            && let Some(hidden) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>())
        {
            return WebError::Certificate { host, reason: hidden.to_string() };
        }
        cause = current.source();
    }
    let reason = if error.is_timeout() { "it did not answer in time".to_owned() } else { error_chain(error) };
    match error.is_connect() {
        true => WebError::Connect { host, reason },
        false => WebError::Broken { host, reason },
    }
}

/// The last cause of an error. The others only say that something failed.
fn error_chain(error: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}
