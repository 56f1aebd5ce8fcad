//! The HTTP part of `longhaul serve`: what has to be right before it starts, and what it says.

use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::mpsc::sync_channel;

use longhaul_agent::{ClusterToken, Config, Runtime};
use longhaul_journal::Journal as _;
use longhaul_protocol::PrintablePath;
use longhaul_server::{
    AccessLog, HttpTokenFile, RecordedToken, RestoredTokens, Scope, Server, ServerOptions, Tls, TokenStore,
    VARIABLE_NAME, find_recorded_token, list_tokens,
};
use tokio::net::{TcpListener, TcpSocket};

use super::port::bind_error;
use crate::args::{GlobalArgs, ServeOptions};
use crate::bad_usage;
use crate::commands::restore::revoked_line;
use crate::commands::token::LOST_TOKENS;
use crate::output::note;

/// Connections that wait to be accepted. The system may allow fewer.
const BACKLOG: u32 = 4096;
/// Lines of the access log that wait to be printed.
const QUEUED_LOG_LINES: usize = 4096;
/// A token of the environment that is shorter than this can be guessed.
const MIN_TOKEN_BYTES: usize = 16;

/// An HTTP server that has its port and its tokens, and does not answer yet.
pub(super) struct PreparedServer {
    listener: TcpListener,
    tokens: TokenStore,
    options: ServerOptions,
    /// Lines for the user, once the server answers.
    notes: Vec<String>,
}

impl PreparedServer {
    /// Binds the port and finds the tokens. Clients that connect from now on wait until [`start`](Self::start).
    pub(super) async fn prepare(
        globals: &GlobalArgs,
        config: &Config,
        options: &ServeOptions,
    ) -> anyhow::Result<Self> {
        let settings = &config.settings.server;
        let tls = match (&settings.tls_cert, &settings.tls_key) {
            (Some(certificate), Some(key)) => {
                Some(Tls::load(certificate, key).map_err(|error| bad_usage(error.to_string()))?)
            }
            (None, None) => None,
            _ => return Err(bad_usage("TLS needs both server.tls_cert and server.tls_key")),
        };
        let wanted = options.listen.as_deref().unwrap_or(&settings.listen);
        let listener = bind(wanted)?;
        let address = listener.local_addr()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{address}/");
        let mut notes = vec![format!("listening on {url}")];
        let tokens = find_tokens(globals, config, address, &url, &mut notes).await?;
        if !address.ip().is_loopback() && tls.is_none() {
            notes.push(format!(
                "warning: {address} is reachable from other machines without TLS, so tokens can be read on the way; set server.tls_cert \
                 and server.tls_key, or listen on loopback behind a reverse proxy"
            ));
        }
        let options = ServerOptions {
            max_body_bytes: usize::try_from(settings.max_body_bytes).unwrap_or(usize::MAX),
            allowed_hosts: settings.allowed_hosts.clone(),
            allowed_origins: settings.allowed_origins.clone(),
            tls,
            cluster_token: ClusterToken::from_variable(config.settings.node.token_env.as_deref())?,
            access_log: (globals.verbose > 0).then(print_access_log),
            ..ServerOptions::default()
        };
        Ok(Self { listener, tokens, options, notes })
    }

    /// Answers requests.
    pub(super) fn start(mut self, runtime: &Runtime, home: &Path) -> anyhow::Result<Server> {
        // The secret of the home's sockets. Without it, pages have to sign in again after a restart.
        if let Ok(secret) = std::fs::read(home.join("run").join("token")) {
            self.options.cookie_secret = secret;
        }
        let server = Server::start(self.listener, runtime.clone(), self.tokens, &self.options)?;
        self.notes.iter().for_each(note);
        Ok(server)
    }
}

/// Binds an address such as `127.0.0.1:7171` or `localhost:7171`.
fn bind(wanted: &str) -> anyhow::Result<TcpListener> {
    let address: SocketAddr = match wanted.to_socket_addrs().map(|mut addresses| addresses.next()) {
        Ok(Some(address)) => address,
        _ => {
            return Err(bad_usage(format!(
                "{wanted:?} is not an address to listen on; use one such as 127.0.0.1:7171 (--listen or server.listen)"
            )));
        }
    };
    let listen = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Connections of a process that has just ended must not keep the next one from the port.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listen().map_err(|error| bind_error(address, &error))
}

