//! A kind of subagent: a Markdown file with a front matter. `name`, `description`, `tools` and `model` are as in `.claude/agents`; the
//! text after the front matter is the prompt of the kind.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::SkillError;
use crate::document::{parse_yaml, scalar_text, split_front_matter, too_long, tool_names};

const MAX_NAME_CHARS: usize = 64;
const MAX_DESCRIPTION_CHARS: usize = 1_024;
/// Values of `model` that mean nothing here: the parent's model, and other programs' short names for models.
const OTHER_MODELS: [&str; 4] = ["inherit", "sonnet", "opus", "haiku"];
/// Names of tools in `.claude/agents`, and the names here.
const OTHER_TOOL_NAMES: [(&str, &str); 13] = [
    ("Read", "read_file"),
    ("Write", "write_file"),
    ("Edit", "edit_file"),
    ("MultiEdit", "edit_file"),
    ("LS", "list_files"),
    ("Glob", "find_files"),
    ("Grep", "search_text"),
    ("Bash", "exec"),
    ("BashOutput", "task_output"),
    ("KillShell", "task_kill"),
    ("TodoWrite", "todo"),
    ("WebFetch", "web_fetch"),
    ("WebSearch", "web_search"),
];

/// A kind of subagent that can be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentKind {
    pub name: String,
    /// When to use it.
    pub description: String,
    /// The only tools that it may use. `None`: all that its parent may use.
    pub tools: Option<Vec<String>>,
    /// As `provider/model`. `None`: that of its parent.
    pub model: Option<String>,
    /// Its instructions, in addition to the prompt of each call.
    pub prompt: String,
}

#[derive(Debug, Deserialize)]
struct KindFrontMatter {
    name: Option<Value>,
    description: Option<Value>,
    tools: Option<Value>,
    model: Option<Value>,
    // Other programs have further fields, such as a colour.
    #[serde(flatten)]
    _other: BTreeMap<String, Value>,
}

/// Parses the file of a kind. The error has everything that is wrong with it.
pub fn parse_agent_kind(text: &str) -> Result<AgentKind, SkillError> {
    let (yaml, body) = split_front_matter(text)?;
    let (front_matter, _) = parse_yaml::<KindFrontMatter>(yaml)?;
    let text_of = |value: &Option<Value>| {
        value
            .as_ref()
            .and_then(scalar_text)
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    };
    let mut reasons = Vec::new();
    let name = text_of(&front_matter.name).unwrap_or_default();
    match name.as_str() {
        "" => reasons.push("the front matter has no name".to_owned()),
        name => {
            reasons.extend(too_long("name", name, MAX_NAME_CHARS));
            if !name.chars().all(|character| character.is_alphanumeric() || "-_".contains(character)) {
                reasons.push(format!(
                    "its name {name:?} may have only letters, digits, hyphens and underscores"
                ));
            }
        }
    }
    let description = text_of(&front_matter.description).unwrap_or_default();
    match description.as_str() {
        "" => reasons.push("the front matter has no description".to_owned()),
        description => reasons.extend(too_long("description", description, MAX_DESCRIPTION_CHARS)),
    }
    let model = text_of(&front_matter.model).filter(|model| !OTHER_MODELS.contains(&model.as_str()));
    let tools =
        front_matter.tools.map(tool_names).map(|names| names.iter().map(|name| own_name(name)).collect());
    if tools.as_ref().is_some_and(Vec::is_empty) {
        reasons.push("its tools are empty; leave the field out for all tools".to_owned());
    }
    match reasons.is_empty() {
        true => Ok(AgentKind { name, description, tools, model, prompt: body.trim().to_owned() }),
        false => Err(SkillError::Invalid { reasons }),
    }
}

/// The name of a tool as it is called here.
fn own_name(name: &str) -> String {
    let other = OTHER_TOOL_NAMES.iter().find(|(other, _)| *other == name);
    other.map_or_else(|| name.strip_prefix("mcp__").unwrap_or(name), |(_, own)| own).to_owned()
}

#[cfg(test)]
#[path = "agent_kind_tests.rs"]
mod tests;
