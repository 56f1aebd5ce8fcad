//! Skills in an editor: `/NAME` starts one, and the editor lists them as commands.

use longhaul_agent::UserMessage;
use longhaul_agent::skills::{find_skills, skill_request};
use serde_json::{Value, json};

use super::SessionTask;
use super::slash::is_command;

/// A skill that the user can start by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SkillCommand {
    name: String,
    description: String,
}

impl SkillCommand {
    /// The command, as the editor lists it.
    pub(super) fn to_json(&self) -> Value {
        let hint = "what to do with it";
        json!({"name": self.name, "description": self.description, "input": {"hint": hint}})
    }
}

impl SessionTask {
    /// The skills of the work folder that can be used now. A command of the same name comes first.
    pub(super) async fn find_skill_commands(&self) -> Vec<SkillCommand> {
        let (config, work_dir) = (self.setup.runtime.config().clone(), self.setup.work_dir.clone());
        let found = tokio::task::spawn_blocking(move || {
            let library = find_skills(&config, &work_dir);
            let ready = library.ready().filter(|(skill, _)| !is_command(&skill.name));
            let skills = ready.map(|(skill, document)| SkillCommand {
                name: skill.name.clone(),
                description: document.description.clone(),
            });
            skills.collect()
        });
        found.await.unwrap_or_default()
    }

    /// The message to send for this one: `/NAME` of a skill becomes the request to use it. Skills are looked up now.
    pub(super) async fn start_skill(&self, message: UserMessage) -> UserMessage {
        let Some(line) = message.text.trim().strip_prefix('/') else { return message };
        let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match self.find_skill_commands().await.iter().any(|skill| skill.name == name) {
            true => UserMessage { text: skill_request(name, arguments.trim()), ..message },
            false => message,
        }
    }
}
