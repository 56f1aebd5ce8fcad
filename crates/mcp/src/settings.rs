//! The settings of `[mcp]`: which servers there are, and how long they may take.

use std::collections::BTreeMap;
use std::path::Path;

use longhaul_protocol::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MCP servers and their limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpSettings {
    /// Seconds that the first request of an epoch waits for servers that are starting.
    pub start_timeout_s: u64,
    /// Seconds after which an unused server is ended.
    #[schemars(range(min = 1))]
    pub idle_s: u64,
    /// With more tools than this, their schemas are not sent: the model finds tools with tools_find.
    pub defer_past: u64,
    /// The same if the descriptions and schemas of all tools have more tokens than this, by estimate.
    pub defer_past_tokens: u64,
    /// The servers, by name: `[mcp.servers.NAME]`.
    pub servers: BTreeMap<String, ServerSettings>,
}

impl Default for McpSettings {
    fn default() -> Self {
        Self {
            start_timeout_s: 10,
            idle_s: 300,
            defer_past: 40,
            defer_past_tokens: 20_000,
            servers: BTreeMap::new(),
        }
    }
}

/// One MCP server: a command that speaks over its standard input and output, or the address of an HTTP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSettings {
    /// The program to start.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The address of an HTTP server, in place of `command`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Names of environment variables that the program gets, in addition to PATH and the like.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// HTTP headers. A value may contain `${VARIABLE}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The client that you registered for the login at an HTTP server: its id, or the https address of its metadata. Without it,
    /// Longhaul registers itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_id: String,
    /// Name of the environment variable with that client's secret, if it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_secret_env: String,
    /// The tools to offer; all, if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Whether the sessions of one folder share the server.
    pub shared: bool,
    /// Seconds that a call may take without an answer or a sign of progress.
    #[schemars(range(min = 1))]
    pub timeout_s: u64,
    /// Whether the server is used.
    pub enabled: bool,
    /// Variables with their values, as a `.mcp.json` may have them. A value may contain `${VARIABLE}`.
    #[serde(skip)]
    pub variables: BTreeMap<String, String>,
    /// Whether a trusted project or an editor brought it. Then its command, arguments and address may have variables, too.
    #[serde(skip)]
    pub is_of_folder: bool,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            command: String::new(),
            args: Vec::new(),
            url: String::new(),
            env: Vec::new(),
            headers: BTreeMap::new(),
            client_id: String::new(),
            client_secret_env: String::new(),
            tools: Vec::new(),
            shared: true,
            timeout_s: 60,
            enabled: true,
            variables: BTreeMap::new(),
            is_of_folder: false,
        }
    }
}

impl ServerSettings {
    /// The variables of our environment whose values are keys and tokens: all that headers and logins use, and those of the program that
    /// are named like a secret, in our environment or in its own.
    pub fn secret_variables(&self) -> Vec<String> {
        let named = self.env.iter().filter(|name| is_named_like_a_secret(name)).cloned();
        let passed_on = self.variables.iter().flat_map(|(name, value)| {
            let is_secret = is_named_like_a_secret(name);
            named_variables(value).into_iter().filter(move |ours| is_secret || is_named_like_a_secret(ours))
        });
        let of_url = named_variables(&self.url).into_iter().filter(|name| is_named_like_a_secret(name));
        let of_call = self.command_line_variables().chain(self.request_variables());
        named.chain(passed_on).chain(of_call).chain(of_url).collect()
    }

    /// The settings with the variables in the address, which a project or an editor may have written, replaced by their values. An address
    /// with a variable that is not set stays as it is.
    pub(crate) fn with_expanded_url(mut self) -> Self {
        if self.is_of_folder
            && let Ok(url) = expand_variables(&self.url, |name| std::env::var(name).ok())
        {
            self.url = url;
        }
        self
    }

    /// Keys and tokens that are written in these settings: in headers, in variables that are named like a secret, and in the address.
    pub fn written_secrets(&self) -> Vec<String> {
        let variables = self.variables.iter().filter(|(name, _)| is_named_like_a_secret(name));
        let headers = self.headers.iter().filter(|(name, _)| Self::is_secret_header(name));
        let written = variables.chain(headers).map(|(_, value)| value).filter(|value| !value.contains("${"));
        // A header names the scheme before the token.
        let written = written.map(|value| value.rsplit(' ').next().unwrap_or(value).to_owned());
        written.chain(self.address_secrets()).collect()
    }

