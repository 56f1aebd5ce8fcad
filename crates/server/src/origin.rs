//! Where a request comes from: which host it was sent to, and which page sent it.
//!
//! A page on another site can make a browser send requests here, and with its own name pointed at this machine (DNS
//! rebinding) it can read the answers. So the `Host` must be one that belongs to this server, and a request that a page of
//! another origin caused is refused unless the config allows that origin.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{Method, StatusCode};

use crate::connection::Connection;
use crate::problem::{ApiResult, Problem};
use crate::state::ServerState;

/// How long a browser may remember that an origin is allowed, in seconds.
const PREFLIGHT_MAX_AGE: &str = "600";
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Which hosts and pages may talk to the server.
#[derive(Debug, Clone, Default)]
pub(crate) struct OriginPolicy {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl OriginPolicy {
    /// The policy with the hosts and origins of the config.
    pub(crate) fn new(hosts: &[String], origins: &[String]) -> Self {
        let origins = origins.iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase());
        let hosts = hosts.iter().map(|host| host.trim_end_matches('.').to_ascii_lowercase());
        Self { hosts: hosts.collect(), origins: origins.collect() }
    }

    /// Whether this is a name or an address of this server.
    pub(crate) fn allows_host(&self, host: &Authority, connection: Option<&Connection>) -> bool {
        let name = host.host().trim_end_matches('.').to_ascii_lowercase();
        if name == "localhost" || name.ends_with(".localhost") {
            return true;
        }
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        if let Ok(address) = address
            && (address.to_canonical().is_loopback()
                || connection
                    .is_some_and(|connection| connection.local.ip().to_canonical() == address.to_canonical()))
        {
            return true;
        }
        let with_port = host.as_str().to_ascii_lowercase();
        self.hosts.iter().any(|allowed| *allowed == name || *allowed == with_port)
    }

    fn allows_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }
}

/// Refuses what no client of this server would send, before anything else looks at the request.
pub(crate) async fn check_origin(State(state): State<ServerState>, request: Request, next: Next) -> Response {
    let policy = state.origin_policy();
    // Other nodes use the address that this one has given them, which may be a name that clients don't use. DNS rebinding gains
    // nothing there: no browser has the cluster's token.
    let is_of_node = state.cluster_access().is_some() && request.uri().path().starts_with("/cluster/");
    let checked = check_host(policy, &request, is_of_node)
        .and_then(|()| check_target(&request))
        .and_then(|()| check_page(policy, &request));
    if let Err(problem) = checked {
        return problem.into_response();
    }
    let allowed = header_text(request.headers(), &header::ORIGIN)
        .filter(|origin| policy.allows_origin(origin))
        .map(str::to_owned);
    let asked = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let is_preflight = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match (&allowed, is_preflight) {
        (Some(_), true) => preflight(asked),
        _ => next.run(request).await,
    };
    if let Some(origin) = allowed.and_then(|origin| HeaderValue::try_from(origin).ok()) {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("retry-after, x-longhaul-session"),
        );
    }
    response
}

fn preflight(asked: Option<HeaderValue>) -> Response {
    let methods = "GET, POST, PUT, PATCH, DELETE";
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods)),
        (header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_MAX_AGE)),
    ];
    let mut response = (StatusCode::NO_CONTENT, headers).into_response();
    if let Some(asked) = asked {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked);
    }
    response
}

/// The `Host` header and, in a request to a proxy, the address in its first line.
fn check_host(policy: &OriginPolicy, request: &Request, is_of_node: bool) -> ApiResult<()> {
    let mut named = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (named.next(), named.next()) else {
        return Err(Problem::bad_request("host_missing", "send one Host header"));
    };
    let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    let Some(host) = host.filter(|host| !host.as_str().contains('@')) else {
        return Err(Problem::bad_request("host_missing", "the Host header is not a host and port"));
    };
    let connection = request.extensions().get::<Connection>();
    if is_of_node {
        return Ok(());
    }
    let in_line = request.uri().authority();
    if policy.allows_host(&host, connection)
        && in_line.is_none_or(|authority| policy.allows_host(authority, connection))
    {
        return Ok(());
    }
    let detail =
        "this server does not answer for this host; if it should, add the name to server.allowed_hosts";
    Err(Problem::new(StatusCode::FORBIDDEN, "host_not_allowed", detail))
}

