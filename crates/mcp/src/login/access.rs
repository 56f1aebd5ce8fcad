//! The login of a connection: its token goes with each request, and is renewed before it ends.

use std::error::Error as StdError;
use std::sync::Arc;

use longhaul_tools::NetworkGuard;
use rmcp::transport::auth::{AuthError, AuthorizationManager, OAuthClientConfig};
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError};

use super::guarded_http::GuardedHttp;
use super::store::{LoginFile, LoginStore};
use crate::{Error, Result, ServerSettings};

/// The login at one server.
#[derive(Clone)]
pub(crate) struct LoginAccess {
    pub(crate) name: String,
    pub(crate) settings: ServerSettings,
    pub(crate) store: LoginStore,
    pub(crate) guard: NetworkGuard,
}

/// Why a server refused a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The header with which it refused, for the login. Empty if our own token has expired.
    pub(crate) header: Option<String>,
    /// The rights that it wants.
    pub(crate) scopes: Vec<String>,
}

impl LoginAccess {
    /// What rmcp takes tokens from. Without a login it has none, and requests go out without one.
    ///
    /// A renewal token and the client's secret go only to the authorization server that gave the login. If the server names none by
    /// now, its token is used until it ends, and then the user has to log in again.
    pub(crate) async fn manager(&self) -> Result<AuthorizationManager> {
        let mut manager = self.new_manager().await?;
        manager.set_credential_store(self.store.clone());
        let Some(LoginFile { client_secret, credentials: Some(credentials), .. }) = self.store.read()? else {
            return Ok(manager);
        };
        if credentials.token_response.is_none() {
            return Ok(manager);
        }
        // If the server can't be asked where tokens are renewed, the present token may still be valid. Only its renewal fails.
        let Ok(found) = manager.resolve_metadata().await else { return Ok(manager) };
        let is_unnamed = found.metadata.issuer.is_none();
        manager.set_metadata(found.metadata);
        if credentials.issuer.is_some() && is_unnamed {
            // The addresses are then only guesses, at the server itself, and it must not get another server's secrets.
            manager.set_credential_store(self.store.clone().without_renewal());
            let _ = manager.configure_client_id(&credentials.client_id);
        } else if manager.initialize_from_store().await.unwrap_or(false)
            && let Some(secret) = self.client_secret(client_secret)
        {
            let client = OAuthClientConfig::new(credentials.client_id, self.settings.url.as_str());
            let _ = manager.configure_client(client.with_client_secret(secret));
        }
        Ok(manager)
    }

    /// A manager that knows no login.
    pub(crate) async fn new_manager(&self) -> Result<AuthorizationManager> {
        let http = Arc::new(GuardedHttp::new(&self.guard, &self.settings.url)?);
        let manager =
            AuthorizationManager::new_with_oauth_http_client(self.settings.url.as_str(), http).await;
        manager.map_err(|error| Error::Settings(error.to_string()))
    }

    /// The secret of the client that the user registered, or else the one that we got ourselves.
    pub(crate) fn client_secret(&self, registered: Option<String>) -> Option<String> {
        let configured = Some(self.settings.client_secret_env.as_str()).filter(|name| !name.is_empty());
        configured.and_then(|name| std::env::var(name).ok()).or(registered)
    }

    /// The error for a request that the server refused for lack of a login or of rights. `None` for any other error. The refusal is
    /// noted for `longhaul mcp list`, and the missing rights for the next login.
    pub(crate) fn refusal(&self, error: &(dyn StdError + 'static)) -> Option<Error> {
        let Challenge { scopes, .. } = find_challenge(error, &self.settings.url)?;
        if self.has_own_token() {
            let reason =
                "it refuses the Authorization header in `headers`; correct that, or remove it and log in";
            return Some(Error::NotStarted(reason.to_owned()));
        }
        let noted = self.store.update(|file| {
            file.is_needed = true;
            let has_token = file.credentials.as_ref().is_some_and(|known| known.token_response.is_some());
            if has_token {
                scopes.into_iter().for_each(|scope| file.want_scope(scope));
            }
        });
        Some(noted.err().unwrap_or_else(|| Error::LoginNeeded { server: self.name.clone() }))
    }

    /// Notes that the server accepts the login again, if it refused one before and wants no more rights.
    pub(crate) fn note_accepted(&self) -> Result<()> {
        let is_answered = |file: &LoginFile| {
            let has_token = file.credentials.as_ref().is_some_and(|known| known.token_response.is_some());
            file.is_needed && has_token && file.wanted_scopes.is_empty()
        };
        match self.store.read()?.is_some_and(|file| is_answered(&file)) {
            true => self.store.update(|file| file.is_needed = false),
            false => Ok(()),
        }
    }

    /// Whether the user gave a token in the settings. Then there is no login.
    pub(crate) fn has_own_token(&self) -> bool {
        self.settings.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
    }
}

/// The challenge in an error of a connection.
pub(crate) fn find_challenge(error: &(dyn StdError + 'static), url: &str) -> Option<Challenge> {
    let url = reqwest::Url::parse(url).ok()?;
    let mut cause = Some(error);
    while let Some(current) = cause {
        let required =
            current.downcast_ref::<AuthRequiredError>().map(|error| &error.www_authenticate_header);
        let insufficient =
            current.downcast_ref::<InsufficientScopeError>().map(|error| &error.www_authenticate_header);
        if let Some(header) = required.or(insufficient) {
            let scope = crate::http_client::scope_of(header, &url).unwrap_or_default();
            let scopes = scope.split_whitespace().map(str::to_owned).collect();
            return Some(Challenge { header: Some(header.clone()), scopes });
        }
        if let Some(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) =
            current.downcast_ref()
        {
            return Some(Challenge { header: None, scopes: vec![] });
        }
        cause = current.source();
    }
    None
}
