//! `longhaul mcp-probe URL`: what a session does with a server, without a session. The conformance suite of MCP starts it.
//!
//! It uses the client that sessions use, and plays the user: it agrees to every login in place of a browser, and takes the defaults
//! of every question. What to call with which arguments comes from the suite, or else every tool is called once.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use longhaul_agent::Config;
use longhaul_agent::mcp::{FolderServers, LoginState, ServerSettings, ServerState};
use longhaul_agent::tools::{
    CallLine, CallMessageContent, GuardedClient, OutputLimit, StopSignal, ToolInvocation, ToolOutcome,
    WebLimits,
};
use longhaul_protocol::{CallId, SessionId};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::exit;
use crate::output::{line, note};

const SERVER: &str = "probe";
/// A login that is refused again and again ends after this many.
const MAX_LOGINS: usize = 3;
/// The id of the client that the suite knows, where it offers to look an id up.
const CLIENT_METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";
const CLIENT_SECRET_VARIABLE: &str = "LONGHAUL_PROBE_CLIENT_SECRET";

/// What the suite tells its client, in `MCP_CONFORMANCE_CONTEXT`.
#[derive(Debug, Default, Deserialize)]
struct SuiteContext {
    client_id: Option<String>,
    client_secret: Option<String>,
    #[serde(default, rename = "toolCalls")]
    calls: Vec<SuiteCall>,
}

#[derive(Debug, Deserialize)]
struct SuiteCall {
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// A home that is removed at the end.
struct ProbeHome(PathBuf);

impl Drop for ProbeHome {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) async fn run(url: &str) -> anyhow::Result<u8> {
    let home = ProbeHome(std::env::temp_dir().join(format!("longhaul-probe-{}", SessionId::generate())));
    let context = match std::env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => {
            serde_json::from_str(&text).context("MCP_CONFORMANCE_CONTEXT is not what the suite sends")?
        }
        Err(_) => SuiteContext::default(),
    };
    // Settings only name the variable with a secret, so that one has to be in the environment.
    if let Some(secret) =
        context.client_secret.as_ref().filter(|_| std::env::var_os(CLIENT_SECRET_VARIABLE).is_none())
    {
        let again = Command::new(std::env::current_exe()?)
            .args(["mcp-probe", url])
            .env(CLIENT_SECRET_VARIABLE, secret)
            .status()?;
        return Ok(if again.success() { exit::DONE } else { exit::FAILED });
    }
    let settings = ServerSettings {
        url: url.to_owned(),
        client_id: context.client_id.clone().unwrap_or_else(|| CLIENT_METADATA_URL.to_owned()),
        client_secret_env: CLIENT_SECRET_VARIABLE.to_owned(),
        ..ServerSettings::default()
    };
    let mut config = Config::at(&home.0);
    config.settings.mcp.servers = [(SERVER.to_owned(), settings)].into();
    // The suite's servers are on this machine, and name each other.
    config.settings.web.allow = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let servers = longhaul_agent::configured_servers(&config)?;
    let mut probe = Probe { config, servers, session: SessionId::generate(), logins: 0 };
    let outcome = probe.call_tools(&context.calls).await;
    probe.servers.pool().stop_all();
    outcome.map(|()| exit::DONE)
}

struct Probe {
    config: Config,
    servers: FolderServers,
    session: SessionId,
    logins: usize,
}

impl Probe {
    async fn call_tools(&mut self, wanted: &[SuiteCall]) -> anyhow::Result<()> {
        let tools = self.list_tools().await?;
        note(format!("{} tools", tools.len()));
        if wanted.is_empty() {
            for name in &tools {
                let arguments = self.sample_arguments(name)?;
                self.call(name, &arguments).await?;
            }
        }
        for SuiteCall { name, arguments } in wanted {
            self.call(&format!("{SERVER}__{name}"), arguments).await?;
        }
        Ok(())
    }

