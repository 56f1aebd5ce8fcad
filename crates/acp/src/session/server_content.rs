//! What a prompt takes from MCP servers: `@server:uri` attaches a resource, `/server:prompt` starts a prompt. And the servers that the
//! editor brings, which this session has while the editor has it open.

use std::time::Duration;

use longhaul_agent::mcp::PromptEntry;
use longhaul_agent::{SessionServers, UserMessage};
use longhaul_protocol::SessionId;
use serde_json::{Value, json};

use super::prompts::AwaitedEnd;
use super::skills::SkillCommand;
use super::slash::{SlashOutcome, available_commands};
use super::{SessionTask, SlashEnd};
use crate::error::{Error, Result};
use crate::wire::update::SessionUpdate;

/// How often to check whether servers have answered with their lists.
const LIST_POLL_INTERVAL: Duration = Duration::from_millis(100);

impl SessionTask {
    /// Gives the session the servers of the editor. A server that it has already goes on running.
    pub(super) fn start_editor_servers(&self, id: SessionId) {
        self.setup.runtime.set_session_servers(id, self.setup.servers.clone());
    }

    /// Ends the servers of the editor.
    pub(super) fn end_editor_servers(&self) {
        if let Some(id) = self.setup.session.id() {
            self.setup.runtime.set_session_servers(id, Default::default());
        }
    }

    /// The servers of the session, if the message names one of them.
    pub(super) async fn attaching_servers(&self, message: &UserMessage) -> Result<Option<SessionServers>> {
        if !self.has_servers() {
            return Ok(None);
        }
        let servers = self.setup.runtime.session_servers(&self.setup.session).await?;
        Ok(servers.are_named_in(&message.text).then_some(servers))
    }

    /// Asks the servers beside the task: the editor may cancel meanwhile.
    pub(super) fn start_attaching(&mut self, id: &Value, message: UserMessage, servers: SessionServers) {
        self.prompts.push(id.clone(), AwaitedEnd::Slash);
        let (ends, prompt) = (self.slash_ends.0.clone(), id.clone());
        self.running_commands += 1;
        tokio::spawn(async move {
            let attached = servers.attach(message).await;
            let outcome =
                attached.map(SlashOutcome::Message).map_err(|why| Error::params("session/prompt", why));
            let _ = ends.send(SlashEnd { prompt, outcome }).await;
        });
    }

    /// Asks running servers for their prompts, which become commands of the editor.
    pub(super) async fn list_prompts(&self) {
        if !self.has_servers() {
            return;
        }
        let Ok(servers) = self.setup.runtime.session_servers(&self.setup.session).await else { return };
        let lists = self.prompt_lists.0.clone();
        tokio::spawn(async move {
            let mut list = servers.content_list();
            while list.is_loading && !lists.is_closed() {
                tokio::time::sleep(LIST_POLL_INTERVAL).await;
                list = servers.content_list();
            }
            let _ = lists.send(list.prompts).await;
        });
    }

    pub(super) async fn show_prompts(&mut self, prompts: Vec<PromptEntry>) {
        if self.server_prompts != prompts {
            self.server_prompts = prompts;
            self.show_commands().await;
        }
    }

    /// Lists the commands in the editor.
    pub(super) async fn show_commands(&self) {
        let command = |prompt: &PromptEntry| {
            let name = format!("{}:{}", prompt.server, prompt.name);
            match prompt.usage().as_str() {
                "" => json!({"name": name, "description": prompt.description}),
                usage => json!({"name": name, "description": prompt.description, "input": {"hint": usage}}),
            }
        };
        let mut available_commands = available_commands();
        available_commands.extend(self.skills.iter().map(SkillCommand::to_json));
        available_commands.extend(self.server_prompts.iter().map(command));
        self.show(SessionUpdate::AvailableCommandsUpdate { available_commands }).await;
    }

    fn has_servers(&self) -> bool {
        !self.setup.servers.is_empty() || self.setup.runtime.config().has_servers()
    }
}
