//! The `longhaul.toml` of a project: how it is found, and what it may set (P7).
//!
//! A folder that came from elsewhere does not speak for the user. So its file may describe the agent and may tighten
//! limits. It may not change keys, servers or permissions until the user has read it and run `longhaul trust`. An
//! untrusted project may set only the keys listed here, so a new key is closed until it is listed.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use longhaul_config::{Layer, LayerEntry, Origin, TrustList, TrustState, project_file_candidates};
use longhaul_mcp::ServerSettings;
use longhaul_protocol::{Hash, PrintablePath};
use longhaul_tools::{DeniedTarget, Scope, ScopeConfig, SmallFile};
use toml::Value;

use super::config_error;
use super::files::{FilePlace, MAX_CONFIG_BYTES, decode_text, read_project_file, read_user_file};
use super::format::{default_layers, hide_password, parse_layer, resolve_project_paths};
use super::settings::{MemoryScope, Settings};
use super::sources::Sources;
use super::trust::load_trust_list;
use crate::{Error, Result};

const PROJECT_FILE: &str = "longhaul.toml";
const AGENT_NAME: &str = "agent.name";
/// The name stands in the first line of the system prompt, so a project's is a short one.
const MAX_PROJECT_NAME_CHARS: usize = 40;
/// The lowest thresholds for compactions that an untrusted project may set, as a share of the window and in tokens.
const MIN_COMPACT_SHARE: f64 = 0.3;
const MIN_COMPACT_TOKENS: f64 = 20_000.0;
/// Only the user's own config has schedules: they run in the whole home, and their prompts are the user's word.
const SCHEDULE: &str = "schedule";
const SERVERS: &str = "mcp.servers";
const INSTRUCTIONS: &str = "agent.instructions";
const INSTRUCTIONS_FILE: &str = "agent.instructions_file";

/// What an untrusted project may do with a key.
enum ProjectPermission {
    SetFreely,
    /// Name a file inside the project.
    NameOwnFile,
    /// Set a value that is not higher than the user's.
    LowerOnly,
    /// Set a value that is not below this one, or 0, which turns it off.
    NotBelow(f64),
    Forbidden,
}

fn project_permission(key: &str) -> ProjectPermission {
    match key {
        AGENT_NAME | INSTRUCTIONS | "scope.deny" => ProjectPermission::SetFreely,
        INSTRUCTIONS_FILE => ProjectPermission::NameOwnFile,
        "context.summary" | "context.keep_tokens" => ProjectPermission::SetFreely,
        // Each compaction is a model call, so a project must not make every step pay for one.
        "context.compact_at" | "context.compact_now_at" | "context.compact_idle_at" => {
            ProjectPermission::NotBelow(MIN_COMPACT_SHARE)
        }
        "context.compact_at_tokens" | "context.compact_now_at_tokens" | "context.compact_idle_at_tokens" => {
            ProjectPermission::NotBelow(MIN_COMPACT_TOKENS)
        }
        "exec.timeout_s" | "exec.max_tasks" | "exec.output_cap_bytes" => ProjectPermission::LowerOnly,
        _ => ProjectPermission::Forbidden,
    }
}

/// A key in a project's file that an untrusted project may not set.
#[derive(Debug, Clone, PartialEq)]
pub struct DisallowedKey {
    /// As `section.key`.
    pub key: String,
    /// Its value in the file.
    pub value: serde_json::Value,
    /// Its line in the file.
    pub line: usize,
    /// Why the project may not set it.
    pub reason: String,
}

/// The instructions of a project to the agent. They are added after the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectInstructions {
    /// The project's folder: sessions elsewhere are not told them.
    pub folder: PathBuf,
    /// The file that contains them.
    pub file: PathBuf,
    /// The instructions.
    pub text: String,
}

/// The config file of the project that a folder belongs to, as it was when it was read.
#[derive(Debug)]
pub struct ProjectFile {
    /// Where it is.
    pub path: PathBuf,
    /// The hash of its bytes.
    pub hash: Hash,
    /// Its content.
    pub text: String,
    /// The keys that it may set only if it is trusted, by line.
    pub disallowed: Vec<DisallowedKey>,
    /// Whether the user trusts it.
    pub trust: TrustState,
    /// Its content when the user last trusted it, if that was recorded.
    pub trusted_text: Option<String>,
    /// All of its keys except the instructions.
    all_keys: Layer,
    /// The keys that an untrusted project may set.
    allowed_keys: Layer,
    instructions: Option<ProjectInstructions>,
    /// Why its instructions can't be used, if there is a reason.
    warnings: Vec<String>,
}

