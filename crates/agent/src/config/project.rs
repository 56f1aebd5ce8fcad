//! The `longhaul.toml` of a project: where it is, and what it may set (P7).
//!
//! Whoever opens a folder that came from elsewhere has not read what is in it. So its file may say what the agent is, and may make
//! things tighter; it may not move keys, servers or permissions before somebody has looked and said `longhaul trust`. What is not
//! named here as allowed is not: a new key is closed until someone opens it.

use std::path::{Path, PathBuf};

use longhaul_protocol::Hash;
use toml::Value;

use super::bad;
use super::layers::{Entry, Layer, Layers};
use super::reading::text_of;
use super::settings::ExecSettings;
use super::show::shown_value;
use super::sources::{Origin, Sources};
use super::trust::{Standing, TrustList};
use crate::{Error, Result};

/// What the file is called.
const NAME: &str = "longhaul.toml";

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
        "agent.name" | "agent.instructions" | "scope.deny" => Bound::Free,
        "agent.instructions_file" => Bound::Inside,
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

/// The file of the project that a folder belongs to, as it was when it was read.
#[derive(Debug)]
pub struct ProjectFile {
    /// Where it is.
    pub path: PathBuf,
    /// The hash of its bytes.
    pub hash: Hash,
    /// What it sets beyond what any project may, from its first line on.
    pub beyond: Vec<Beyond>,
    /// Whether somebody trusts it.
    pub standing: Standing,
    /// Everything that it says.
    whole: Layer,
    /// The part of it that any project may.
    bounded: Layer,
}

impl ProjectFile {
    /// The file of the project that the work folder belongs to, if there is one: the nearest, in it or above it.
    pub fn find(home: &Path, sources: &Sources) -> Result<Option<Self>> {
        let mut layers = Layers::default();
        if let Some(layer) = super::base_layer(home, sources)? {
            layers.put(layer);
        }
        Self::over(home, sources, &layers.settings()?.exec)
    }

    /// The same, over what is set already.
    pub(crate) fn over(home: &Path, sources: &Sources, so_far: &ExecSettings) -> Result<Option<Self>> {
        for path in candidates(sources)? {
            // A file that was named with --config is the person's own, wherever it is.
            if is_same(&path, &sources.base_file(home)) {
                return Ok(None);
            }
            if let Some(text) = text_of(&path)? {
                return Self::new(home, path, &text, so_far).map(Some);
            }
        }
        Ok(None)
    }

    fn new(home: &Path, path: PathBuf, text: &str, so_far: &ExecSettings) -> Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let written = Layer::from_toml(text, &path.display().to_string())?;
        let whole = written.clone().with_all_paths_from(folder)?;
        let hash = Hash::of(text);
        let mut bounded = whole.clone();
        let mut beyond = Vec::new();
        for (key, entry) in &whole.0 {
            let Some(reason) = reason_against(key, entry, folder, so_far)? else { continue };
            bounded.0.remove(key);
            let line = match &entry.origin {
                Origin::File { line, .. } => *line,
                Origin::Variable(_) | Origin::Flag(_) => 0,
            };
            let said = written.0.get(key).map_or(serde_json::Value::Null, |entry| as_json(&entry.value));
            beyond.push(Beyond { key: key.clone(), value: shown_value(key, said), line, reason });
        }
        beyond.sort_by_key(|beyond| beyond.line);
        let standing = TrustList::of_home(home)?.standing(&path, hash);
        Ok(Self { path, hash, beyond, standing, whole, bounded })
    }

    /// What counts of it, and what is to be said about the rest.
    pub(crate) fn into_layer(self) -> (Layer, Vec<String>) {
        let next = match self.standing {
            Standing::Trusted => return (self.whole, Vec::new()),
            Standing::Unknown => {
                let folder = self.path.parent().unwrap_or(Path::new("/"));
                format!("`longhaul trust` in {} allows it", folder.display())
            }
            Standing::Changed => {
                "the file has changed since it was trusted: look at it, then `longhaul trust` again"
                    .to_owned()
            }
        };
        let warning = |Beyond { key, line, reason, .. }: &Beyond| {
            format!("{}:{line}: {key} is ignored: {reason}; {next}", self.path.display())
        };
        let warnings = self.beyond.iter().map(warning).collect();
        (self.bounded, warnings)
    }
}

/// Why an untrusted project may not say this, if it may not.
fn reason_against(key: &str, entry: &Entry, folder: &Path, so_far: &ExecSettings) -> Result<Option<String>> {
    match bound(key) {
        Bound::Free => Ok(None),
        Bound::Inside => {
            let Some(file) = entry.value.as_str().filter(|file| !file.is_empty()) else { return Ok(None) };
            // Where it really leads: through links and `..`.
            let leads = Path::new(file)
                .canonicalize()
                .map_err(|error| bad(&entry.origin.to_string(), &format!("{key}: {file}: {error}")))?;
            let is_inside = leads.starts_with(folder);
            Ok((!is_inside).then(|| "it leads outside the project".to_owned()))
        }
        Bound::Lower => {
            let now = match key {
                "exec.timeout_s" => so_far.timeout_s,
                "exec.max_tasks" => so_far.max_tasks,
                _ => so_far.output_cap_bytes,
            };
            let wanted = entry.value.as_integer().and_then(|wanted| u64::try_from(wanted).ok());
            let is_lower = wanted.is_some_and(|wanted| wanted <= now);
            Ok((!is_lower).then(|| format!("a project may only lower it, and it is {now}")))
        }
        Bound::Closed => Ok(Some("a project may not set it".to_owned())),
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
