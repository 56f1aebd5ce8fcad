//! The servers for the sessions of one folder, and the tools that they offer to an epoch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use longhaul_protocol::{Effect, SessionId, ToolSchema};
use longhaul_tools::Tool;

use crate::catalogue::CatalogueTool;
use crate::http_connection;
use crate::launch::ServerPlace;
use crate::login::{Challenge, Login, LoginState};
use crate::remote_tool::RemoteTool;
use crate::server::Server;
use crate::tools_find::{self, TOOLS_CALL, TOOLS_FIND};
use crate::{
    Error, McpServers, Result, ServerSettings, ServerState, ServerStatus, TransportKind, check_server_name,
};

/// Bytes of JSON for each token, by estimate.
const BYTES_PER_TOKEN: usize = 4;
/// Tools that a note names. A server may have any number.
const MAX_NAMED: usize = 20;

/// The servers for the sessions of one folder.
#[derive(Clone)]
pub struct FolderServers {
    pool: McpServers,
    servers: Arc<BTreeMap<String, ServerSettings>>,
    place: Option<ServerPlace>,
}

/// The tools of an epoch, which stay the same until the next one, whatever the servers do.
#[derive(Clone, Default)]
pub struct ToolOffer {
    /// Sorted by server, then name.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The same tools as they are recorded and sent.
    pub schemas: Vec<ToolSchema>,
}

/// What has changed in the tools of a server since an epoch began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolChanges {
    pub server: String,
    /// One line for each kind of change, which begins with [`ToolChanges::line_prefix`]. Empty if nothing has changed.
    pub lines: Vec<String>,
}

impl ToolChanges {
    /// The beginning of each line about the server.
    pub fn line_prefix(&self) -> String {
        format!("the MCP server {} ", self.server)
    }
}

impl FolderServers {
    pub(crate) fn new(
        pool: McpServers,
        servers: BTreeMap<String, ServerSettings>,
        place: Option<ServerPlace>,
    ) -> Self {
        Self { pool, servers: Arc::new(servers), place }
    }

    /// All servers of the runtime.
    pub fn pool(&self) -> &McpServers {
        &self.pool
    }

    /// Whether a session of the folder has no servers.
    pub fn is_empty(&self, session: SessionId) -> bool {
        self.servers.is_empty() && self.pool.session_servers(session).is_empty()
    }

    /// The names of the servers of all sessions.
    pub fn names(&self) -> Vec<&str> {
        self.servers.keys().map(String::as_str).collect()
    }

    /// Whether a session has a server of this name.
    pub fn has_server(&self, session: SessionId, name: &str) -> bool {
        self.settings_of(session, name).is_some()
    }

    /// Starts all servers in the background, unless they run.
    pub fn start(&self, session: SessionId) {
        self.usable(session).for_each(|server| server.start());
    }

    /// Waits until each server is ready or has failed, but not longer than `start_timeout_s`.
    pub async fn wait_until_ready(&self, session: SessionId) {
        let limit = Duration::from_secs(self.pool.settings().start_timeout_s);
        let servers: Vec<_> = self.usable(session).collect();
        servers.iter().for_each(|server| server.start());
        let all = async {
            for server in &servers {
                server.settled().await;
            }
        };
        let _ = tokio::time::timeout(limit, all).await;
    }

    /// Whether all servers run.
    pub fn are_ready(&self, session: SessionId) -> bool {
        self.usable(session).all(|server| server.live_catalogue().is_some())
    }

    /// Whether the tools of all servers are known, of this run or of an earlier one, so that an epoch needs to wait for none. One that
    /// has failed since it ran is not waited for: its tools are found by search once it runs.
    pub fn are_known(&self, session: SessionId) -> bool {
        self.usable(session).all(|server| server.catalogue().is_some())
    }

    /// The tools that the servers offer, as far as they are known, for a new epoch. If a server turns out to have other tools once it
    /// runs, a note says so.
    pub fn offer(&self, session: SessionId) -> ToolOffer {
        let servers: Vec<_> = self.usable(session).collect();
        let known: Vec<_> = servers.iter().map(|server| server.offered_catalogue()).collect();
        let is_deferred = self.should_defer(known.iter().flatten().flat_map(|catalogue| &catalogue.tools));
        // The tools of a server that is still starting are found by search, so that this epoch can use them.
        let is_incomplete =
            known.iter().any(|catalogue| catalogue.as_ref().is_none_or(|found| found.tools.is_empty()));
        let mut offer = ToolOffer::default();
        for (server, catalogue) in servers.iter().zip(&known) {
            for tool in catalogue.iter().flat_map(|catalogue| &catalogue.tools).filter(|_| !is_deferred) {
                offer.schemas.push(tool.to_schema());
                offer.tools.push(self.remote_tool(server, tool));
            }
        }
        if !servers.is_empty() && (is_deferred || is_incomplete) {
            self.add_search(&mut offer);
        }
        offer
    }

