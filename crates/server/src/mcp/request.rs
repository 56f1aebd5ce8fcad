//! What a request says about its client: the revision of the protocol, and what the client can do.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hyper::HeaderMap;
use longhaul_jsonrpc::Params;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::{McpError, McpResult};

/// The revision without a handshake.
pub(super) const STATELESS_VERSION: &str = "2026-07-28";
/// All revisions, the newest first. Those after the first begin with `initialize`.
pub(super) const SUPPORTED_VERSIONS: [&str; 4] =
    [STATELESS_VERSION, "2025-11-25", "2025-06-18", "2025-03-26"];
/// The extension for tasks, in the stateless revision.
pub(super) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_INFO_KEY: &str = "io.modelcontextprotocol/clientInfo";
const VERSION_HEADER: &str = "MCP-Protocol-Version";
const METHOD_HEADER: &str = "Mcp-Method";
const NAME_HEADER: &str = "Mcp-Name";

/// How client and server talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Revision {
    /// The client begins with `initialize`: up to 2025-11-25.
    Handshake,
    /// Each request says everything about its client: from 2026-07-28 on.
    Stateless,
}

/// The client of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClientContext {
    pub(super) revision: Revision,
    /// It wants a task in place of a result that takes long.
    pub(super) wants_task: bool,
    /// It can show a form to its user.
    pub(super) has_forms: bool,
    /// What it calls itself, if the request says so.
    pub(super) name: Option<String>,
    /// The token that notifications about progress have to carry; absent if the client wants none.
    pub(super) progress_token: Option<Value>,
}

/// The parameters that any request may have.
#[derive(Debug, Deserialize)]
struct CommonParams {
    #[serde(rename = "_meta", default)]
    meta: Map<String, Value>,
    /// In the revision of 2025-11-25, a client asks for a task with each call.
    #[serde(default)]
    task: Option<Value>,
}

impl ClientContext {
    /// The client of a request over HTTP, whose headers must agree with its body.
    pub(super) fn of_http(method: &str, params: &Params, headers: &HeaderMap) -> McpResult<Self> {
        let common = read_common(method, params)?;
        let header = header_text(headers, VERSION_HEADER);
        let version = match (header, common.meta.get(VERSION_KEY)) {
            (None, None) => return Ok(common.of_handshake()),
            (Some(header), None) if header == STATELESS_VERSION => {
                return Err(McpError::meta(format!("{VERSION_KEY} is missing")));
            }
            (Some(header), None) if SUPPORTED_VERSIONS.contains(&header) => return Ok(common.of_handshake()),
            (Some(header), None) => return Err(McpError::unsupported_version(header)),
            (header, Some(version)) => {
                let version = version.as_str().unwrap_or_default();
                if header != Some(version) {
                    return Err(McpError::header_mismatch(VERSION_HEADER, version));
                }
                version
            }
        };
        check_version(version)?;
        check_routing_headers(method, params, headers)?;
        common.of_stateless()
    }

    /// The client of a request over standard input.
    pub(super) fn of_line(method: &str, params: &Params) -> McpResult<Self> {
        let common = read_common(method, params)?;
        match common.meta.get(VERSION_KEY) {
            None => Ok(common.of_handshake()),
            Some(version) => {
                check_version(version.as_str().unwrap_or_default())?;
                common.of_stateless()
            }
        }
    }
}

impl CommonParams {
    fn of_handshake(self) -> ClientContext {
        ClientContext {
            revision: Revision::Handshake,
            wants_task: self.task.is_some_and(|task| task.is_object()),
            has_forms: false,
            name: None,
            progress_token: self.meta.get("progressToken").cloned(),
        }
    }

    fn of_stateless(self) -> McpResult<ClientContext> {
        let capabilities = self.meta.get(CAPABILITIES_KEY).and_then(Value::as_object);
        let capabilities =
            capabilities.ok_or_else(|| McpError::meta(format!("{CAPABILITIES_KEY} must be an object")))?;
        let has_extension = |id| capabilities.get("extensions").is_some_and(|all| all.get(id).is_some());
        // A client that names no mode has forms.
        let forms = |modes: &Map<String, Value>| modes.is_empty() || modes.contains_key("form");
        let name = self.meta.get(CLIENT_INFO_KEY).and_then(|info| info["name"].as_str());
        Ok(ClientContext {
            revision: Revision::Stateless,
            wants_task: has_extension(TASKS_EXTENSION),
            has_forms: capabilities.get("elicitation").and_then(Value::as_object).is_some_and(forms),
            name: name.map(str::to_owned),
            progress_token: self.meta.get("progressToken").cloned(),
        })
    }
}

fn read_common(method: &str, params: &Params) -> McpResult<CommonParams> {
    params.parse().map_err(|error| McpError::params(method, error))
}

fn check_version(version: &str) -> McpResult<()> {
    if version == STATELESS_VERSION { Ok(()) } else { Err(McpError::unsupported_version(version)) }
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// The headers by which a proxy may route a request say the same as the body.
fn check_routing_headers(method: &str, params: &Params, headers: &HeaderMap) -> McpResult<()> {
    if header_text(headers, METHOD_HEADER) != Some(method) {
        return Err(McpError::header_mismatch(METHOD_HEADER, method));
    }
    let field = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    let body: Map<String, Value> = params.parse().map_err(|error| McpError::params(method, error))?;
    let Some(name) = body.get(field).and_then(Value::as_str) else { return Ok(()) };
    let header = header_text(headers, NAME_HEADER).and_then(decode_header);
    if header.as_deref() != Some(name) {
        return Err(McpError::header_mismatch(NAME_HEADER, name));
    }
    Ok(())
}

/// The value of a header. Text that a header can't hold comes as `=?base64?…?=`.
fn decode_header(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(BASE64.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
