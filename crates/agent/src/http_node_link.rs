//! Other nodes over HTTP, at the addresses that they give, with the token of the cluster. The other end is in the server's
//! `cluster`.

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_journal::{Holder, Subscription};
use longhaul_postgres::{NodeLink, NodeLinkError};
use longhaul_protocol::StreamName;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response, StatusCode, redirect};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::timeout;

use crate::ClusterToken;

const JSON_LINES: &str = "application/x-ndjson";
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a check of an address may take.
const TRY_TIMEOUT: Duration = Duration::from_secs(3);
/// How long an unused connection is kept: less than the server keeps it.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a subscription may be silent. The other node sends an empty line every 15 seconds.
const MAX_SILENCE: Duration = Duration::from_secs(40);

/// Reaches other nodes over HTTP.
///
/// No proxy is used and no redirect is followed, because either would get the token. Plain HTTP has a client of its own, which never
/// waits until the machine's certificates are read.
#[derive(Debug)]
pub struct HttpNodeLink {
    token: ClusterToken,
    plain: OnceLock<Result<Client, String>>,
    secure: OnceLock<Result<Client, String>>,
}

impl HttpNodeLink {
    /// Sends this token to other nodes.
    pub fn new(token: ClusterToken) -> Self {
        Self { token, plain: OnceLock::new(), secure: OnceLock::new() }
    }

    /// Whether a node of this cluster answers at an address; the reason for people if not.
    pub(crate) async fn try_address(&self, address: &str) -> Result<(), String> {
        // No process is meant, so a node that accepts the token refuses.
        match timeout(TRY_TIMEOUT, self.wake(address, &Holder::this_process(), &[])).await {
            Ok(Ok(()) | Err(NodeLinkError::Refused)) => Ok(()),
            Ok(Err(NodeLinkError::Unreachable(reason))) => Err(reason),
            Err(_) => Err("no answer".to_owned()),
        }
    }

    fn client(&self, address: &str) -> Result<&Client, NodeLinkError> {
        let client = match address.split_once("://") {
            Some(("http", _)) => self.plain.get_or_init(|| client(Client::builder().tls_certs_only([]))),
            Some(("https", _)) => self.secure.get_or_init(|| client(Client::builder())),
            _ => {
                let reason = format!("{address:?} does not begin with http:// or https://");
                return Err(NodeLinkError::Unreachable(reason));
            }
        };
        client.as_ref().map_err(|reason| NodeLinkError::Unreachable(reason.clone()))
    }

    /// Sends a request, and returns the answer if it has the status of success.
    async fn post(
        &self,
        address: &str,
        path: &str,
        body: &Value,
        success: StatusCode,
    ) -> Result<Response, NodeLinkError> {
        let url = format!("{}/cluster/{path}", address.trim_end_matches('/'));
        let request = self.client(address)?.post(url).bearer_auth(self.token.text());
        let request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        // An error shows the URL, which has no secret.
        let unreachable = |error: reqwest::Error| NodeLinkError::Unreachable(error_chain(&error));
        let response = request.send().await.map_err(unreachable)?;
        let reason = match response.status() {
            status if status == success => return Ok(response),
            StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE => return Err(NodeLinkError::Refused),
            StatusCode::UNAUTHORIZED => format!("{address} does not accept the cluster token of this node"),
            StatusCode::NOT_FOUND => format!("{address} has no cluster token, or is no node of Longhaul"),
            status => format!("{address} answers {status}"),
        };
        Err(NodeLinkError::Unreachable(reason))
    }
}

fn client(builder: reqwest::ClientBuilder) -> Result<Client, String> {
    // An error means that a crypto provider is installed already. Every caller installs the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    builder
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .tcp_nodelay(true)
        .http1_only()
        .user_agent(concat!("longhaul/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| error_chain(&error))
}

/// An error with its causes.
fn error_chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[async_trait]
impl NodeLink for HttpNodeLink {
    async fn wake(
        &self,
        address: &str,
        holder: &Holder,
        streams: &[StreamName],
    ) -> Result<(), NodeLinkError> {
        let body = json!({"holder": holder, "streams": streams});
        self.post(address, "wake", &body, StatusCode::NO_CONTENT).await.map(drop)
    }

    async fn subscribe(
        &self,
        address: &str,
        holder: &Holder,
        stream: &StreamName,
    ) -> Result<Subscription, NodeLinkError> {
        let body = json!({"holder": holder, "stream": stream});
        let response = self.post(address, "follow", &body, StatusCode::OK).await?;
        if response.headers().get(CONTENT_TYPE).is_none_or(|content_type| content_type != JSON_LINES) {
            return Err(NodeLinkError::Unreachable(format!("{address} is no node of Longhaul")));
        }
        let (pipe, subscription) = Subscription::piped();
        tokio::spawn(copy_lines(response, pipe));
        Ok(subscription)
    }
}

/// Copies the lines of the other node into the pipe, until either end is gone or the node is silent.
async fn copy_lines(mut response: Response, pipe: DuplexStream) {
    let (mut unused, mut lines) = tokio::io::split(pipe);
    let copying = async {
        while let Ok(Ok(Some(part))) = timeout(MAX_SILENCE, response.chunk()).await {
            if lines.write_all(&part).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = copying => {}
        // Nothing is written there, so this ends when the subscription is dropped.
        _ = unused.read_u8() => {}
    }
}
