//! One login: the user opens an address in a browser, agrees there, and the browser brings a code back.

use rmcp::transport::auth::{AuthError, AuthorizationCallback, AuthorizationManager, OAuthClientConfig};

use super::access::{Challenge, LoginAccess};
use super::redirect::{RedirectListener, query_value};
use crate::{Error, Result};

/// How we call ourselves where we register.
const CLIENT_NAME: &str = "Longhaul";

/// A login that waits for the user.
pub struct Login {
    access: LoginAccess,
    manager: AuthorizationManager,
    redirect: RedirectListener,
    url: String,
    client_secret: Option<String>,
}

impl Login {
    /// Finds out where the user logs in, and registers there. The challenge is what the server said to a request without a login.
    pub(crate) async fn begin(access: LoginAccess, challenge: &Challenge) -> Result<Self> {
        let redirect = RedirectListener::bind().await?;
        let mut manager = access.new_manager().await?;
        let found = manager.resolve_metadata_from_challenge(challenge.header.as_deref()).await;
        let found = found.map_err(|error| failed("can't find out where to log in", &error))?;
        manager.set_metadata(found.metadata.clone());
        let known = access.store.read()?.unwrap_or_default();
        let granted = known.credentials.map(|credentials| credentials.granted_scopes).unwrap_or_default();
        let scopes = match known.wanted_scopes.is_empty() {
            true => manager.select_initial_scopes(&[]).await,
            // A login with more rights keeps the earlier ones.
            false => manager.select_scopes(Some(&[granted, known.wanted_scopes].concat().join(" ")), &[]),
        };
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let takes_metadata_url =
            found.metadata.additional_fields.get("client_id_metadata_document_supported")
                == Some(&true.into());
        let client_id = access.settings.client_id.as_str();
        let own_client = match client_id {
            "" => false,
            url if url.starts_with("https://") => takes_metadata_url,
            _ => true,
        };
        let client = match own_client {
            true => {
                let client = OAuthClientConfig::new(client_id, redirect.url());
                let client = match access.client_secret(None) {
                    Some(secret) => client.with_client_secret(secret),
                    None => client,
                };
                manager.configure_client(client.clone()).map(|()| client)
            }
            false => manager.register_client(CLIENT_NAME, &redirect.url(), &scopes).await,
        };
        let client = client.map_err(|error| {
            let next = "register one yourself and set `client_id`, or give a token in `headers`";
            Error::Refused(format!("{}; {next}", failed("can't register there as a client", &error)))
        })?;
        let client_secret = client.client_secret.filter(|_| !own_client);
        let url = manager.get_authorization_url(&scopes).await;
        let url = url.map_err(|error| failed("can't log in there", &error))?;
        if !url.starts_with("https://") && !url.starts_with("http://") {
            let named = longhaul_protocol::printable(url.as_bytes()).to_string();
            return Err(Error::Refused(format!("the address to log in at is not a web page: {named}")));
        }
        manager.set_credential_store(access.store.clone());
        Ok(Self { access, manager, redirect, url, client_secret })
    }

    /// The address to open in a browser.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits until the browser comes back, and finishes the login.
    pub async fn wait(&self) -> Result<()> {
        let url = reqwest::Url::parse(&self.url).ok();
        let state = url.and_then(|url| query_value(&url, "state")).unwrap_or_default();
        let back = self.redirect.wait(&state).await?;
        self.finish(&back).await
    }

    /// Finishes the login with the address that the browser came back to, for a browser on another machine.
    pub async fn finish(&self, address: &str) -> Result<()> {
        let url = reqwest::Url::parse(address.trim())
            .map_err(|error| Error::Refused(format!("{:?} is not a URL: {error}", address.trim())))?;
        if let Some(error) = query_value(&url, "error") {
            let reason = query_value(&url, "error_description").unwrap_or(error);
            let reason = longhaul_protocol::printable(reason.as_bytes()).to_string();
            return Err(Error::Refused(format!("the login was refused: {reason}")));
        }
        let wrong = |error: AuthError| failed("the login failed", &error);
        let back = AuthorizationCallback::from_redirect_url(url.as_str()).map_err(wrong)?;
        let exchange = self.manager.exchange_code_for_token_with_issuer(
            &back.code,
            &back.csrf_token,
            back.issuer.as_deref(),
        );
        exchange.await.map_err(wrong)?;
        self.access.store.update(|file| file.client_secret.clone_from(&self.client_secret))
    }
}

fn failed(what: &str, error: &AuthError) -> Error {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let reason = longhaul_protocol::printable(cause.to_string().as_bytes()).to_string();
    Error::Refused(format!("{what}: {reason}"))
}