    /// The password in the address, and the values in its query that are named like a key, as they are written and as they are meant.
    fn address_secrets(&self) -> Vec<String> {
        let Ok(url) = reqwest::Url::parse(&self.url) else { return vec![] };
        let written = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            is_named_like_a_secret(name).then(|| value.to_owned())
        };
        let query = url.query().into_iter().flat_map(|query| query.split('&')).filter_map(written);
        let meant = url.query_pairs().filter(|(name, _)| is_named_like_a_secret(name));
        let meant = meant.map(|(_, value)| value.into_owned());
        url.password().map(str::to_owned).into_iter().chain(query).chain(meant).collect()
    }

    /// Whether the value of a header is a key or a token.
    pub fn is_secret_header(name: &str) -> bool {
        name.eq_ignore_ascii_case("authorization")
            || name.eq_ignore_ascii_case("cookie")
            || is_named_like_a_secret(name)
    }

    /// The variables of our environment that are named like a key or a token and whose values stand in the command line.
    fn command_line_variables(&self) -> impl Iterator<Item = String> {
        // Only those of a project's or an editor's server are replaced there.
        let words = std::iter::once(&self.command).chain(&self.args).filter(|_| self.is_of_folder);
        words.flat_map(|word| named_variables(word)).filter(|name| is_named_like_a_secret(name))
    }

    /// The variables of our environment whose values go into headers and into a login.
    fn request_variables(&self) -> Vec<String> {
        let of_login = Some(self.client_secret_env.clone()).filter(|name| !name.is_empty());
        let of_headers = self.headers.values().flat_map(|value| named_variables(value));
        of_headers.chain(of_login).collect()
    }
}

/// The variables that a value names.
fn named_variables(value: &str) -> Vec<String> {
    let names = std::cell::RefCell::new(Vec::new());
    let _ = expand_variables(value, |name| {
        names.borrow_mut().push(name.to_owned());
        Some(String::new())
    });
    names.into_inner()
}

/// Whether the name of a variable looks like that of a key or a token.
fn is_named_like_a_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"].iter().any(|word| name.contains(word))
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportKind {
    Stdio,
    Http,
}

impl ServerSettings {
    /// How the server is reached, or what is missing.
    pub fn transport(&self) -> Result<TransportKind, &'static str> {
        match (self.command.is_empty(), self.url.is_empty()) {
            (false, true) => Ok(TransportKind::Stdio),
            (true, false) => Ok(TransportKind::Http),
            (true, true) => Err("it needs a `command` or a `url`"),
            (false, false) => Err("it has both a `command` and a `url`; remove one"),
        }
    }

    /// Identifies these settings, so that a server with other settings is another server.
    pub(crate) fn fingerprint(&self) -> String {
        short_hash(&(self, &self.variables))
    }

    /// Identifies what lists the tools. What a program is depends on the folder that it begins in, too: what runs in one folder must not
    /// choose the words that the model reads in another.
    pub(crate) fn catalogue_fingerprint(&self, work_dir: Option<&Path>) -> String {
        match work_dir.filter(|_| !self.command.is_empty()) {
            Some(work_dir) => short_hash(&(self, &self.variables, work_dir)),
            None => self.fingerprint(),
        }
    }

    /// Identifies what starts the program in a place. Servers with the same one may share what the program keeps for itself; `session` is
    /// the only one that uses it, if it is not shared.
    pub(crate) fn program_fingerprint(&self, work_dir: &Path, session: Option<SessionId>) -> String {
        let session = session.map(|session| session.to_string());
        short_hash(&(&self.command, &self.args, &self.env, &self.variables, work_dir, session))
    }
}

fn short_hash(identity: &impl Serialize) -> String {
    let text = serde_json::to_string(identity).unwrap_or_default();
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

/// Why a name can't be the name of a server. Its tools are named `NAME__tool`, and models take only these characters.
pub fn check_server_name(name: &str) -> Result<(), String> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    let problem = match name {
        "" => "it is empty",
        _ if name.len() > 32 => "it is longer than 32 characters",
        _ if !name.chars().all(is_allowed) => "use letters, digits, `-` and `_`",
        _ if name.contains("__") || name.ends_with('_') => "`__` separates it from the name of a tool",
        _ => return Ok(()),
    };
    Err(format!("{name:?} can't be the name of an MCP server: {problem}"))
}

/// A value with each `${NAME}` or `${NAME:-default}` replaced, or the name of the variable that is not set.
pub(crate) fn expand_variables(
    text: &str,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        expanded.push_str(&rest[..start]);
        let (name, default) = match rest[start + 2..start + length].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&rest[start + 2..start + length], None),
        };
        let value = lookup(name).or_else(|| default.map(str::to_owned)).ok_or_else(|| name.to_owned())?;
        expanded.push_str(&value);
        rest = &rest[start + length + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
