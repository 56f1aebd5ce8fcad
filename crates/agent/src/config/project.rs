//! The `longhaul.toml` of a project: where it is, and what it may set (P7).
//!
//! Whoever opens a folder that came from elsewhere has not read what is in it. So its file may say what the agent is, and may make
//! things tighter; it may not move keys, servers or permissions before somebody has looked and said `longhaul trust`. What is not
//! named here as allowed is not: a new key is closed until someone opens it.

use std::path::{Component, Path, PathBuf};

use longhaul_protocol::{Hash, PrintablePath};
use longhaul_tools::{Denied, Scope, ScopeConfig, SmallFile};
use toml::Value;

use super::bad;
use super::layers::{Entry, Layer, Layers};
use super::reading::{MAX_CONFIG_BYTES, project_text, text_of, users_text};
use super::settings::{ExecSettings, Settings};
use super::show::shown_value;
use super::sources::{Origin, Sources};
use super::trust::{Standing, TrustList};
use crate::{Error, Result};

/// What the file is called.
const NAME: &str = "longhaul.toml";
const INSTRUCTIONS: &str = "agent.instructions";
const INSTRUCTIONS_FILE: &str = "agent.instructions_file";

/// What a project may do with a key before it is trusted.
enum Bound {
    /// Set it as it likes.
    Free,
    /// Name a file that lies inside the project.
    Inside,
    /// Make it smaller.
    Lower,
    /// Nothing.
    Closed,
}

fn bound(key: &str) -> Bound {
    match key {
        "agent.name" | INSTRUCTIONS | "scope.deny" => Bound::Free,
        INSTRUCTIONS_FILE => Bound::Inside,
        "context.compact_at"
        | "context.compact_at_tokens"
        | "context.compact_now_at"
        | "context.compact_now_at_tokens"
        | "context.compact_idle_at"
        | "context.compact_idle_at_tokens"
        | "context.summary"
        | "context.keep_tokens" => Bound::Free,
        "exec.timeout_s" | "exec.max_tasks" | "exec.output_cap_bytes" => Bound::Lower,
        _ => Bound::Closed,
    }
}

/// Something that a project's file sets beyond what any project may.
#[derive(Debug, Clone, PartialEq)]
pub struct Beyond {
    /// As `section.key`.
    pub key: String,
    /// What it sets it to.
    pub value: serde_json::Value,
    /// The line on which it does.
    pub line: usize,
    /// Why it may not.
    pub reason: String,
}

/// What the file of a project tells the agent. It is added after what the user says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectInstructions {
    /// The file that it stands in.
    pub file: PathBuf,
    /// The instructions.
    pub text: String,
}

/// The file of the project that a folder belongs to, as it was when it was read.
#[derive(Debug)]
pub struct ProjectFile {
    /// Where it is.
    pub path: PathBuf,
    /// The hash of its bytes.
    pub hash: Hash,
    /// What it says, word for word.
    pub text: String,
    /// What it sets beyond what any project may, from its first line on.
    pub beyond: Vec<Beyond>,
    /// Whether somebody trusts it.
    pub standing: Standing,
    /// What it said when it was last trusted, where that is known.
    pub trusted_text: Option<String>,
    /// Everything that it says, but its instructions.
    whole: Layer,
    /// The part of it that any project may.
    bounded: Layer,
    instructions: Option<ProjectInstructions>,
    /// Why its instructions can't be used.
    warnings: Vec<String>,
}

/// What was found where a project's file is looked for.
pub(crate) struct ProjectSearch {
    /// The file that counts, or what is wrong with it.
    pub(crate) file: Option<Result<ProjectFile>>,
    /// Why others are not used.
    pub(crate) skipped: Vec<String>,
}

/// What counts of a project's file.
pub(crate) struct ProjectPart {
    pub(crate) layer: Layer,
    pub(crate) instructions: Option<ProjectInstructions>,
    pub(crate) warnings: Vec<String>,
}

impl ProjectFile {
    /// The file of the project that the work folder belongs to, if there is one: the nearest, in it or above it, that the user can
    /// answer for. An error if there is only one that can't be used.
    pub fn find(home: &Path, sources: &Sources) -> Result<Option<Self>> {
        let mut layers = Layers::default();
        if let Some(layer) = super::base_layer(home, sources)? {
            layers.put(layer);
        }
        let ProjectSearch { file, skipped } = Self::search(home, sources, &layers.settings()?)?;
        match (file, skipped.into_iter().next()) {
            (Some(file), _) => file.map(Some),
            (None, Some(reason)) => Err(bad(NAME, &reason)),
            (None, None) => Ok(None),
        }
    }

