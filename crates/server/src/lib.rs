//! The HTTP surface: sessions for programs, browsers and other agents.
//!
//! # What this crate promises
//!
//! - **A request that acts is an append.** It is answered when the input or order is in the inbox, and not before. The
//!   same idempotency key twice is one input, even if the server restarted in between.
//! - **A connection never owns a turn.** A closed connection ends a follower. A client that reconnects with the last
//!   `seq` that it saw gets every later record once, in order.
//! - **This crate knows nothing of how a turn works.** Everything goes through the [`Session`](longhaul_agent::Session)
//!   of the runtime.
//! - **One table of routes** makes the router, the OpenAPI document and the tests of both.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `route` | an entry of the route table, and the router that the table makes |
//! | `cluster` | handlers of `/cluster`: what nodes of a cluster do for each other |
//! | `openapi` | the OpenAPI 3.1 document that the table makes |
//! | `api` | handlers of `/api` |
//! | `openai` | handlers of `/v1` |
//! | `mcp` | the MCP server: `/mcp`, and the same at standard input and output |
//! | `console` | the files of the web console |
//! | `probes`, `readiness`, `metrics` | `/healthz`, `/readyz`, `/metrics`, and what they are made from |
//! | `sign_in` | `/api/login`, `/api/logout`, `/api/tokens` |
//! | `origin` | which hosts and pages may send requests; the headers of every answer |
//! | `access`, `tokens`, `revocation` | who may call a route; the tokens that the server accepts; streams end with theirs |
//! | `body`, `problem` | request bodies and queries; errors as problem details |
//! | `events` | event streams, one feed for all followers of a session |
//! | `observation` | the figures and the log line of each request |
//! | `listener`, `tls`, `connection`, `write_timeout` | connections: accepting, bounding and ending them |
//! | `state` | what all handlers share |

mod access;
mod api;
mod body;
mod cluster;
mod connection;
mod console;
mod events;
mod listener;
mod mcp;
mod metrics;
mod observation;
mod openai;
mod openapi;
mod origin;
mod probes;
mod problem;
mod readiness;
mod revocation;
mod route;
mod sign_in;
mod state;
mod tls;
mod tokens;
mod write_timeout;

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::IntoResponse;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, StatusCode};
use longhaul_agent::{ClusterToken, Runtime};
use longhaul_protocol::SessionId;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use access::Scope;
pub use mcp::serve_mcp;
pub use observation::AccessLog;
pub use tls::{Tls, TlsError};
pub use tokens::{
    FIRST_START_NAME, HttpTokenFile, HttpTokenFileError, RateLimit, RecordedToken, RestoredTokens,
    TokenEntry, TokenError, TokenListing, TokenStore, VARIABLE_NAME, create_token, find_recorded_token,
    list_tokens, revoke_token,
};

use access::Access;
use metrics::count_turns;
use problem::Problem;
use route::{JSON, Route, router};
use state::ServerState;
use tokens::{REFRESH_INTERVAL, TokenCursor};

/// The settings of a server.
#[derive(Clone)]
pub struct ServerOptions {
    /// The most bytes of a request body.
    pub max_body_bytes: usize,
    /// Names of this server, beside localhost and the address that a client reaches.
    pub allowed_hosts: Vec<String>,
    /// Origins of other pages that may call the API.
    pub allowed_origins: Vec<String>,
    /// Serves TLS.
    pub tls: Option<Tls>,
    /// A secret that stays the same over restarts. Signed-in pages stay signed in as long as it does.
    pub cookie_secret: Vec<u8>,
    /// How long a client may take to send the headers of a request, and how long a connection may be idle.
    pub header_timeout: Duration,
    /// Event streams that may be open at once, of `/api` and `/v1` together.
    pub max_followers: usize,
    /// How long a client may take to read one part of a stream. Then it is disconnected; it can come back.
    pub read_timeout: Duration,
    /// How long a client may be silent in the middle of a body.
    pub body_silence_timeout: Duration,
    /// How many requests each token may make.
    pub token_rate: RateLimit,
    /// How long a client may leave an answer unread before its connection is closed.
    pub write_timeout: Duration,
    /// What the nodes of a cluster share. Without it, other nodes can't reach this one.
    pub cluster_token: Option<ClusterToken>,
    /// Gets a line of JSON for each request.
    pub access_log: Option<AccessLog>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            max_body_bytes: 32 << 20,
            allowed_hosts: vec![],
            allowed_origins: vec![],
            tls: None,
            cookie_secret: format!("{}{}", SessionId::generate(), SessionId::generate()).into_bytes(),
            header_timeout: Duration::from_secs(15),
            max_followers: 4_096,
            read_timeout: Duration::from_secs(30),
            body_silence_timeout: Duration::from_secs(20),
            token_rate: RateLimit::REQUESTS,
            write_timeout: Duration::from_secs(30),
            cluster_token: None,
            access_log: None,
        }
    }
}