/// The path and the query.
fn check_target(request: &Request) -> ApiResult<()> {
    if request.method() == Method::TRACE || request.method() == Method::CONNECT {
        let detail = "this server does not take this method";
        return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail));
    }
    let upgrade = header_text(request.headers(), &header::UPGRADE).unwrap_or_default();
    if upgrade.to_ascii_lowercase().contains("websocket") {
        let detail = "this server has no WebSockets; follow a session with GET /api/sessions/{key}/events";
        return Err(Problem::bad_request("no_websocket", detail));
    }
    if !is_clean_path(request.uri().path()) {
        let detail = "the path contains a control character, or its percent-encoding is not UTF-8";
        return Err(Problem::bad_request("invalid_path", detail));
    }
    let query = request.uri().query().unwrap_or_default();
    let is_secret = |pair: &str| {
        let name = pair.split('=').next().unwrap_or_default().to_ascii_lowercase();
        matches!(
            name.as_str(),
            "token" | "access_token" | "auth_token" | "api_key" | "apikey" | "authorization" | "bearer"
        )
    };
    if query.split('&').any(is_secret) {
        let detail = "a token in a URL ends up in logs and histories and is never accepted; send it as \
                      `Authorization: Bearer TOKEN`, and revoke this one";
        return Err(Problem::bad_request("token_in_url", detail));
    }
    Ok(())
}

/// Whether the decoded path is UTF-8 without control characters.
fn is_clean_path(path: &str) -> bool {
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digits =
            [bytes.next(), bytes.next()].map(|digit| digit.and_then(|digit| char::from(digit).to_digit(16)));
        let [Some(high), Some(low)] = digits else { return false };
        // Two hex digits fit into a byte.
        decoded.push(u8::try_from(high * 16 + low).unwrap_or_default());
    }
    String::from_utf8(decoded).is_ok_and(|path| !path.chars().any(char::is_control))
}

/// The page behind a request of a browser. Other clients send none of these headers.
fn check_page(policy: &OriginPolicy, request: &Request) -> ApiResult<()> {
    let headers = request.headers();
    let site = header_text(headers, &SEC_FETCH_SITE);
    let origin = headers.get(header::ORIGIN);
    let is_allowed = match origin.map(HeaderValue::to_str) {
        Some(Ok(origin)) => policy.allows_origin(origin) || is_own_origin(origin, request),
        Some(Err(_)) => false,
        None => true,
    };
    let is_foreign_site = match site {
        Some("same-origin" | "none") | None => false,
        // An allowed origin may be another site. Without an origin there is none that could be allowed.
        Some(_) => origin.is_none(),
    };
    if is_allowed && (!is_foreign_site || is_link_to_page(request)) {
        return Ok(());
    }
    let detail = "a page of another origin sent this request; if it should be allowed, add its origin to \
                  server.allowed_origins";
    Err(Problem::new(StatusCode::FORBIDDEN, "origin_not_allowed", detail))
}

/// Whether a person followed a link from another site to a page here. Such a request has no cookie, and the other site can't
/// read the answer. The API has no pages.
fn is_link_to_page(request: &Request) -> bool {
    let is = |name: &HeaderName, value: &str| header_text(request.headers(), name) == Some(value);
    let path = request.uri().path();
    let is_api = ["/api", "/v1", "/mcp", "/metrics", "/cluster"].iter().any(|start| path.starts_with(start));
    request.method() == Method::GET
        && is(&SEC_FETCH_MODE, "navigate")
        && is(&SEC_FETCH_DEST, "document")
        && !is_api
}

/// Whether the browser says that a page of this server sent the request. Only then does a cookie count.
pub(crate) fn is_same_origin(request: &Request) -> bool {
    let headers = request.headers();
    let by_origin = header_text(headers, &header::ORIGIN).map(|origin| is_own_origin(origin, request));
    let by_site = header_text(headers, &SEC_FETCH_SITE).map(|site| site == "same-origin");
    // Where both are there, both have to say so.
    by_origin.or(by_site).unwrap_or(false) && by_site.unwrap_or(true)
}

/// Whether an origin is that of this server: the host that the request was sent to. A proxy may add TLS, so `https` is right
/// for a plain listener; `http` is wrong for one with TLS.
fn is_own_origin(origin: &str, request: &Request) -> bool {
    let is_tls = request.extensions().get::<Connection>().is_some_and(|connection| connection.is_tls);
    let (authority, default_port) = match (origin.strip_prefix("https://"), origin.strip_prefix("http://")) {
        (Some(authority), _) => (authority, ":443"),
        (None, Some(authority)) if !is_tls => (authority, ":80"),
        _ => return false,
    };
    let host = header_text(request.headers(), &header::HOST).unwrap_or_default();
    let host = host.strip_suffix(default_port).unwrap_or(host);
    !host.is_empty() && authority.eq_ignore_ascii_case(host)
}

fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Adds the headers that keep browsers from guessing, framing, caching and leaking.
pub(crate) async fn add_security_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::VARY, "origin"),
    ] {
        // The console has its own content policy.
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
#[path = "origin_tests.rs"]
mod tests;