    /// The same, over what is set already.
    pub(crate) fn search(home: &Path, sources: &Sources, so_far: &Settings) -> Result<ProjectSearch> {
        let mut skipped = Vec::new();
        for path in candidates(sources)? {
            // A file that was named with --config is the person's own, wherever it is.
            if is_same(&path, &sources.base_file(home)) {
                break;
            }
            match project_text(&path) {
                Ok(Some(text)) => {
                    let trusted = TrustList::of_home(home)?;
                    let file = Self::new(home, sources, &trusted, path, text, so_far);
                    return Ok(ProjectSearch { file: Some(file), skipped });
                }
                Ok(None) => {}
                Err(reason) => skipped.push(format!("{} is not used: {reason}", path.printable())),
            }
        }
        Ok(ProjectSearch { file: None, skipped })
    }

    fn new(
        home: &Path,
        sources: &Sources,
        trusted: &TrustList,
        path: PathBuf,
        text: String,
        so_far: &Settings,
    ) -> Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        let (written, mut whole) = layer(&path, &text)?;
        let hash = Hash::of(&text);
        let mut warnings = Vec::new();
        let scope = || scope_of(&folder, home, &sources.work_dir(), so_far);
        let instructions = take_instructions(&mut whole, &path, scope).unwrap_or_else(|warning| {
            warnings.push(warning);
            None
        });
        let mut bounded = whole.clone();
        let mut beyond = Vec::new();
        for (key, entry) in &whole.0 {
            let Some(reason) = reason_against(key, entry, &so_far.exec) else { continue };
            bounded.0.remove(key);
            let said = written.0.get(key).map_or(serde_json::Value::Null, |entry| as_json(&entry.value));
            let line = line_of(&entry.origin);
            beyond.push(Beyond { key: key.clone(), value: shown_value(key, said), line, reason });
        }
        beyond.sort_by_key(|beyond| beyond.line);
        let standing = trusted.standing(&path, hash);
        let trusted_text = trusted.text_of(&path);
        Ok(Self { path, hash, text, beyond, standing, trusted_text, whole, bounded, instructions, warnings })
    }

    /// What counts of it, and what is to be said about the rest.
    pub(crate) fn into_part(mut self) -> ProjectPart {
        let next = match self.standing {
            Standing::Trusted => return self.into_whole(),
            Standing::Unknown => {
                let folder = self.path.parent().unwrap_or(Path::new("/"));
                format!("`longhaul trust` in {} allows it", folder.printable())
            }
            Standing::Changed => {
                "the file has changed since it was trusted: look at it, then `longhaul trust` again"
                    .to_owned()
            }
        };
        let warning = |Beyond { key, line, reason, .. }: &Beyond| {
            format!("{}:{line}: {key} is ignored: {reason}; {next}", self.path.printable())
        };
        self.warnings.extend(self.beyond.iter().map(warning));
        ProjectPart { layer: self.bounded, instructions: self.instructions, warnings: self.warnings }
    }

    /// The user has looked at it, so its instructions may stand in any file that it names.
    fn into_whole(mut self) -> ProjectPart {
        let named = self.whole.0.remove(INSTRUCTIONS_FILE);
        if let Some((file, entry)) = named.as_ref().and_then(|entry| Some((entry.value.as_str()?, entry))) {
            match users_text(Path::new(file)) {
                Ok(Some(text)) => {
                    self.instructions = Some(ProjectInstructions { file: PathBuf::from(file), text });
                }
                Ok(None) => self.warnings.push(ignored(&entry.origin, "there is no such file")),
                Err(error) => self.warnings.push(ignored(&entry.origin, &error)),
            }
        }
        ProjectPart { layer: self.whole, instructions: self.instructions, warnings: self.warnings }
    }
}

/// What the text of a project's file sets: as it is written, and with paths from its folder on.
pub(crate) fn layer(path: &Path, text: &str) -> Result<(Layer, Layer)> {
    let written = Layer::from_toml(text, &path.printable().to_string())?;
    let whole = written.clone().with_all_paths_from(path.parent().unwrap_or(Path::new("/")))?;
    Ok((written, whole))
}

