//! What strict servers refuse about the order of roles, in their own words.

use serde_json::Value;

use super::{ReceivedRequest, Reply};

/// A rule about the messages of an openai-chat request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleRule {
    /// Qwen's template: a system message stands first or nowhere.
    SystemFirst,
    /// Gemma's template: there is no system message.
    NoSystem,
    /// Llama's and Mistral's templates: user and assistant take turns, the user begins.
    Alternate,
    /// Mistral: an assistant message follows the results of tools.
    AssistantAfterTool,
    /// Mistral: the user or a tool has the last word.
    UserOrToolLast,
    /// Most servers: no message is without content.
    NoEmptyContent,
}

impl RoleRule {
    /// What the server says about messages that break the rule.
    pub fn broken_by(self, messages: &[Value]) -> Option<String> {
        let role = |message: &Value| message["role"].as_str().unwrap_or_default().to_owned();
        let roles: Vec<String> = messages.iter().map(role).collect();
        let spoken: Vec<&str> = roles.iter().map(String::as_str).filter(|role| *role != "tool").collect();
        let after_tool =
            roles.windows(2).find(|pair| pair[0] == "tool" && !["tool", "assistant"].contains(&&*pair[1]));
        match self {
            Self::SystemFirst => roles
                .iter()
                .skip(1)
                .any(|role| role == "system")
                .then(|| "System message must be at the beginning.".to_owned()),
            Self::NoSystem => {
                roles.iter().any(|role| role == "system").then(|| "System role not supported".to_owned())
            }
            Self::Alternate => {
                let spoken = if spoken.first() == Some(&"system") { &spoken[1..] } else { &spoken[..] };
                let begins = spoken.first() == Some(&"user");
                let in_turn = spoken.windows(2).all(|pair| {
                    matches!((pair[0], pair[1]), ("user", "assistant") | ("assistant", "user" | "assistant"))
                });
                (!begins || !in_turn).then(|| {
                    "Conversation roles must alternate user/assistant/user/assistant/...".to_owned()
                })
            }
            Self::AssistantAfterTool => {
                after_tool.map(|pair| format!("Unexpected role '{}' after role 'tool'", pair[1]))
            }
            Self::UserOrToolLast => roles.last().filter(|role| !["user", "tool"].contains(&role.as_str())).map(|role| {
                format!("Expected last role User or Tool (or Assistant with prefix True) for serving but got {role}")
            }),
            Self::NoEmptyContent => {
                let is_empty = |message: &&Value| match message.get("content") {
                    None => message.get("tool_calls").is_none(),
                    Some(content) => content.is_null() || content.as_str() == Some(""),
                };
                messages.iter().find(is_empty).map(|_| "messages: content must not be empty".to_owned())
            }
        }
    }

    /// What a server with these rules answers to a request that breaks one: a 400 with its words.
    pub fn refuse(rules: &[Self], seen: &ReceivedRequest) -> Option<Reply> {
        let body = seen.json();
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let words = rules.iter().find_map(|rule| rule.broken_by(messages))?;
        let error = serde_json::json!({"error": {"message": words, "type": "BadRequestError", "code": 400}});
        Some(Reply::error(400, error.to_string()))
    }
}
