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
//! | `openapi` | the OpenAPI 3.1 document that the table makes |
//! | `api` | handlers of `/api` |
//! | `openai` | handlers of `/v1` |
//! | `probes` | `/healthz`, `/readyz`, `/metrics` |
//! | `access`, `tokens` | who may call a route; the tokens that the server accepts |
//! | `body`, `problem` | request bodies and queries; errors as problem details |
//! | `events` | event streams, one feed for all followers of a session |
//! | `listener` | connections: accepting, bounding and ending them |
//! | `state` | what all handlers share |

mod access;
mod api;
mod body;
mod events;
mod listener;
mod openai;
mod openapi;
mod probes;
mod problem;
mod route;
mod state;
mod tokens;

use std::net::SocketAddr;

use axum::Router;
use axum::middleware::from_fn;
use axum::response::IntoResponse;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, StatusCode};
use longhaul_agent::Runtime;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use access::Scope;
pub use tokens::TokenStore;

use access::Access;
use problem::Problem;
use route::{JSON, Route, router};
use state::ServerState;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The most bytes of a request body.
    pub max_body_bytes: usize,
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
        let state = ServerState::new(runtime, tokens, options.max_body_bytes, stopped.clone());
        let serving = tokio::spawn(listener::serve(listener, app(&state), stopped));
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

/// All routes.
fn routes() -> Vec<Route> {
    let document = Route::new(Method::GET, "/openapi.json", Access::Open, "This document", openapi_document)
        .answers::<serde_json::Value>(StatusCode::OK, "The OpenAPI 3.1 document.");
    [probes::routes(), api::routes(), openai::routes(), vec![document]].into_iter().flatten().collect()
}

fn app(state: &ServerState) -> Router {
    router(routes(), state)
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
        .layer(from_fn(openai::show_openai_errors))
}

async fn openapi_document() -> impl IntoResponse {
    ([(CONTENT_TYPE, JSON)], openapi::document_json(&routes()))
}