/// The tokens to accept. Makes one at the first start on loopback, and refuses to serve other machines without one that a
/// person made.
async fn find_tokens(
    globals: &GlobalArgs,
    config: &Config,
    address: SocketAddr,
    url: &str,
    notes: &mut Vec<String>,
) -> anyhow::Result<TokenStore> {
    let variable = config.settings.server.token_env.as_deref();
    let given = variable.and_then(|name| Some((name, std::env::var(name).ok()?.trim().to_owned())));
    let given = given.filter(|(_, token)| !token.is_empty());
    let journal = globals.open_or_create_journal().await?;
    let revoked = RestoredTokens::in_home(&config.home).revoke(&journal).await;
    let made = list_tokens(&journal).await;
    let recorded = match &given {
        Some((name, token)) => find_recorded_token(&journal, token).await.map(|found| Some((*name, found?))),
        None => Ok(None),
    };
    journal.close().await;
    let (made, revoked) = (made?, revoked?);
    if !revoked.is_empty() {
        notes.push(revoked_line(&revoked));
    }
    if made.has_lost_record {
        notes.push(LOST_TOKENS.to_owned());
    }
    if let Some((name, token)) = recorded? {
        check_given_token(name, &token)?;
    }
    let has_token = given.is_some() || !made.tokens.is_empty();
    let file = HttpTokenFile::in_home(&config.home);
    let is_loopback = address.ip().is_loopback();
    if !is_loopback && !has_token {
        return Err(bad_usage(format!(
            "{address} is reachable from other machines, so it needs a token that you made: run `longhaul token new --scope admin \
             --name NAME`, or set {}",
            variable.unwrap_or("server.token_env")
        )));
    }
    // The user's own, also beside tokens for programs; not if it was revoked, or the variable has it.
    let is_wanted = if file.is_revoked() { !has_token } else { given.is_none() };
    if is_loopback && file.read()?.is_none() && is_wanted {
        file.create()?;
        let path = file.path().printable();
        notes.push(format!("made a token for you, with all rights (scope admin): {path}"));
        notes.push(format!("to open the console: {url} in a browser, and sign in with that token"));
        notes.push(format!(
            "from a program: curl -H \"Authorization: Bearer $(cat {path})\" {url}api/sessions"
        ));
    }
    let mut tokens = TokenStore::with_file(is_loopback.then(|| file.path().to_owned()));
    if let Some((name, token)) = given {
        if token.len() < MIN_TOKEN_BYTES {
            notes.push(format!("warning: the token in {name} is short enough to be guessed; `longhaul token new` makes better ones"));
        }
        tokens.insert(VARIABLE_NAME, Scope::Admin, &token);
    }
    Ok(tokens)
}

/// Refuses a token in the variable `name` that was made for less, or was revoked: the variable would make it an admin token that
/// `token revoke` can't end.
fn check_given_token(name: &str, token: &RecordedToken) -> anyhow::Result<()> {
    let RecordedToken { name: token_name, scope, is_revoked } = token;
    let why = match is_revoked {
        true => "which was revoked".to_owned(),
        false if *scope < Scope::Admin => format!("which has the scope {scope}"),
        false => return Ok(()),
    };
    Err(bad_usage(format!(
        "{name} holds the token {token_name:?}, {why}, and the token in that variable has all rights; unset {name} for `longhaul serve` \
         (tokens of `longhaul token new` count without it)"
    )))
}

/// Prints the access log from a thread of its own, so that no request waits for standard error.
fn print_access_log() -> AccessLog {
    let (lines, queue) = sync_channel::<String>(QUEUED_LOG_LINES);
    std::thread::spawn(move || {
        for line in queue {
            if writeln!(std::io::stderr().lock(), "{line}").is_err() {
                return;
            }
        }
    });
    lines
}
