//! `tools_find` and `tools_call`: with many tools, the model searches for the ones that it needs, and their schemas are not
//! part of every request.

use std::sync::Arc;

use async_trait::async_trait;
use longhaul_protocol::Effect;
use longhaul_tools::{
    PreparedCall, Tool, ToolDefinition, ToolInvocation, ToolOutcome, parse_arguments, schema_of,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::FolderServers;
use crate::catalogue::CatalogueTool;

pub(crate) const TOOLS_FIND: &str = "tools_find";
/// The tool that calls others by name. The runtime treats such a call as a call of the other tool.
pub const TOOLS_CALL: &str = "tools_call";
const MAX_FOUND: usize = 10;

/// What tools_find takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindArguments {
    /// What the tool should do, in a few words, or part of its name.
    query: String,
}

/// What tools_call takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "the runtime unwraps such a call; this is for the schema")]
struct CallArguments {
    /// The tool's name, as tools_find gives it.
    name: String,
    /// The arguments, as the tool's schema says.
    #[schemars(with = "std::collections::BTreeMap<String, Value>")]
    arguments: Value,
}

/// Both tools.
pub(crate) fn search_tools(servers: &FolderServers) -> [Arc<dyn Tool>; 2] {
    [
        Arc::new(ToolsFind { definition: find_definition(servers), servers: servers.clone() }),
        Arc::new(ToolsCall { definition: call_definition() }),
    ]
}

/// Their descriptions, for `docs/tools.md`.
pub fn search_tool_definitions() -> [ToolDefinition; 2] {
    [definition_of_find(""), call_definition()]
}

fn definition_of_find(servers: &str) -> ToolDefinition {
    ToolDefinition {
        name: TOOLS_FIND.into(),
        description: format!(
            "Find tools of the connected MCP servers{servers}. Gives the name, description and arguments of the best matches; call \
             them with {TOOLS_CALL}."
        )
        .into(),
        effect: Effect::Read,
        schema: schema_of::<FindArguments>(),
        limits: &[
            "It is there only with more tools than `mcp.defer_past`, or larger ones than `mcp.defer_past_tokens`, or while a server was not ready when the epoch began.",
            "At most 10 tools are found at once.",
        ],
        example: r#"{"query": "create an issue"}"#,
    }
}

fn find_definition(servers: &FolderServers) -> ToolDefinition {
    let names = servers.names().join(", ");
    definition_of_find(&format!(" ({names})"))
}

fn call_definition() -> ToolDefinition {
    ToolDefinition {
        name: TOOLS_CALL.into(),
        description: format!("Call a tool that {TOOLS_FIND} found.").into(),
        effect: Effect::Unknown,
        schema: schema_of::<CallArguments>(),
        limits: &["Approval, effect and limits are those of the tool that it calls."],
        example: r#"{"name": "github__create_issue", "arguments": {"title": "It leaks"}}"#,
    }
}

/// The tool of a server and the arguments that a call of `tools_call` names. `None` if it names none.
pub fn unwrap_tools_call(arguments: &str) -> Option<(String, String)> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wrapped {
        name: String,
        #[serde(default)]
        arguments: Option<Value>,
    }
    let wrapped: Wrapped = serde_json::from_str(arguments).ok()?;
    crate::folder_servers::split_name(&wrapped.name)?;
    let arguments = match wrapped.arguments {
        None | Some(Value::Null) => json!({}),
        // Some models write the object as a text.
        Some(Value::String(text)) => return Some((wrapped.name, text)),
        Some(arguments) => arguments,
    };
    Some((wrapped.name, arguments.to_string()))
}

struct ToolsFind {
    definition: ToolDefinition,
    servers: FolderServers,
}

#[async_trait]
impl Tool for ToolsFind {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, call: &ToolInvocation) -> Result<PreparedCall, ToolOutcome> {
        let FindArguments { query } = parse_arguments(&self.definition, &call.arguments)?;
        let (servers, session) = (self.servers.clone(), call.session);
        Ok(PreparedCall::new(move |_| async move {
            servers.wait_until_ready(session).await;
            let catalogues: Vec<_> =
                servers.usable(session).filter_map(|server| server.catalogue()).collect();
            let tools = catalogues.iter().flat_map(|catalogue| &catalogue.tools);
            let failed = servers.statuses(Some(session)).into_iter().filter_map(|status| {
                Some(format!("The MCP server {} can't be used: {}", status.name, status.reason?))
            });
            let found = describe_matches(&query, tools);
            ToolOutcome::ok(std::iter::once(found).chain(failed).collect::<Vec<_>>().join("\n\n"))
        }))
    }
}

/// The tools that match a query best, with what is needed to call them.
fn describe_matches<'a>(query: &str, tools: impl Iterator<Item = &'a CatalogueTool>) -> String {
    let words: Vec<String> = words_of(query).collect();
    let mut scored: Vec<(u64, &CatalogueTool)> = tools
        .map(|tool| (score(&words, tool), tool))
        .filter(|(score, _)| *score > 0 || words.is_empty())
        .collect();
    // A stable sort: equal ones stay in the order of their names.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    if scored.is_empty() {
        return format!("No tool matches {query:?}. Try other words, or one word of what it should do.");
    }
    let more = scored.len().saturating_sub(MAX_FOUND);
    let mut text: Vec<String> = scored
        .iter()
        .take(MAX_FOUND)
        .map(|(_, tool)| format!("{}\n{}\narguments: {}", tool.name, tool.description.trim(), tool.schema))
        .collect();
    if more > 0 {
        text.push(format!("({more} more match; use more words)"));
    }
    text.join("\n\n")
}

/// A word in the name counts more than one in the description.
fn score(words: &[String], tool: &CatalogueTool) -> u64 {
    let name: Vec<String> = words_of(&tool.name).collect();
    let description: Vec<String> = words_of(&tool.description).collect();
    let has = |texts: &[String], word: &str| {
        let stem = word.strip_suffix('s').filter(|stem| stem.len() > 2).unwrap_or(word);
        texts.iter().any(|text| text.starts_with(stem))
    };
    words.iter().map(|word| 3 * u64::from(has(&name, word)) + u64::from(has(&description, word))).sum()
}

fn words_of(text: &str) -> impl Iterator<Item = String> {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// Never runs: the runtime makes the call of the named tool out of it.
struct ToolsCall {
    definition: ToolDefinition,
}

#[async_trait]
impl Tool for ToolsCall {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, _call: &ToolInvocation) -> Result<PreparedCall, ToolOutcome> {
        Err(ToolOutcome::error(format!(
            "{TOOLS_CALL} was not run: there is no tool of that name; it takes a `name` that {TOOLS_FIND} gave, and `arguments`"
        )))
    }
}

#[cfg(test)]
#[path = "tools_find_tests.rs"]
mod tests;
