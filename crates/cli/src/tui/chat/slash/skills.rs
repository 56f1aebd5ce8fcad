//! `/skills`, and `/NAME`, which starts a skill.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use longhaul_agent::Config;
use longhaul_agent::skills::{find_skills, skill_request};

use super::{CommandContext, SlashInput, parse_line};
use crate::commands::skills::{NO_SKILLS, skill_lines};
use crate::output::sanitize;

/// A skill that the user can start by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkillCommand {
    /// Without the slash.
    pub(crate) name: String,
    pub(crate) description: String,
}

/// The skills that the user can start, as they were when they were last looked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct SkillCommands(Arc<Mutex<Vec<SkillCommand>>>);

impl SkillCommands {
    /// Looks for skills in a thread of its own, so that the chat does not wait for it.
    pub(crate) fn search_in_background(config: &Config) -> Self {
        let (skills, config) = (Self::default(), config.clone());
        let found = skills.clone();
        // Without a thread, names are not completed until one is typed.
        drop(
            std::thread::Builder::new()
                .name("skills".to_owned())
                .spawn(move || found.search(&config, &config.work_dir)),
        );
        skills
    }

    fn search(&self, config: &Config, work_dir: &Path) {
        let library = find_skills(config, work_dir);
        let skills = library.ready().map(|(skill, document)| SkillCommand {
            name: skill.name.clone(),
            description: document.description.clone(),
        });
        let mut skills: Vec<SkillCommand> = skills.collect();
        skills.sort_by(|one, other| one.name.cmp(&other.name));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = skills;
    }

    /// The skills whose names begin with this.
    pub(crate) fn starting_with(&self, part: &str) -> Vec<SkillCommand> {
        let skills = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        skills.iter().filter(|skill| skill.name.starts_with(part)).cloned().collect()
    }

    /// Parses a line. A name that is no command may be that of a server's prompt, or a skill's, which is looked for now.
    pub(crate) async fn parse_line(&self, line: &str, config: &Config) -> SlashInput {
        let (name, arguments, mistake) = match parse_line(line) {
            SlashInput::Unknown { name, arguments, mistake } => (name, arguments, mistake),
            entry => return entry,
        };
        let server = name.strip_prefix('/').and_then(|name| Some(name.split_once(':')?.0));
        if server.is_some_and(|server| config.has_server(server)) {
            return SlashInput::Start(line.trim().to_owned());
        }
        let (skills, config) = (self.clone(), config.clone());
        let searched = tokio::task::spawn_blocking(move || skills.search(&config, &config.work_dir)).await;
        let is_skill = |skill: &SkillCommand| name.strip_prefix('/') == Some(&skill.name);
        match searched.is_ok() && self.starting_with("").iter().any(is_skill) {
            true => SlashInput::Start(skill_request(&name[1..], &arguments)),
            false => SlashInput::Mistake(mistake),
        }
    }
}

/// `/skills`: all skills of the session's work folder, and what the list for the model leaves out.
pub(crate) async fn run(context: &mut CommandContext<'_>) -> anyhow::Result<()> {
    let state = context.session.state().await?;
    let created = state.created.as_ref().and_then(|created| created.work_dir.clone());
    let work_dir = created.map_or_else(|| context.config.work_dir.clone(), Into::into);
    let config = context.config.clone();
    let library = tokio::task::spawn_blocking(move || find_skills(&config, &work_dir)).await?;
    let mut lines = skill_lines(&library);
    if lines.is_empty() {
        lines.push(NO_SKILLS.to_owned());
    }
    lines.extend(library.notes.clone());
    if let Some(left_out) = longhaul_agent::skills::left_out_note(&state) {
        lines.push(format!("what the model is told of them: {left_out}"));
    }
    let in_use: Vec<&str> = state.active_skills.iter().map(|skill| skill.name.as_str()).collect();
    if !in_use.is_empty() {
        lines.push(format!("in use: {}", in_use.join(", ")));
    }
    context.printer.page(&sanitize(&lines.join("\n")));
    Ok(())
}