/// The result of the search for a project's file.
pub(crate) struct ProjectSearch {
    /// The nearest usable file, or the error in its content.
    pub(crate) file: Option<Result<ProjectFile>>,
    /// Why nearer files are not used.
    pub(crate) skipped: Vec<String>,
}

/// The part of a project's file that takes effect.
pub(crate) struct ProjectPart {
    pub(crate) layer: Layer,
    pub(crate) instructions: Option<ProjectInstructions>,
    pub(crate) warnings: Vec<String>,
}

impl ProjectInstructions {
    /// Whether sessions in this folder are told them.
    pub(crate) fn are_for(&self, work_dir: &Path) -> bool {
        work_dir.starts_with(&self.folder)
            || work_dir.canonicalize().is_ok_and(|work_dir| work_dir.starts_with(&self.folder))
    }
}

impl ProjectPart {
    /// Takes the MCP servers out of the layer, because they don't replace the user's, and belong to the project's folder alone. Only a
    /// trusted file has any.
    pub(crate) fn take_servers(&mut self) -> BTreeMap<String, ServerSettings> {
        let Some(entry) = self.layer.0.remove(SERVERS) else { return BTreeMap::new() };
        let origin = entry.origin;
        entry.value.try_into().unwrap_or_else(|error| {
            self.warnings.push(format!("{origin}: ignoring {SERVERS}: {error}"));
            BTreeMap::new()
        })
    }
}

impl ProjectFile {
    /// The nearest project file at or above the work folder that no other user could have written. Fails if all files
    /// that exist are unusable.
    pub fn find(home: &Path, sources: &Sources) -> Result<Option<Self>> {
        let mut layers = default_layers();
        if let Some(layer) = super::base_layer(home, sources)? {
            layers.put(layer);
        }
        let ProjectSearch { file, skipped } = Self::search(home, sources, &layers.settings()?)?;
        match (file, skipped.into_iter().next()) {
            (Some(file), _) => file.map(Some),
            (None, Some(reason)) => Err(config_error(PROJECT_FILE, &reason)),
            (None, None) => Ok(None),
        }
    }

    /// Searches for the project's file. `below` are the settings of the lower layers.
    pub(crate) fn search(home: &Path, sources: &Sources, below: &Settings) -> Result<ProjectSearch> {
        let mut skipped = Vec::new();
        for path in candidate_paths(sources)? {
            // A file named with --config is the user's own, wherever it is.
            if is_same_file(&path, &sources.base_file(home)) {
                break;
            }
            match read_project_file(&path, file_place(&path, sources)) {
                Ok(Some(text)) => {
                    let trust_list = load_trust_list(home)?;
                    let file = Self::new(home, sources, &trust_list, path, text, below);
                    return Ok(ProjectSearch { file: Some(file), skipped });
                }
                Ok(None) => {}
                Err(reason) => skipped.push(format!("ignoring {}: {reason}", path.printable())),
            }
        }
        Ok(ProjectSearch { file: None, skipped })
    }

