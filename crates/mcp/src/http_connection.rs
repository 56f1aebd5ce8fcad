//! The connection to an HTTP server: its headers, its login, and what went wrong.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::{AuthClient, AuthorizationManager};
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};

use crate::connection::lifecycle;
use crate::handler::Handler;
use crate::http_client::BoundedHttpClient;
use crate::login::{Challenge, LoginAccess, find_challenge};
use crate::output_filter::MAX_MESSAGE_BYTES;
use crate::settings::expand_variables;
use crate::{Error, Result, ServerSettings};

/// The longest pause before a stream of events that broke is asked for again.
const MAX_STREAM_BACKOFF: Duration = Duration::from_secs(30);

/// Connects to a server, with the user's login if there is one.
pub(crate) async fn open(
    client: reqwest::Client,
    login: &LoginAccess,
    handler: &Arc<Handler>,
) -> Result<RunningService<RoleClient, Arc<Handler>>> {
    check_url(&login.settings)?;
    let manager = match login.has_own_token() {
        true => login.new_manager().await?,
        false => login.manager().await?,
    };
    let opened = connect(client, login, manager, handler).await?;
    if opened.is_ok() {
        login.note_accepted()?;
    }
    opened.map_err(|error| {
        let cause = start_cause(&error);
        login.refusal(cause).unwrap_or_else(|| {
            Error::NotStarted(format!("no MCP server answered at its url: {}", root_cause(cause)))
        })
    })
}

/// Checks that no variable is left in the address.
pub(crate) fn check_url(settings: &ServerSettings) -> Result<()> {
    let Some((_, rest)) = settings.url.split_once("${") else { return Ok(()) };
    let name = rest.split(['}', ':']).next().unwrap_or_default();
    Err(Error::Settings(match settings.is_of_folder {
        true => format!("its url needs the variable {name}, which is not set"),
        false => format!("its url has ${{{name}}} in it; variables are for `headers`"),
    }))
}

/// The challenge with which a server refuses a request without a login. `None` if it needs no login.
pub(crate) async fn ask_for_challenge(
    client: reqwest::Client,
    login: &LoginAccess,
) -> Result<Option<Challenge>> {
    let url = &login.settings.url;
    let manager = login.new_manager().await?;
    let service = match connect(client, login, manager, &Arc::new(Handler::default())).await? {
        Ok(service) => service,
        Err(error) => {
            let cause = start_cause(&error);
            let unreachable =
                || Error::NotStarted(format!("no MCP server answered at its url: {}", root_cause(cause)));
            return find_challenge(cause, url).map(Some).ok_or_else(unreachable);
        }
    };
    // Some servers let anyone connect, and ask for a login only after that.
    let listed = service.peer().list_tools(None).await;
    Ok(listed.err().and_then(|error| find_challenge(service_cause(&error), url)))
}

async fn connect(
    client: reqwest::Client,
    login: &LoginAccess,
    manager: AuthorizationManager,
    handler: &Arc<Handler>,
) -> Result<std::result::Result<RunningService<RoleClient, Arc<Handler>>, ClientInitializeError>> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(login.settings.url.as_str())
        .custom_headers(http_headers(&login.settings)?)
        .max_sse_event_size(MAX_MESSAGE_BYTES);
    let mut backoff = ExponentialBackoff::default();
    backoff.max_delay = Some(MAX_STREAM_BACKOFF);
    config.retry_config = Arc::new(backoff);
    let client = AuthClient::new(BoundedHttpClient(client), manager);
    let start = |mode: ClientLifecycleMode| {
        let transport = StreamableHttpClientTransport::with_client(client.clone(), config.clone());
        Arc::clone(handler).serve_with_lifecycle(transport, mode)
    };
    Ok(match start(lifecycle()).await {
        // Some servers of the protocol with a handshake answer everything that they don't know with an empty result, and some say that
        // they speak no other.
        Err(
            ClientInitializeError::ExpectedInitResult(_)
            | ClientInitializeError::NoCompatibleProtocolVersion { .. },
        ) => start(ClientLifecycleMode::Initialize).await,
        started => started,
    })
}

/// What a failed start comes from.
fn start_cause(error: &ClientInitializeError) -> &(dyn StdError + 'static) {
    match error {
        ClientInitializeError::TransportError { error, .. } => error.error.as_ref(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => start_cause(fallback),
        other => other,
    }
}

/// What a failed request comes from.
pub(crate) fn service_cause(error: &ServiceError) -> &(dyn StdError + 'static) {
    match error {
        ServiceError::TransportSend(error) => error.error.as_ref(),
        other => other,
    }
}

/// Whether a request has certainly not reached the part of the server that does something.
pub(crate) fn was_not_taken(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(current) = cause {
        match current.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::Client(error)) if error.is_connect() => return true,
            Some(StreamableHttpError::SessionExpired | StreamableHttpError::SessionRecoveryTimeout) => {
                return true;
            }
            _ => cause = current.source(),
        }
    }
    false
}

pub(crate) fn http_headers(settings: &ServerSettings) -> Result<HashMap<HeaderName, HeaderValue>> {
    let header = |(name, value): (&String, &String)| {
        let wrong = |reason: &str| Error::Settings(format!("the header {name:?} {reason}"));
        let value = expand_variables(value, |name| std::env::var(name).ok())
            .map_err(|missing| wrong(&format!("needs the variable {missing}, which is not set")))?;
        let mut value =
            HeaderValue::from_str(&value).map_err(|_| wrong("has a value that HTTP does not allow"))?;
        value.set_sensitive(true);
        let name = name.parse().map_err(|_| wrong("has a name that HTTP does not allow"))?;
        Ok((name, value))
    };
    settings.headers.iter().map(header).collect()
}

/// The innermost error, which says what happened.
pub(crate) fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    loop {
        let of_client = match cause.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::Client(inner)) => Some(inner as &(dyn StdError + 'static)),
            _ => None,
        };
        match of_client.or(cause.source()) {
            Some(inner) => cause = inner,
            None => return cause.to_string(),
        }
    }
}