    /// Whether these are too many or too large to be sent with each request.
    fn should_defer<'a>(&self, tools: impl Iterator<Item = &'a CatalogueTool>) -> bool {
        let size =
            |tool: &CatalogueTool| tool.name.len() + tool.description.len() + tool.schema.to_string().len();
        let (count, bytes) =
            tools.fold((0_u64, 0_usize), |(count, bytes), tool| (count + 1, bytes + size(tool)));
        let settings = self.pool.settings();
        count > settings.defer_past || (bytes / BYTES_PER_TOKEN) as u64 > settings.defer_past_tokens
    }

    /// The tools that an epoch began with, from its record. `None` if they don't fit the configured servers any more: then a
    /// new epoch has to begin.
    pub fn restore(&self, session: SessionId, recorded: &[ToolSchema]) -> Option<ToolOffer> {
        let servers: BTreeMap<String, Arc<Server>> =
            self.usable(session).map(|server| (server.name().to_owned(), server)).collect();
        let has_search = recorded.iter().any(|schema| schema.name == TOOLS_FIND);
        let mut offer = ToolOffer::default();
        let mut met: Vec<&str> = Vec::new();
        for schema in recorded.iter().filter(|schema| !is_search(&schema.name)) {
            let (server_name, _) = split_name(&schema.name)?;
            let server = servers.get(server_name)?;
            met.push(server_name);
            let known = server.catalogue();
            let effect = known
                .as_ref()
                .and_then(|known| known.find(&schema.name))
                .map_or(Effect::Unknown, |tool| tool.effect);
            let tool = RemoteTool::new(self.clone(), server_name, schema.clone(), effect);
            offer.schemas.push(schema.clone());
            offer.tools.push(Arc::new(tool));
        }
        if has_search {
            self.add_search(&mut offer);
        }
        let is_known = |name: &String| met.contains(&name.as_str());
        (has_search || servers.keys().all(is_known)).then_some(offer)
    }

    /// What has changed in the tools of each running server since the epoch with these began, for the model.
    pub fn describe_changes(&self, session: SessionId, recorded: &[ToolSchema]) -> Vec<ToolChanges> {
        let has_search = recorded.iter().any(|schema| schema.name == TOOLS_FIND);
        let is_deferred = has_search && recorded.iter().all(|schema| is_search(&schema.name));
        let mut changes = Vec::new();
        for server in self.usable(session) {
            let Some(live) = server.live_catalogue() else { continue };
            let (name, mut lines) = (server.name(), Vec::new());
            let of_server =
                |schema: &&ToolSchema| split_name(&schema.name).is_some_and(|(server, _)| server == name);
            let before: Vec<&ToolSchema> = recorded.iter().filter(of_server).collect();
            if before.is_empty() {
                if !is_deferred && !live.tools.is_empty() {
                    lines.push(format!(
                        "the MCP server {name} is ready now; find its {} tools with {TOOLS_FIND}",
                        live.tools.len()
                    ));
                }
                changes.push(ToolChanges { server: name.to_owned(), lines });
                continue;
            }
            let is_gone = |schema: &&&ToolSchema| live.find(&schema.name).is_none();
            let gone = list_names(before.iter().filter(is_gone).map(|schema| schema.name.as_str()));
            let is_new = |tool: &&CatalogueTool| !before.iter().any(|schema| schema.name == tool.name);
            let new = list_names(live.tools.iter().filter(is_new).map(|tool| tool.name.as_str()));
            let is_changed = |schema: &&&ToolSchema| {
                live.find(&schema.name).is_some_and(|tool| tool.schema != schema.parameters)
            };
            let changed = list_names(before.iter().filter(is_changed).map(|schema| schema.name.as_str()));
            if let Some(gone) = gone {
                lines.push(format!("the MCP server {name} no longer has {gone}"));
            }
            if let Some(changed) = changed {
                lines.push(format!("the MCP server {name} has changed the arguments of {changed}; an error says what it takes"));
            }
            if let Some(new) = new {
                lines.push(format!(
                    "the MCP server {name} now also has {new}, which you can call after the next compaction"
                ));
            }
            changes.push(ToolChanges { server: name.to_owned(), lines });
        }
        changes
    }

    /// A tool by its name, even if its schema was not sent.
    pub fn find_tool(&self, session: SessionId, name: &str) -> Option<Arc<dyn Tool>> {
        let (server_name, _) = split_name(name)?;
        let server = self.server(server_name, session)?;
        let catalogue = server.catalogue()?;
        Some(self.remote_tool(&server, catalogue.find(name)?))
    }

    /// The states of all servers of the folder.
    pub fn statuses(&self, session: Option<SessionId>) -> Vec<ServerStatus> {
        let status = |(name, settings): (&String, &ServerSettings)| match (check_server_name(name), session) {
            (Err(reason), _) => failed_status(name, settings, reason),
            (Ok(()), Some(session)) if settings.shared => {
                self.pool.server(name, settings, self.place.as_ref(), session).status()
            }
            // Showing the state must not create a server for a session.
            (Ok(()), Some(session)) => {
                let known = self.pool.known_server(name, settings, self.place.as_ref(), session);
                known.map_or_else(|| unused_status(name, settings), |server| server.status())
            }
            (Ok(()), None) => {
                let used = self.pool.used();
                let known = used.iter().find(|server| server.name() == name && server.settings() == settings);
                known.map_or_else(|| unused_status(name, settings), |server| server.status())
            }
        };
        let own = session.map(|session| self.pool.session_servers(session)).unwrap_or_default();
        let own = own.iter().filter(|(name, _)| !self.servers.contains_key(*name));
        self.servers.iter().chain(own).map(status).collect()
    }

    /// Starts a server and waits for it. For checks by the user.
    pub async fn check(&self, name: &str, session: SessionId) -> Option<ServerStatus> {
        let settings = self.servers.get(name)?;
        if let Err(reason) = check_server_name(name) {
            return Some(failed_status(name, settings, reason));
        }
        let server = self.server(name, session)?;
        server.settled().await;
        Some(server.status())
    }

    /// Begins the login at a server. `None` if there is no such server.
    pub async fn login(&self, name: &str) -> Option<Result<Login>> {
        let settings = self.servers.get(name)?;
        Some(self.begin_login(name, settings).await)
    }

    async fn begin_login(&self, name: &str, settings: &ServerSettings) -> Result<Login> {
        let host = self.pool.host();
        let access = host.login(name, settings);
        if settings.transport() != Ok(TransportKind::Http) {
            return Err(Error::Settings("it is a program on this machine, and needs no login".to_owned()));
        }
        if access.has_own_token() {
            let reason = "its `headers` have a token; remove that to log in";
            return Err(Error::Settings(reason.to_owned()));
        }
        let challenge = http_connection::ask_for_challenge(host.http()?.clone(), &access).await?;
        let challenge = match (challenge, access.store.state()) {
            (Some(challenge), _) => challenge,
            (None, LoginState::Needed | LoginState::LoggedIn) => Challenge { header: None, scopes: vec![] },
            (None, LoginState::NotNeeded) => {
                return Err(Error::Settings("it answers without a login".to_owned()));
            }
        };
        Login::begin(access, &challenge).await
    }

    /// Forgets the login at a server. `None` if there is no such server, false if there was no login.
    pub fn logout(&self, name: &str) -> Option<Result<bool>> {
        let settings = self.servers.get(name)?;
        Some(self.pool.host().login(name, settings).store.remove())
    }

    /// Whether the user is logged in at a server, as far as is known without asking it. `None` if there is no such server.
    pub fn login_state(&self, name: &str) -> Option<LoginState> {
        let settings = self.servers.get(name)?;
        Some(self.pool.host().login(name, settings).store.state())
    }

    pub(crate) fn server(&self, name: &str, session: SessionId) -> Option<Arc<Server>> {
        let settings = self.settings_of(session, name)?;
        Some(self.pool.server(name, &settings, self.place.as_ref(), session))
    }

    /// The servers with usable names, in their order.
    pub(crate) fn usable(&self, session: SessionId) -> impl Iterator<Item = Arc<Server>> {
        let mut servers = self.pool.session_servers(session);
        // The user's own servers win, as over a project's.
        servers.extend(self.servers.iter().map(|(name, settings)| (name.clone(), settings.clone())));
        let named = servers.into_iter().filter(|(name, _)| check_server_name(name).is_ok());
        named.map(move |(name, settings)| self.pool.server(&name, &settings, self.place.as_ref(), session))
    }

    fn settings_of(&self, session: SessionId, name: &str) -> Option<ServerSettings> {
        self.servers.get(name).cloned().or_else(|| self.pool.session_servers(session).remove(name))
    }

    fn remote_tool(&self, server: &Server, tool: &CatalogueTool) -> Arc<dyn Tool> {
        Arc::new(RemoteTool::new(self.clone(), server.name(), tool.to_schema(), tool.effect))
    }

    fn add_search(&self, offer: &mut ToolOffer) {
        for tool in tools_find::search_tools(self) {
            offer.schemas.push(tool.definition().to_schema());
            offer.tools.push(tool);
        }
    }
}

/// Whether a name is that of a tool of a server, or of the two that find and call them.
pub fn is_mcp_tool(name: &str) -> bool {
    is_search(name) || split_name(name).is_some()
}

fn is_search(name: &str) -> bool {
    name == TOOLS_FIND || name == TOOLS_CALL
}

/// The server and the tool in `server__tool`.
pub(crate) fn split_name(name: &str) -> Option<(&str, &str)> {
    name.split_once("__").filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

fn list_names<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.collect();
    let shown = names.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    let rest = names.len().saturating_sub(MAX_NAMED);
    let shown = if rest > 0 { format!("{shown} and {rest} more") } else { shown };
    (!names.is_empty()).then_some(shown)
}

fn unused_status(name: &str, settings: &ServerSettings) -> ServerStatus {
    ServerStatus {
        name: name.to_owned(),
        state: ServerState::Stopped,
        reason: settings.transport().err().map(str::to_owned),
        transport: settings.transport().ok(),
        protocol: None,
        tools: vec![],
        warnings: vec![],
    }
}

fn failed_status(name: &str, settings: &ServerSettings, reason: String) -> ServerStatus {
    ServerStatus { state: ServerState::Failed, reason: Some(reason), ..unused_status(name, settings) }
}
