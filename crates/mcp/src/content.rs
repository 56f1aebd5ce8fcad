//! What servers have for messages: resources, which a user attaches with `@server:uri`, and prompts, which a user starts with
//! `/server:prompt`. Both are a server's text: the caller sends them as data (P8).

use std::time::Duration;

use longhaul_protocol::SessionId;
use longhaul_tools::ToolImage;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, ReadResourceRequestParams,
    ReadResourceResponse, Role,
};
use rmcp::service::ServiceError;

use crate::connection::Connection;
use crate::content_list::list_prompts;
use crate::prompt_arguments::parse_arguments;
use crate::result_content::ContentParts;
use crate::{Error, FolderServers, Result};

/// Bytes of a resource's or a prompt's text that are kept, as for a file that a message names.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Prompts that an error names.
const MAX_NAMED_PROMPTS: usize = 20;

/// The content of a resource or a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerContent {
    /// At most 256 KiB. What is cut is said at its end.
    pub text: String,
    pub images: Vec<ToolImage>,
}

impl FolderServers {
    /// Reads a resource. Starts the server if it does not run.
    pub async fn read_resource(
        &self,
        session: SessionId,
        server_name: &str,
        uri: &str,
    ) -> Result<ServerContent> {
        let (connection, timeout) = self.connect(session, server_name).await?;
        let params = ReadResourceRequestParams::new(uri);
        let response = answer(&connection, timeout, connection.peer().read_resource_once(params)).await?;
        let ReadResourceResponse::Complete(result) = response else { return Err(asks_first()) };
        let mut parts = ContentParts::default();
        result.contents.iter().for_each(|contents| parts.add_resource(contents));
        Ok(capped(parts))
    }

    /// Fills in a prompt with the arguments that the user typed behind its name. Starts the server if it does not run.
    pub async fn get_prompt(
        &self,
        session: SessionId,
        server_name: &str,
        prompt: &str,
        arguments: &str,
    ) -> Result<ServerContent> {
        let (connection, timeout) = self.connect(session, server_name).await?;
        let listed = answer(&connection, timeout, list_prompts(&connection, server_name)).await?;
        let Some(entry) = listed.iter().find(|entry| entry.name == prompt) else {
            let names: Vec<&str> =
                listed.iter().take(MAX_NAMED_PROMPTS).map(|entry| entry.name.as_str()).collect();
            return Err(Error::Refused(match names.is_empty() {
                true => "it has no prompts".to_owned(),
                false => format!("it has no prompt {prompt:?}; its prompts are {}", names.join(", ")),
            }));
        };
        let arguments = parse_arguments(&entry.parameters, arguments).map_err(Error::Refused)?;
        let params = GetPromptRequestParams::new(prompt).with_arguments(arguments);
        let response = answer(&connection, timeout, connection.peer().get_prompt_once(params)).await?;
        match response {
            GetPromptResponse::Complete(result) => Ok(prompt_content(&result)),
            _ => Err(asks_first()),
        }
    }

    async fn connect(
        &self,
        session: SessionId,
        server_name: &str,
    ) -> Result<(std::sync::Arc<Connection>, Duration)> {
        let server = self
            .server(server_name, session)
            .ok_or_else(|| Error::Settings("it is not configured".to_owned()))?;
        let connection = server.ready().await?;
        connection.calls().touch();
        Ok((connection, Duration::from_secs(server.settings().timeout_s)))
    }
}

/// The answer to a request, within the server's time.
async fn answer<T>(
    connection: &Connection,
    timeout: Duration,
    request: impl Future<Output = std::result::Result<T, ServiceError>>,
) -> Result<T> {
    match tokio::time::timeout(timeout, request).await {
        Ok(Ok(answered)) => Ok(answered),
        Ok(Err(error)) => Err(connection.explain(error).await),
        Err(_) => Err(Error::Timeout { seconds: timeout.as_secs() }),
    }
}

/// Questions of a server belong to a call of a session, and there is none yet.
fn asks_first() -> Error {
    Error::Refused("it asks questions before it gives that, which it can only do in a tool call".to_owned())
}

/// The messages of a prompt. Where there are several, each says whose it is.
fn prompt_content(result: &GetPromptResult) -> ServerContent {
    let is_plain = matches!(result.messages.as_slice(), [only] if matches!(only.role, Role::User));
    let mut parts = ContentParts::default();
    for message in &result.messages {
        if !is_plain {
            let role = match message.role {
                Role::Assistant => "assistant:",
                _ => "user:",
            };
            parts.add_text(role);
        }
        parts.add_block(&message.content);
    }
    capped(parts)
}

fn capped(parts: ContentParts) -> ServerContent {
    let (mut text, images) = parts.into_text_and_images();
    if text.len() > MAX_TEXT_BYTES {
        let left_out = text.len() - MAX_TEXT_BYTES;
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push_str(&format!("\n[{left_out} bytes are left out]"));
    }
    ServerContent { text, images }
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
