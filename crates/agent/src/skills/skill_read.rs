//! `read_file` of `skill:NAME` and `skill:NAME/FILE`; of `skill:` alone, which lists all skills with their descriptions.

use std::path::PathBuf;
use std::sync::Arc;

use longhaul_context::LINE_BREAKS;
use longhaul_protocol::{PrintablePath, SkillShown, printable};
use longhaul_skills::{DOCUMENT, SkillFile, SkillFileKind};
use longhaul_tools::{PreparedCall, ToolOutcome};

use super::library::{SkillContent, find_skills, read_skill};
use crate::runtime::RuntimeShared;
use crate::turn::full_output::{ReadArguments, select_lines};

const PATH_PREFIX: &str = "skill:";
/// Files of a skill that its first line names.
const MAX_NAMED_FILES: usize = 50;

/// Prepares a call of `read_file` that reads a skill. `None` for any other call. Nothing is read before the call runs.
pub(crate) fn prepare_skill_read(
    runtime: &Arc<RuntimeShared>,
    work_dir: Option<PathBuf>,
    tool: &str,
    arguments: &str,
) -> Option<PreparedCall> {
    let arguments: ReadArguments = serde_json::from_str(arguments).ok().filter(|_| tool == "read_file")?;
    let wanted = arguments.path.strip_prefix(PATH_PREFIX)?.to_owned();
    let (runtime, work_dir) = (runtime.clone(), work_dir?);
    Some(PreparedCall::new(move |_stop| async move {
        let read = move || read_wanted(&runtime, &work_dir, &wanted, &arguments);
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|_| ToolOutcome::error("reading the skill failed unexpectedly"))
    }))
}

fn read_wanted(
    runtime: &RuntimeShared,
    work_dir: &std::path::Path,
    wanted: &str,
    arguments: &ReadArguments,
) -> ToolOutcome {
    let config = &runtime.config;
    if wanted.is_empty() {
        let library = find_skills(config, work_dir);
        let line = |description: &str| description.split(LINE_BREAKS).collect::<Vec<_>>().join(" ");
        let mut lines: Vec<String> = library
            .ready()
            .map(|(skill, document)| format!("- {}: {}", skill.name, line(&document.description)))
            .collect();
        lines.sort();
        return match lines.is_empty() {
            true => ToolOutcome::ok("there are no skills"),
            false => ToolOutcome::ok(select_lines(&lines.join("\n"), arguments)),
        };
    }
    let (name, file) = match wanted.split_once('/') {
        Some((name, file)) if file != DOCUMENT && !file.is_empty() => (name, Some(file)),
        Some((name, _)) => (name, None),
        None => (wanted, None),
    };
    let content = match read_skill(config, work_dir, name, file) {
        Ok(content) => content,
        Err(reason) => return ToolOutcome::error(reason),
    };
    let shown = SkillShown {
        name: name.to_owned(),
        folder: content.folder.printable().to_string(),
        hash: content.read.hash,
        file: file.map(str::to_owned),
    };
    let text = match file {
        None => Ok(document_text(name, &content, arguments)),
        Some(file) => file_text(name, file, &content, arguments),
    };
    match text {
        Ok(text) => ToolOutcome { skill: Some(shown), ..ToolOutcome::ok(text) },
        Err(reason) => ToolOutcome::error(reason),
    }
}

/// The text of SKILL.md, after a line that says where the skill is and what else it has.
fn document_text(name: &str, content: &SkillContent, arguments: &ReadArguments) -> String {
    let others: Vec<&SkillFile> = content.read.files.iter().filter(|file| file.path != DOCUMENT).collect();
    let named: Vec<String> = others
        .iter()
        .take(MAX_NAMED_FILES)
        .map(|file| match file.kind {
            SkillFileKind::Executable => format!("{} (program)", printable(file.path.as_bytes())),
            SkillFileKind::Plain | SkillFileKind::Link => printable(file.path.as_bytes()).to_string(),
        })
        .collect();
    let mut head = format!("[skill {name}, in {}", content.folder.printable());
    if !named.is_empty() {
        head += &format!(
            "; read its files as \"skill:{name}/FILE\", run its programs from there: {}",
            named.join(", ")
        );
    }
    if let Some(more) = others.len().checked_sub(MAX_NAMED_FILES).filter(|more| *more > 0) {
        head += &format!(" and {more} more");
    }
    format!("{head}]\n{}", select_lines(&content.document.body, arguments))
}

fn file_text(
    name: &str,
    file: &str,
    content: &SkillContent,
    arguments: &ReadArguments,
) -> Result<String, String> {
    let known = content.read.files.iter().find(|known| known.path == file);
    let (Some(known), Some(bytes)) = (known, &content.file) else {
        let files: Vec<&str> =
            content.read.files.iter().map(|file| file.path.as_str()).take(MAX_NAMED_FILES).collect();
        return Err(format!("the skill {name:?} has no file {file:?}; it has: {}", files.join(", ")));
    };
    if known.kind == SkillFileKind::Link {
        let target = String::from_utf8_lossy(bytes);
        return Err(format!("{file} is a link to {target}; read that file of the skill"));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(select_lines(text, arguments)),
        Err(_) => Err(format!("{file} is not text ({} bytes); use it in a command", bytes.len())),
    }
}
