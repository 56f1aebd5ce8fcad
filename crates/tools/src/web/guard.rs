//! The checks of a URL, and of the addresses of a name.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::WebError;
use super::address::{AddressKind, classify_address};
use super::allow_list::AllowList;

/// What may be reached: public addresses, and the private hosts that the user allows.
#[derive(Clone)]
pub struct NetworkGuard {
    allowed: AllowList,
    proxy: Option<Url>,
    lookup: Arc<dyn LookupName>,
}

/// Looks names up. The guard checks what it finds; tests put a lookup that lies in its place.
#[async_trait]
pub trait LookupName: Send + Sync {
    /// The addresses of a name.
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The lookup of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

#[async_trait]
impl LookupName for SystemLookup {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

impl NetworkGuard {
    /// A guard that lets public addresses through, and these hosts.
    pub fn new(allowed: AllowList) -> Self {
        Self { allowed, proxy: None, lookup: Arc::new(SystemLookup) }
    }

    /// Sends all requests to public hosts through a proxy, which then resolves their names. `""` is none.
    pub fn with_proxy(self, proxy: &str) -> Result<Self, WebError> {
        let proxy = match proxy {
            "" => None,
            proxy => {
                let url =
                    Url::parse(proxy).map_err(|error| WebError::Proxy(format!("{proxy:?}: {error}")))?;
                if !matches!(url.scheme(), "http" | "https") {
                    return Err(WebError::Proxy(format!(
                        "{proxy:?} begins neither with http:// nor with https://"
                    )));
                }
                Some(url)
            }
        };
        Ok(Self { proxy, ..self })
    }

    /// Replaces the lookup of names.
    #[must_use]
    pub fn with_lookup(self, lookup: Arc<dyn LookupName>) -> Self {
        Self { lookup, ..self }
    }

    /// The guard of a client for a service that the user configured: host and port of this URL may be reached, whatever they are.
    pub fn with_configured(mut self, url: &str) -> Result<Self, WebError> {
        self.allowed.extend(AllowList::of_url(&parse_url(url)?));
        Ok(self)
    }

    /// Reads a URL and checks everything of it that can be known without a look-up. The resolver of [`super::GuardedClient`] checks
    /// the rest.
    pub fn check_url(&self, text: &str) -> Result<Url, WebError> {
        let url = parse_url(text)?;
        self.check_parsed(&url)?;
        Ok(url)
    }

    /// The same checks for a URL that is parsed.
    pub(super) fn check_parsed(&self, url: &Url) -> Result<(), WebError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(WebError::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(WebError::Credentials);
        }
        let no_host = || WebError::BadUrl { url: url.to_string(), reason: "it names no host".to_owned() };
        let (host, port) = (url.host_str().ok_or_else(no_host)?, url.port_or_known_default());
        if self.is_allowed(url) {
            return Ok(());
        }
        if let Some(port) = port.filter(|port| !matches!(port, 80 | 443 | 1024..)) {
            return Err(WebError::Port(port));
        }
        let kind = match address_of(host) {
            Some(address) => classify_address(address),
            // Whatever a resolver or a proxy says, these names are this machine.
            None => is_localhost(host).then_some(AddressKind::Loopback),
        };
        kind.map_or(Ok(()), |kind| Err(WebError::private(host, url.port(), kind)))
    }

    /// Which connections a URL that was checked may use.
    pub(super) fn route(&self, url: &Url) -> Route {
        if self.is_allowed(url) { Route::Allowed } else { Route::Public }
    }

    fn is_allowed(&self, url: &Url) -> bool {
        let (Some(host), port) = (url.host_str(), url.port_or_known_default()) else { return false };
        match address_of(host) {
            Some(address) => self.allowed.allows_address(address, port),
            None => self.allowed.allows_name(host, port),
        }
    }

    pub(super) fn proxy(&self) -> Option<&Url> {
        self.proxy.as_ref()
    }

    /// Which of the addresses of a name may be connected.
    fn filter_addresses(
        &self,
        name: &str,
        route: Route,
        found: &[IpAddr],
    ) -> Result<Vec<SocketAddr>, WebError> {
        let is_permitted = |address: IpAddr, kind: AddressKind| match route {
            // With a proxy, its own name is the only one that is looked up here.
            Route::Public if self.proxy.is_some() => true,
            Route::Public => self.allowed.allows_network_of(address),
            Route::Allowed => kind.is_allowed_by_name() || self.allowed.allows_network_of(address),
        };
        let refusal =
            |address: &IpAddr| classify_address(*address).filter(|kind| !is_permitted(*address, *kind));
        let passed: Vec<SocketAddr> = found
            .iter()
            .filter(|address| refusal(address).is_none())
            .map(|address| (*address, 0).into())
            .collect();
        match (passed.is_empty(), found.iter().find_map(refusal)) {
            (false, _) => Ok(passed),
            (true, Some(kind)) => Err(WebError::private(name, None, kind)),
            (true, None) => {
                Err(WebError::NoSuchHost { host: name.to_owned(), reason: "it has no address".to_owned() })
            }
        }
    }
}

/// Which connections a request uses. They are kept apart, because a resolver does not know the port: a name that is allowed with one port
/// would otherwise be reached with every other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Route {
    /// To public addresses, through the proxy if there is one.
    Public,
    /// To the host and the port that the user allows.
    Allowed,
}

/// The address that is connected is one that was checked: the HTTP client has no other way to find addresses.
pub(super) struct GuardedResolver {
    pub(super) guard: NetworkGuard,
    pub(super) route: Route,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, route) = (self.guard.clone(), self.route);
        Box::pin(async move {
            let name = name.as_str();
            let found = guard
                .lookup
                .lookup(name)
                .await
                .map_err(|error| WebError::NoSuchHost { host: name.to_owned(), reason: error.to_string() })?;
            let passed = guard.filter_addresses(name, route, &found)?;
            Ok(Box::new(passed.into_iter()) as Addrs)
        })
    }
}

fn parse_url(text: &str) -> Result<Url, WebError> {
    Url::parse(text.trim())
        .map_err(|error| WebError::BadUrl { url: text.trim().to_owned(), reason: error.to_string() })
}

/// The address that a host is. The URL parser has brought every spelling of it into this one.
fn address_of(host: &str) -> Option<IpAddr> {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).parse().ok()
}

fn is_localhost(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost")
}
