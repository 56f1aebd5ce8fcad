//! The requests of a login. A server names the addresses, so they go only to where a web page may be fetched from (P5), and to the
//! server itself.

use std::time::Duration;

use longhaul_tools::{GuardedClient, NetworkGuard, WebLimits};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};

use crate::{Error, Result};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_ANSWER_BYTES: usize = 1 << 20;

pub(crate) struct GuardedHttp {
    client: GuardedClient,
    /// Whether the server itself is reached over plain HTTP, so that a login may be too.
    allows_plain: bool,
}

impl GuardedHttp {
    pub(crate) fn new(guard: &NetworkGuard, server_url: &str) -> Result<Self> {
        let guard = guard.clone().with_configured(server_url);
        let guard = guard.map_err(|error| Error::Settings(error.to_string()))?;
        let client = GuardedClient::new(guard, WebLimits::default());
        Ok(Self { client, allows_plain: server_url.trim_start().starts_with("http://") })
    }

    /// Whether this address may be asked, as far as that can be known without a look-up.
    fn check(&self, url: &str) -> std::result::Result<(), OAuthHttpClientError> {
        if !self.allows_plain && !url.starts_with("https://") {
            return Err(format!("refusing {url}: a login goes over HTTPS only").into());
        }
        self.client.guard().check_url(url)?;
        Ok(())
    }

    async fn send(
        &self,
        request: OAuthHttpRequest,
    ) -> std::result::Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        let (parts, body) = request.request.into_parts();
        let url = parts.uri.to_string();
        self.check(&url)?;
        // A redirect is given back: rmcp follows those of a discovery itself, within one origin, and no others.
        let request = self.client.request(parts.method, &url)?;
        let request = request.headers(parts.headers).body(body).timeout(REQUEST_TIMEOUT);
        let mut response = request.send().await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(format!("{url} answered with more than {} KiB", MAX_ANSWER_BYTES >> 10).into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(http::Response::<reqwest::Body>::from(response).map(|_| body))
    }
}

impl OAuthHttpClient for GuardedHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request))
    }
}

#[cfg(test)]
#[path = "guarded_http_tests.rs"]
mod tests;
