//! Kinds of subagents: Markdown files with a front matter.
//!
//! They are looked for in `.agents/agents` and `.claude/agents` of the project, from the work folder up to the top of the git
//! repository, then in `agents` of Longhaul's home. Of two with one name the first that can be used is used. A kind that the project
//! brought along is used only if the user trusts exactly this content of its file.

use std::path::{Path, PathBuf};

use longhaul_config::{TrustList, TrustState};
use longhaul_protocol::{Hash, PrintablePath};
pub(crate) use longhaul_skills::AgentKind;
use longhaul_skills::parse_agent_kind;
use longhaul_tools::{LastLink, git_root, read_small_file};

use crate::Config;
use crate::config::load_trust_list;

/// Where a folder of the project has kinds, the preferred one first.
const PROJECT_FOLDERS: [&str; 2] = [".agents/agents", ".claude/agents"];
/// Where Longhaul's home has kinds.
const HOME_FOLDER: &str = "agents";
const MAX_KIND_BYTES: u64 = 64 << 10;
/// Files of one folder that are looked at.
const MAX_FILES: usize = 200;

/// A file that describes a kind, usable or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindFile {
    /// Its path.
    pub path: PathBuf,
    /// The hash of its bytes.
    pub hash: Hash,
    /// Its text.
    pub text: String,
    /// What it says, or why it can't be used.
    pub kind: Result<AgentKind, String>,
    /// Whether the user trusts it. `None` if it is in the home, and needs no trust.
    pub trust: Option<TrustState>,
}

impl KindFile {
    /// Why the kind can't be used; `None` if it can.
    fn refusal(&self) -> Option<String> {
        let path = self.path.printable();
        match (&self.kind, self.trust) {
            (_, Some(TrustState::Unknown)) => {
                Some(format!("{path} is the project's and is not trusted; `longhaul trust` shows it"))
            }
            (_, Some(TrustState::Changed)) => {
                Some(format!("{path} has changed since it was trusted; `longhaul trust` shows what"))
            }
            (Err(error), _) => Some(format!("{path} is malformed: {error}")),
            (Ok(_), _) => None,
        }
    }

    /// The name in its front matter, or else that of the file.
    pub fn name(&self) -> String {
        match &self.kind {
            Ok(kind) => kind.name.clone(),
            Err(_) => self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }
}

/// The files of the kinds for sessions in this folder, in the order in which they are looked for.
pub fn kind_files(config: &Config, work_dir: Option<&Path>) -> Vec<KindFile> {
    let trust_list = load_trust_list(&config.home).unwrap_or_default();
    let folders = work_dir.map(project_folders).unwrap_or_default();
    let mut files: Vec<KindFile> =
        folders.iter().flat_map(|folder| files_of(folder, Some(&trust_list))).collect();
    files.extend(files_of(&config.home.join(HOME_FOLDER), None));
    files
}

/// Where the project of a folder may have kinds, the nearest first.
pub(crate) fn project_folders(work_dir: &Path) -> Vec<PathBuf> {
    let top = git_root(work_dir).unwrap_or(work_dir);
    let folders = work_dir.ancestors().take_while(|folder| folder.starts_with(top));
    folders.flat_map(|folder| PROJECT_FOLDERS.map(|name| folder.join(name))).collect()
}

/// The files of one folder, by name. `trust_list` is given if they need trust.
fn files_of(folder: &Path, trust_list: Option<&TrustList>) -> Vec<KindFile> {
    let Ok(entries) = folder.read_dir() else { return vec![] };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    paths.truncate(MAX_FILES);
    paths.into_iter().filter_map(|path| read_kind(path, trust_list)).collect()
}

fn read_kind(path: PathBuf, trust_list: Option<&TrustList>) -> Option<KindFile> {
    let (bytes, problem) = match read_small_file(&path, LastLink::Refuse, MAX_KIND_BYTES) {
        Ok(Some(file)) => (file.bytes, None),
        Ok(None) => return None,
        Err(error) => (vec![], Some(error.to_string())),
    };
    let hash = Hash::of(&bytes);
    let (text, kind) = match (problem, String::from_utf8(bytes)) {
        (Some(problem), _) => (String::new(), Err(problem)),
        (None, Err(_)) => (String::new(), Err("it is not valid UTF-8".to_owned())),
        (None, Ok(text)) => {
            let kind = parse_agent_kind(&text).map_err(|error| error.to_string());
            (text, kind)
        }
    };
    let trust = trust_list.map(|trust_list| trust_list.state(&path, hash));
    Some(KindFile { path, hash, text, kind, trust })
}

/// The kinds that can be used in this folder, each name once.
pub(crate) fn usable_kinds(config: &Config, work_dir: Option<&Path>) -> Vec<AgentKind> {
    let mut kinds: Vec<AgentKind> = Vec::new();
    for file in kind_files(config, work_dir) {
        if file.refusal().is_none()
            && let Ok(kind) = file.kind
            && !kinds.iter().any(|known| known.name == kind.name)
        {
            kinds.push(kind);
        }
    }
    kinds
}

/// The kind with this name. The error says why it can't be used, or which there are.
pub(crate) fn find_kind(config: &Config, work_dir: Option<&Path>, name: &str) -> Result<AgentKind, String> {
    let mut refusal = None;
    for file in kind_files(config, work_dir) {
        if file.name() != name {
            continue;
        }
        match file.refusal() {
            Some(reason) => refusal = refusal.or(Some(reason)),
            None => return file.kind,
        }
    }
    if let Some(reason) = refusal {
        return Err(format!("the kind {name:?} can't be used: {reason}"));
    }
    let names: Vec<String> = usable_kinds(config, work_dir).into_iter().map(|kind| kind.name).collect();
    let known = match names.is_empty() {
        true => "there are none".to_owned(),
        false => format!("there are: {}", names.join(", ")),
    };
    Err(format!("there is no kind {name:?}; {known}"))
}
