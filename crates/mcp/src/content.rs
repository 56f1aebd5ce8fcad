//! What messages can take from servers: resources, which a user attaches with `@server:uri`, and prompts, which a user starts with
//! `/server:prompt`. Both are a server's text: the caller sends them as data (P8).

use std::sync::Arc;

use longhaul_protocol::SessionId;
use longhaul_tools::ToolImage;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, ReadResourceRequestParams,
    ReadResourceResponse, Role,
};

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
    /// At most 256 KiB. The end says how much was cut.
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
        let connection = self.connect(session, server_name).await?;
        let params = ReadResourceRequestParams::new(uri);
        let response = connection.answer(connection.peer().read_resource_once(params)).await?;
        let ReadResourceResponse::Complete(result) = response else { return Err(question_outside_call()) };
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
        let connection = self.connect(session, server_name).await?;
        let listed = connection.answer(list_prompts(&connection, server_name)).await?;
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
        let response = connection.answer(connection.peer().get_prompt_once(params)).await?;
        match response {
            GetPromptResponse::Complete(result) => Ok(prompt_content(&result)),
            _ => Err(question_outside_call()),
        }
    }

    async fn connect(&self, session: SessionId, server_name: &str) -> Result<Arc<Connection>> {
        let server = self
            .server(server_name, session)
            .ok_or_else(|| Error::Settings("it is not configured".to_owned()))?;
        let connection = server.ready().await?;
        connection.calls().touch();
        Ok(connection)
    }
}

/// A server may ask questions only in a tool call, because each question belongs to the session of a call.
fn question_outside_call() -> Error {
    Error::Refused("it asks a question first, which it may do only in a tool call".to_owned())
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
        text.push_str(&format!("\n[{left_out} bytes left out]"));
    }
    ServerContent { text, images }
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
