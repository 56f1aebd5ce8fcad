use super::address::AddressKind;

/// Why nothing was fetched. The message is for the model and for people: it names the address, the reason, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    #[error("{url:?} is not a web address ({reason}); write it whole, as in https://example.org/page")]
    BadUrl { url: String, reason: String },
    #[error("only http and https addresses can be fetched, not {0}:")]
    Scheme(String),
    #[error("the address has a user name or a password in it, and those are never sent; leave them out")]
    Credentials,
    #[error(
        "port {0} is not a port of web servers; 80, 443 and those from 1024 are, and what web.allow names"
    )]
    Port(u16),
    /// Only the user can change that, in the config of the home.
    #[error(
        "{host} is not public: the user can add web.allow = [{allow:?}] to config.toml and restart; \
         it leads to {kind}, and only public addresses are fetched"
    )]
    Private {
        host: String,
        kind: &'static str,
        /// The narrowest entry that would allow it.
        allow: String,
    },
    #[error("the host {host} was not found: {reason}")]
    NoSuchHost { host: String, reason: String },
    #[error("can't connect to {host}: {reason}")]
    Connect { host: String, reason: String },
    #[error("the connection to {host} is not secure: {reason}")]
    Certificate { host: String, reason: String },
    #[error("{host} has not sent everything within {seconds} s; try again later, or fetch another page")]
    TimedOut { host: String, seconds: u64 },
    #[error("the answer of {host} broke off: {reason}")]
    Broken { host: String, reason: String },
    #[error("gave up after {most} redirects; the last one leads to {url}")]
    TooManyRedirects { most: usize, url: String },
    #[error("{from} redirects to {to}, which is not encrypted; fetch that address itself if you want it")]
    Downgrade { from: String, to: String },
    /// The redirect leads to a host about which the user has to be asked.
    #[error("{from} redirects to {to}; fetch that address if you want it")]
    OtherHost { from: String, to: String },
    #[error("{host} sent a redirect that leads nowhere: {reason}")]
    BadRedirect { host: String, reason: String },
    #[error("web.proxy is not the address of a proxy: {0}")]
    Proxy(String),
    #[error("the HTTP client can't be set up: {0}")]
    Setup(String),
}

impl WebError {
    /// `port` is that of the address, if it names one.
    pub(super) fn private(host: &str, port: Option<u16>, kind: AddressKind) -> Self {
        let allow = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Self::Private { host: host.to_owned(), kind: kind.in_words(), allow }
    }
}