    fn new(
        home: &Path,
        sources: &Sources,
        trust_list: &TrustList,
        path: PathBuf,
        text: String,
        below: &Settings,
    ) -> Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        let (unresolved, mut all_keys) = parse_project_layer(&path, &text)?;
        let hash = Hash::of(&text);
        let mut warnings = Vec::new();
        let scope = || project_scope(&folder, home, &sources.work_dir(), below);
        let instructions = take_instructions(&mut all_keys, &path, scope).unwrap_or_else(|warning| {
            warnings.push(warning);
            None
        });
        if let Some(entry) = all_keys.0.remove(SCHEDULE) {
            let own = sources.base_file(home);
            warnings.push(format!(
                "{}: ignoring {SCHEDULE}: a project can't have schedules; move it to {}",
                entry.origin,
                own.printable()
            ));
        }
        let mut allowed_keys = all_keys.clone();
        let mut disallowed = Vec::new();
        for (key, entry) in &all_keys.0 {
            let Some(reason) = reason_to_ignore(key, entry, below) else { continue };
            allowed_keys.0.remove(key);
            let value = unresolved.0.get(key).map_or(serde_json::Value::Null, |entry| as_json(&entry.value));
            let line = entry.origin.line();
            disallowed.push(DisallowedKey {
                key: key.clone(),
                value: hide_password(key, value),
                line,
                reason,
            });
        }
        disallowed.sort_by_key(|disallowed| disallowed.line);
        let trust = trust_list.state(&path, hash);
        let trusted_text = trust_list.find(&path).and_then(|trusted| trusted.text.clone());
        Ok(Self {
            path,
            hash,
            text,
            disallowed,
            trust,
            trusted_text,
            all_keys,
            allowed_keys,
            instructions,
            warnings,
        })
    }

    /// The part that takes effect, with a warning for each ignored key.
    pub(crate) fn into_part(mut self) -> ProjectPart {
        let next = match self.trust {
            TrustState::Trusted => return self.into_trusted_part(),
            TrustState::Unknown => {
                let folder = self.path.parent().unwrap_or(Path::new("/"));
                format!("to allow it, run `longhaul trust` in {}", folder.printable())
            }
            TrustState::Changed => {
                "the file has changed since it was trusted; review it, then run `longhaul trust`".to_owned()
            }
        };
        let warning = |DisallowedKey { key, line, reason, .. }: &DisallowedKey| {
            format!("{}:{line}: ignoring {key}: {reason}; {next}", self.path.printable())
        };
        self.warnings.extend(self.disallowed.iter().map(warning));
        ProjectPart { layer: self.allowed_keys, instructions: self.instructions, warnings: self.warnings }
    }

    /// The user trusts the file, so its instructions may be in any file.
    fn into_trusted_part(mut self) -> ProjectPart {
        for (key, entry) in self.all_keys.0.extract_if(.., |key, _| concerns_whole_home(key)) {
            let line = entry.origin.line();
            self.warnings.push(format!(
                "{}:{line}: ignoring {key}: it concerns all sessions of the home, so only config.toml of the home may set it",
                self.path.printable()
            ));
        }
        let named = self.all_keys.0.remove(INSTRUCTIONS_FILE);
        if let Some((file, entry)) = named.as_ref().and_then(|entry| Some((entry.value.as_str()?, entry))) {
            match read_user_file(Path::new(file)) {
                Ok(Some(text)) => {
                    let folder = self.path.parent().unwrap_or(Path::new("/")).to_owned();
                    self.instructions = Some(ProjectInstructions { folder, file: PathBuf::from(file), text });
                }
                Ok(None) => self.warnings.push(ignored(&entry.origin, "no such file")),
                Err(error) => self.warnings.push(ignored(&entry.origin, &error)),
            }
        }
        ProjectPart { layer: self.all_keys, instructions: self.instructions, warnings: self.warnings }
    }
}

/// Parses a project's file. Returns it as written, and with its paths resolved against its folder.
pub(crate) fn parse_project_layer(path: &Path, text: &str) -> Result<(Layer, Layer)> {
    let unresolved = parse_layer(text, &path.printable().to_string())?;
    let resolved = resolve_project_paths(unresolved.clone(), path.parent().unwrap_or(Path::new("/")))?;
    Ok((unresolved, resolved))
}

/// The scope for reading instructions: the project's folder without the paths that the user denies.
fn project_scope(folder: &Path, home: &Path, work_dir: &Path, below: &Settings) -> Scope {
    let is_relative = |target: &str| !target.starts_with(['/', '~']);
    let deny = below.scope.deny.iter().cloned().map(|denied| match work_dir.join(&denied.target).to_str() {
        Some(target) if is_relative(&denied.target) => DeniedTarget { target: target.to_owned(), ..denied },
        _ => denied,
    });
    Scope::new(folder, &ScopeConfig { allow: Vec::new(), deny: deny.collect() }, home)
}

/// Removes the instructions from a project's layer, because they do not replace the user's. An instructions file
/// inside the project is read here, once and through the scope, so that it can't be a link to a file outside. A path
/// that clearly leads outside stays in the layer and needs the user's trust.
fn take_instructions(
    layer: &mut Layer,
    path: &Path,
    scope: impl FnOnce() -> Scope,
) -> std::result::Result<Option<ProjectInstructions>, String> {
    let inline = layer.0.remove(INSTRUCTIONS);
    let inline =
        inline.and_then(|entry| Some(entry.value.as_str()?.to_owned())).filter(|text| !text.is_empty());
    let folder = path.parent().unwrap_or(Path::new("/"));
    let instructions = |file, text| ProjectInstructions { folder: folder.to_owned(), file, text };
    let inline = inline.map(|text| instructions(path.to_owned(), text));
    let named = layer.0.get(INSTRUCTIONS_FILE).and_then(|entry| entry.value.as_str());
    let Some(named) = named.filter(|named| !named.is_empty()).map(PathBuf::from) else {
        layer.0.remove(INSTRUCTIONS_FILE);
        return Ok(inline);
    };
    if !normalise_path(&named).starts_with(folder) {
        return Ok(inline);
    }
    let Some(entry) = layer.0.remove(INSTRUCTIONS_FILE) else { return Ok(inline) };
    let read = named.to_str().map(|named| scope().read_in_work_dir(named, MAX_CONFIG_BYTES));
    let file = match read {
        Some(Ok(Some(SmallFile { foreign: Some(why), .. }))) => return Err(ignored(&entry.origin, &why)),
        Some(Ok(Some(file))) => file,
        Some(Err(error)) => return Err(ignored(&entry.origin, &error)),
        Some(Ok(None)) | None => return Err(ignored(&entry.origin, "no such file")),
    };
    let text = decode_text(file).map_err(|reason| ignored(&entry.origin, &reason))?;
    Ok(Some(instructions(named, text)))
}