/// What may be read as a part of a project: its folder, without what the user denies.
fn scope_of(folder: &Path, home: &Path, work_dir: &Path, so_far: &Settings) -> Scope {
    let is_relative = |target: &str| !target.starts_with(['/', '~']);
    let deny = so_far.scope.deny.iter().cloned().map(|denied| match work_dir.join(&denied.target).to_str() {
        Some(target) if is_relative(&denied.target) => Denied { target: target.to_owned(), ..denied },
        _ => denied,
    });
    Scope::new(folder, &ScopeConfig { allow: Vec::new(), deny: deny.collect() }, home)
}

/// Takes the instructions out of what a project's file says, because they don't replace the user's. A file with them that lies in the
/// project is read here, once, through the scope: it may not be a link to anything outside. One that lies elsewhere by its very name stays
/// in the layer, for the user to trust.
fn take_instructions(
    layer: &mut Layer,
    path: &Path,
    scope: impl FnOnce() -> Scope,
) -> std::result::Result<Option<ProjectInstructions>, String> {
    let inline = layer.0.remove(INSTRUCTIONS);
    let inline =
        inline.and_then(|entry| Some(entry.value.as_str()?.to_owned())).filter(|text| !text.is_empty());
    let inline = inline.map(|text| ProjectInstructions { file: path.to_owned(), text });
    let folder = path.parent().unwrap_or(Path::new("/"));
    let named = layer.0.get(INSTRUCTIONS_FILE).and_then(|entry| entry.value.as_str());
    let Some(named) = named.filter(|named| !named.is_empty()).map(PathBuf::from) else {
        layer.0.remove(INSTRUCTIONS_FILE);
        return Ok(inline);
    };
    if !without_parents(&named).starts_with(folder) {
        return Ok(inline);
    }
    let Some(entry) = layer.0.remove(INSTRUCTIONS_FILE) else { return Ok(inline) };
    let read = named.to_str().map(|named| scope().read_in_work_dir(named, MAX_CONFIG_BYTES));
    let file = match read {
        Some(Ok(Some(SmallFile { foreign: Some(why), .. }))) => return Err(ignored(&entry.origin, &why)),
        Some(Ok(Some(file))) => file,
        Some(Err(error)) => return Err(ignored(&entry.origin, &error)),
        Some(Ok(None)) | None => return Err(ignored(&entry.origin, "there is no such file")),
    };
    let text = text_of(file).map_err(|reason| ignored(&entry.origin, &reason))?;
    Ok(Some(ProjectInstructions { file: named, text }))
}

fn ignored(origin: &Origin, reason: &(impl ToString + ?Sized)) -> String {
    format!("{origin}: {INSTRUCTIONS_FILE} is ignored: {}", reason.to_string())
}

/// A path without `..`, by its text alone.
fn without_parents(path: &Path) -> PathBuf {
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

fn line_of(origin: &Origin) -> usize {
    match origin {
        Origin::File { line, .. } => *line,
        Origin::Variable(_) | Origin::Flag(_) => 0,
    }
}

/// Why an untrusted project may not say this, if it may not.
fn reason_against(key: &str, entry: &Entry, so_far: &ExecSettings) -> Option<String> {
    match bound(key) {
        Bound::Free => None,
        // One that lies inside was taken out before.
        Bound::Inside => Some("it leads outside the project".to_owned()),
        Bound::Lower => {
            let now = match key {
                "exec.timeout_s" => so_far.timeout_s,
                "exec.max_tasks" => so_far.max_tasks,
                _ => so_far.output_cap_bytes,
            };
            let wanted = entry.value.as_integer().and_then(|wanted| u64::try_from(wanted).ok());
            let is_lower = wanted.is_some_and(|wanted| wanted <= now);
            (!is_lower).then(|| format!("a project may only lower it, and it is {now}"))
        }
        Bound::Closed => Some("a project may not set it".to_owned()),
    }
}

/// The files that would be the project's, nearest first.
pub(crate) fn candidates(sources: &Sources) -> Result<Vec<PathBuf>> {
    let given = sources.work_dir();
    let folder = given
        .canonicalize()
        .map_err(|error| Error::Folder { path: given.clone(), reason: error.to_string() })?;
    Ok(folder.ancestors().map(|folder| folder.join(NAME)).collect())
}

/// Whether both are there and are the same file.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn as_json(value: &Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