/// A running HTTP server.
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Server {
    /// Serves the sessions of a runtime to these connections.
    pub fn start(
        listener: TcpListener,
        runtime: Runtime,
        tokens: TokenStore,
        options: &ServerOptions,
    ) -> std::io::Result<Self> {
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let state = ServerState::new(runtime, tokens, options, stopped.clone());
        let serving = tokio::spawn(run(listener, state, options.clone(), stopped));
        Ok(Self { address, stop, serving })
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, ends event streams, and returns when open requests have ended or their time is over.
    pub async fn shutdown(self) {
        self.stop.send_replace(true);
        let _ = self.serving.await;
    }
}

/// Serves connections, and does what has to be done beside that, until the server stops.
async fn run(
    listener: TcpListener,
    state: ServerState,
    options: ServerOptions,
    stopped: watch::Receiver<bool>,
) {
    let journal = state.journal();
    let home = state.runtime().config().home.clone();
    let _ = tokio::task::spawn_blocking(move || api::remove_abandoned_transfers(&home)).await;
    let mut cursor = TokenCursor::default();
    // The first request already finds every token.
    state.tokens().refresh(&*journal, &mut cursor).await;
    let router = app(&state, options.access_log);
    let metrics = state.metrics().clone();
    let counting = tokio::spawn(count_turns(metrics.clone(), state.runtime().clone()));
    let connections = listener::ConnectionOptions {
        router,
        tls: options.tls,
        header_timeout: options.header_timeout,
        write_timeout: options.write_timeout,
        metrics,
    };
    let refreshing = async {
        loop {
            tokio::time::sleep(REFRESH_INTERVAL).await;
            state.tokens().refresh(&*journal, &mut cursor).await;
        }
    };
    tokio::select! {
        () = listener::serve(listener, connections, stopped) => {}
        () = refreshing => {}
    }
    counting.abort();
}

/// All routes.
fn routes() -> Vec<Route> {
    let document = Route::new(Method::GET, "/openapi.json", Access::Open, "This document", openapi_document)
        .answers::<serde_json::Value>(StatusCode::OK, "The OpenAPI 3.1 document.");
    let own = [probes::routes(), vec![document], cluster::routes()];
    let for_clients = [sign_in::routes(), api::routes(), openai::routes(), mcp::routes()];
    own.into_iter().chain(for_clients).flatten().collect()
}

fn app(state: &ServerState, access_log: Option<AccessLog>) -> Router {
    router(routes(), state)
        .merge(console::router())
        .fallback(|| async {
            Problem::not_found(
                "no_such_route",
                "there is nothing at this path; GET /openapi.json lists all routes",
            )
        })
        .method_not_allowed_fallback(|| async {
            let detail = "this path does not take this method; GET /openapi.json lists all routes";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        })
        .layer(from_fn_with_state(state.clone(), origin::check_origin))
        .layer(from_fn(openai::show_openai_errors))
        .layer(from_fn(origin::add_security_headers))
        .layer(from_fn_with_state((state.clone(), access_log), observation::observe))
}

/// The document is the same for every request, and any client may ask for it.
static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| openapi::document_json(&routes()).into());

async fn openapi_document() -> impl IntoResponse {
    ([(CONTENT_TYPE, JSON)], DOCUMENT.clone())
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;
    use http_body_util::BodyExt as _;

    /// H5: clients without a token can't keep the server busy with its document.
    #[tokio::test]
    async fn the_document_is_made_once() {
        let body = async || super::openapi_document().await.into_response().into_body().collect().await;
        let (first, second) = (body().await.unwrap().to_bytes(), body().await.unwrap().to_bytes());

        assert!(first.len() > 10_000);
        assert_eq!(first.as_ptr(), second.as_ptr());
    }
}