fn ignored(origin: &Origin, reason: &(impl ToString + ?Sized)) -> String {
    format!("{origin}: ignoring {INSTRUCTIONS_FILE}: {}", reason.to_string())
}

/// Resolves `.` and `..` only by the text of the path.
fn normalise_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Whether a key concerns sessions of other projects as well. No project may set it, even if the user trusts it.
fn concerns_whole_home(key: &str) -> bool {
    key.starts_with("journal.")
        || key.starts_with("node.")
        || key == "schedule"
        || key.starts_with("schedules.")
        || key == "memory.embedding_model"
}

/// Why a key of an untrusted project is ignored, if it is.
fn reason_to_ignore(key: &str, entry: &LayerEntry, below: &Settings) -> Option<String> {
    match project_permission(key) {
        // Another name would open the memory of another agent.
        ProjectPermission::SetFreely if key == AGENT_NAME && below.memory.scope == MemoryScope::Agent => {
            Some("it names the memory of an agent (memory.scope is \"agent\")".to_owned())
        }
        ProjectPermission::SetFreely if key == AGENT_NAME && !is_short_name(&entry.value) => Some(format!(
            "a project may only give a name of at most {MAX_PROJECT_NAME_CHARS} letters, digits, spaces, '.', '_' and '-'"
        )),
        ProjectPermission::SetFreely => None,
        // `take_instructions` has already removed a file inside the project.
        ProjectPermission::NameOwnFile => Some("it is outside the project".to_owned()),
        ProjectPermission::LowerOnly => {
            let now = match key {
                "exec.timeout_s" => below.exec.timeout_s,
                "exec.max_tasks" => below.exec.max_tasks,
                _ => below.exec.output_cap_bytes,
            };
            let wanted = entry.value.as_integer().and_then(|wanted| u64::try_from(wanted).ok());
            let is_lower = wanted.is_some_and(|wanted| wanted <= now);
            (!is_lower).then(|| format!("a project may only lower it (it is {now})"))
        }
        ProjectPermission::NotBelow(floor) => {
            let whole =
                || entry.value.as_integer().and_then(|wanted| u32::try_from(wanted).ok()).map(f64::from);
            let wanted = entry.value.as_float().or_else(whole);
            let is_high_enough = wanted.is_some_and(|wanted| wanted == 0.0 || wanted >= floor);
            (!is_high_enough).then(|| format!("a project may not set it below {floor}"))
        }
        ProjectPermission::Forbidden => Some("a project may not set it".to_owned()),
    }
}

fn is_short_name(value: &Value) -> bool {
    let is_allowed = |letter: char| letter.is_alphanumeric() || matches!(letter, ' ' | '.' | '_' | '-');
    let name = value.as_str();
    name.is_some_and(|name| name.chars().count() <= MAX_PROJECT_NAME_CHARS && name.chars().all(is_allowed))
}

/// The paths at which the project's file may be, nearest first.
pub(crate) fn candidate_paths(sources: &Sources) -> Result<Vec<PathBuf>> {
    let folder = sources.work_dir();
    project_file_candidates(&folder, PROJECT_FILE)
        .map_err(|error| Error::Folder { path: folder, reason: error.to_string() })
}

/// Whether one of the candidates lies in the work folder itself.
pub(crate) fn file_place(candidate: &Path, sources: &Sources) -> FilePlace {
    match (candidate.parent(), sources.work_dir().canonicalize()) {
        (Some(folder), Ok(work_dir)) if folder == work_dir => FilePlace::WorkFolder,
        _ => FilePlace::Above,
    }
}

/// Whether both paths lead to the same existing file.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn as_json(value: &Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