    /// The tools of the server, after as many logins as it asks for.
    async fn list_tools(&mut self) -> anyhow::Result<Vec<String>> {
        loop {
            let status =
                self.servers.check(SERVER, self.session).await.ok_or_else(|| anyhow!("no server"))?;
            match (status.state, self.needs_login()) {
                (ServerState::Ready, _) => return Ok(status.tools),
                (_, true) => self.log_in().await?,
                (_, false) => bail!("{}", status.reason.unwrap_or_default()),
            }
        }
    }

    async fn call(&mut self, name: &str, arguments: &Value) -> anyhow::Result<()> {
        loop {
            let outcome = self.call_once(name, arguments).await?;
            if outcome.is_error && self.needs_login() {
                self.log_in().await?;
                continue;
            }
            return line(format!("{name}: {}", outcome.content));
        }
    }

    async fn call_once(&self, name: &str, arguments: &Value) -> anyhow::Result<ToolOutcome> {
        let tool = self.servers.find_tool(self.session, name).ok_or_else(|| anyhow!("no tool {name}"))?;
        let call = ToolInvocation {
            id: CallId::generate(),
            session: self.session,
            arguments: arguments.to_string(),
            seen: Arc::default(),
            output_limit: OutputLimit::default(),
            tasks: Arc::new([]),
            confinement: Default::default(),
            skill_folders: Arc::new([]),
            may_fetch: Default::default(),
            turn: Default::default(),
        };
        let (said, mut messages) = tokio::sync::mpsc::unbounded_channel();
        let (_handle, stop) = StopSignal::pair();
        let stop = stop.with_line(CallLine::new(call.id, said));
        let prepared = match tool.prepare(&call).await {
            Ok(prepared) => prepared,
            Err(refused) => return Ok(refused),
        };
        let mut running = (prepared.run)(stop);
        loop {
            tokio::select! {
                outcome = &mut running => return Ok(outcome),
                Some(message) = messages.recv() => match message.content {
                    // Tools of servers start no tasks of the session.
                    CallMessageContent::StartTask { .. } => {}
                    CallMessageContent::RemoteTask { recorded, .. } => drop(recorded.send(())),
                    // Nothing but the defaults.
                    CallMessageContent::Ask { answer, .. } => drop(answer.send(String::new())),
                },
            }
        }
    }

    /// Arguments that fit the schema of a tool.
    fn sample_arguments(&self, name: &str) -> anyhow::Result<Value> {
        let tool = self.servers.find_tool(self.session, name).ok_or_else(|| anyhow!("no tool {name}"))?;
        Ok(sample_value(&tool.definition().schema))
    }

    fn needs_login(&self) -> bool {
        self.servers.login_state(SERVER) == Some(LoginState::Needed)
    }

    /// Logs in as a browser would whose user agrees to everything.
    async fn log_in(&mut self) -> anyhow::Result<()> {
        self.logins += 1;
        if self.logins > MAX_LOGINS {
            bail!("the server still wants a login after {MAX_LOGINS} of them");
        }
        let login = self.servers.login(SERVER).await.ok_or_else(|| anyhow!("no server"))??;
        let guard = longhaul_agent::network_guard(&self.config)?;
        let browser = GuardedClient::new(guard, WebLimits::default());
        let response = browser.request("GET".parse()?, login.url())?.send().await?;
        let location =
            response.headers().get("location").ok_or_else(|| anyhow!("the login page leads nowhere"))?;
        login.finish(location.to_str()?).await?;
        Ok(())
    }
}

/// A value that fits a schema, as far as its types say.
fn sample_value(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            Value::Object(
                fields.map(|(name, field)| (name.clone(), sample_value(field))).collect::<Map<_, _>>(),
            )
        }
        Some("array") => json!([]),
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(1),
        Some("null") => Value::Null,
        _ => schema["enum"].get(0).cloned().unwrap_or_else(|| json!("text")),
    }
}
