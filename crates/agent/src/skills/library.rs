//! The skills that sessions in a work folder have.
//!
//! They are looked for in `.agents/skills` and `.claude/skills` of the project, from the work folder up to the top of the
//! git repository, then of the user's home folder, then in `skills` of Longhaul's home, then in `skills.paths`. Of two
//! with one name the first that can be used is used.
//!
//! A skill that the project brought along, or that lies where a session of this home may write, is used only if the user
//! trusts exactly this content of its folder. What `scope.deny` names is not read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use longhaul_config::{TrustList, TrustState};
use longhaul_protocol::{Hash, PrintablePath};
use longhaul_skills::{
    DOCUMENT, Discovery, SkillDocument, SkillError, SkillFolder, SkillPlace, SkillRoot, SkillSource,
    find_skill_folders, parse_document_bytes,
};
use longhaul_tools::{Permission, git_root};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Config;
use crate::config::load_trust_list;
use crate::work_folders::WorkFolders;

/// Where a folder has skills, the preferred one first.
const FOLDERS: [&str; 2] = [".agents/skills", ".claude/skills"];
/// Where Longhaul's home has skills.
const HOME_FOLDER: &str = "skills";

/// Whether a skill can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillState {
    /// The model can read it.
    Ready,
    /// Another skill with this name comes first.
    Shadowed,
    /// It needs the user's trust, and the user has not looked at it.
    Untrusted,
    /// It has changed since the user trusted it.
    Changed,
    /// It can't be used as it is.
    Malformed,
}

impl SkillState {
    /// The state as a word, as programs get it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Shadowed => "shadowed",
            Self::Untrusted => "untrusted",
            Self::Changed => "changed",
            Self::Malformed => "malformed",
        }
    }
}

/// A skill, usable or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name, which is also that of its folder.
    pub name: String,
    /// Where it comes from.
    pub source: SkillSource,
    /// The canonical path of its folder.
    pub folder: PathBuf,
    /// Whether it can be used.
    pub state: SkillState,
    /// What its SKILL.md says. `None` if it is malformed.
    pub document: Option<SkillDocument>,
    /// Why it can't be used; empty if it can.
    pub reason: String,
}

/// A skill for programs: the JSON of `longhaul skills list` and of the HTTP API.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SkillReport {
    name: String,
    /// `project`, `user`, `home` or `config`.
    source: &'static str,
    /// `ready`, `shadowed`, `untrusted`, `changed` or `malformed`.
    state: &'static str,
    /// Why it can't be used; null if it can.
    reason: Option<String>,
    folder: String,
    /// Null if it is malformed.
    description: Option<String>,
    /// The tools that it says it needs. They are shown only, and grant nothing.
    allowed_tools: Vec<String>,
    /// Mistakes that other programs would refuse.
    warnings: Vec<String>,
}

impl From<&Skill> for SkillReport {
    fn from(skill: &Skill) -> Self {
        let document = skill.document.as_ref();
        Self {
            name: skill.name.clone(),
            source: skill.source.as_str(),
            state: skill.state.as_str(),
            reason: Some(skill.reason.clone()).filter(|reason| !reason.is_empty()),
            folder: skill.folder.printable().to_string(),
            description: document.map(|document| document.description.clone()),
            allowed_tools: document.map(|document| document.allowed_tools.clone()).unwrap_or_default(),
            warnings: document.map(|document| document.warnings.clone()).unwrap_or_default(),
        }
    }
}

impl SkillReport {
    /// The report without secrets in its texts.
    #[must_use]
    pub fn redacted(self, redact: impl Fn(&str) -> String) -> Self {
        Self {
            reason: self.reason.as_deref().map(&redact),
            description: self.description.as_deref().map(&redact),
            warnings: self.warnings.iter().map(|warning| redact(warning)).collect(),
            ..self
        }
    }

    /// The cursor for paging through a list of skills: its folder, because two skills may have the same name.
    pub fn cursor(&self) -> String {
        format!("{} {}", self.name, self.folder)
    }
}

/// What the agent is told when the user starts a skill by `/NAME`.
pub fn skill_request(name: &str, arguments: &str) -> String {
    let request = format!("Use the skill {name}: read it first (read_file with path \"skill:{name}\").");
    if arguments.is_empty() { request } else { format!("{request}\n\n{arguments}") }
}

/// Checks all files of a skill's folder, and parses its SKILL.md.
pub fn check_skill(folder: &Path) -> Result<SkillDocument, SkillError> {
    let mut document = Vec::new();
    SkillFolder::read_with(folder, |file, bytes| {
        if file.path == DOCUMENT {
            document = bytes.to_vec();
        }
    })?;
    parse_document_bytes(&document, folder)
}

/// The skills of a work folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillLibrary {
    /// In the order in which they are looked for, then by name.
    pub skills: Vec<Skill>,
    /// Folders that could not be looked at, and why.
    pub notes: Vec<String>,
}

/// Finds the skills for sessions in this folder.
pub fn find_skills(config: &Config, work_dir: &Path) -> SkillLibrary {
    let sources = SkillSources::new(config, work_dir);
    let discovery = sources.discover();
    let mut library = SkillLibrary { skills: vec![], notes: discovery.notes };
    let trust_list = load_trust_list(&config.home).unwrap_or_else(|error| {
        library.notes.push(format!("no skill of the project is used: {error}"));
        TrustList::default()
    });
    let mut first: HashMap<String, PathBuf> = HashMap::new();
    for place in discovery.places {
        let mut skill = sources.judge(&place, &trust_list);
        if skill.state == SkillState::Ready {
            match first.get(&skill.name) {
                Some(folder) => {
                    skill.state = SkillState::Shadowed;
                    skill.reason = format!("{} comes first", folder.printable());
                }
                None => drop(first.insert(skill.name.clone(), skill.folder.clone())),
            }
        }
        library.skills.push(skill);
    }
    library
}

impl SkillLibrary {
    /// The skills that the model can read.
    pub fn ready(&self) -> impl Iterator<Item = (&Skill, &SkillDocument)> {
        let ready = self.skills.iter().filter(|skill| skill.state == SkillState::Ready);
        ready.filter_map(|skill| Some((skill, skill.document.as_ref()?)))
    }

    /// The skills of this state.
    pub fn in_state(&self, state: SkillState) -> impl Iterator<Item = &Skill> {
        self.skills.iter().filter(move |skill| skill.state == state)
    }

    /// One line about the skills that are not used and that the user can do something about. `None` if there are none.
    pub fn skipped(&self) -> Option<String> {
        let mut parts = self.notes.clone();
        let names = |state| self.in_state(state).map(|skill| skill.name.as_str()).collect::<Vec<_>>();
        let (new, changed) = (names(SkillState::Untrusted), names(SkillState::Changed));
        if !new.is_empty() {
            parts.push(format!("not trusted yet: {} (`longhaul trust` shows them)", new.join(", ")));
        }
        if !changed.is_empty() {
            let names = changed.join(", ");
            parts.push(format!("changed since you trusted them: {names} (`longhaul trust` shows what)"));
        }
        let malformed =
            self.in_state(SkillState::Malformed).map(|skill| format!("{}: {}", skill.name, skill.reason));
        parts.extend(malformed);
        (!parts.is_empty()).then(|| format!("skills that are not used: {}", parts.join("; ")))
    }
}

/// A skill that was read to be used: its SKILL.md or another file of its folder, with the hash of the folder that the
/// bytes were taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkillContent {
    pub(crate) document: SkillDocument,
    pub(crate) folder: PathBuf,
    pub(crate) read: SkillFolder,
    /// The bytes of the other file that was asked for, if there is one of that path.
    pub(crate) file: Option<Vec<u8>>,
}

/// Reads a skill, if it can be used. `file` is another file of its folder.
pub(crate) fn read_skill(
    config: &Config,
    work_dir: &Path,
    name: &str,
    file: Option<&str>,
) -> Result<SkillContent, String> {
    let sources = SkillSources::new(config, work_dir);
    let places = sources.discover().places;
    let trust_list = load_trust_list(&config.home).map_err(|error| error.to_string())?;
    let mut refusal = None;
    for place in places.into_iter().filter(|place| place.name == name) {
        match sources.read(&place, file, &trust_list) {
            Ok(content) => return Ok(content),
            Err((_, reason)) => refusal = refusal.or(Some(reason)),
        }
    }
    let missing = || format!("there is no skill {name:?}; read_file with path \"skill:\" lists all");
    Err(refusal.map_or_else(missing, |reason| format!("the skill {name:?} can't be used: {reason}")))
}

/// The folders that skills are looked for in, and which of them sessions can write.
struct SkillSources {
    roots: Vec<SkillRoot>,
    /// Longhaul's home, which no session writes.
    home: PathBuf,
    /// Where sessions have worked, and where this session may write.
    work_folders: WorkFolders,
    writable: Vec<PathBuf>,
    /// Paths that no session may read.
    denied: Vec<PathBuf>,
}

impl SkillSources {
    fn new(config: &Config, work_dir: &Path) -> Self {
        let work_dir = work_dir.canonicalize().unwrap_or_else(|_| work_dir.to_owned());
        let user_home = config.user_home.as_deref();
        let top = git_root(&work_dir).unwrap_or(&work_dir);
        let is_of_project = |folder: &&Path| {
            folder.starts_with(top)
                && (**folder == *work_dir || (Some(*folder) != user_home && **folder != *config.home))
        };
        let project =
            work_dir.ancestors().filter(is_of_project).map(|folder| (folder, SkillSource::Project, top));
        let user = user_home.map(|home| (home, SkillSource::User, home));
        let in_folder = |(folder, source, base): (&Path, SkillSource, &Path)| {
            FOLDERS.map(|name| SkillRoot { path: folder.join(name), source, base: base.to_owned() })
        };
        let mut roots: Vec<SkillRoot> = project.chain(user).flat_map(in_folder).collect();
        let home = config.home.join(HOME_FOLDER);
        roots.push(SkillRoot { path: home, source: SkillSource::Home, base: config.home.clone() });
        for named in &config.settings.skills.paths {
            let in_home = named.strip_prefix("~").ok().and_then(|rest| Some(user_home?.join(rest)));
            let path = in_home.unwrap_or_else(|| config.home.join(named));
            // The user named it, so it may be a link.
            let base = path.canonicalize().unwrap_or_else(|_| path.clone());
            roots.push(SkillRoot { path, source: SkillSource::Config, base });
        }
        let scope = config.tool_scope(&work_dir);
        let own_home = config.home.canonicalize().unwrap_or_else(|_| config.home.clone());
        let denied: Vec<PathBuf> = scope
            .denied()
            .filter(|(path, permission)| {
                *permission == Permission::Read && *path != own_home && *path != config.home
            })
            .map(|(path, _)| path)
            .collect();
        let is_write = |(_, permission): &(&Path, Permission)| *permission == Permission::Write;
        let writable = scope.allowed().filter(is_write).map(|(path, _)| path.to_owned());
        let writable = writable.chain([work_dir.clone()]).collect();
        Self { roots, work_folders: WorkFolders::load(&config.home), home: own_home, writable, denied }
    }

    /// Looks for skills, but not in what the user denies.
    fn discover(&self) -> Discovery {
        let roots: Vec<SkillRoot> =
            self.roots.iter().filter(|root| !self.is_denied(&root.path)).cloned().collect();
        let mut discovery = find_skill_folders(&roots);
        discovery.places.retain(|place| !self.is_denied(&place.folder.join(DOCUMENT)));
        discovery
    }

    fn is_denied(&self, path: &Path) -> bool {
        self.denied.iter().any(|denied| path.starts_with(denied))
    }

    /// Whether the user has to trust a skill before it is used.
    fn needs_trust(&self, place: &SkillPlace) -> bool {
        let is_writable = || {
            self.work_folders.contain(&place.folder)
                || self.writable.iter().any(|writable| place.folder.starts_with(writable))
        };
        place.source == SkillSource::Project || (!place.folder.starts_with(&self.home) && is_writable())
    }

    /// Reads what is needed to tell whether a skill can be used.
    fn judge(&self, place: &SkillPlace, trust_list: &TrustList) -> Skill {
        let judged = match self.needs_trust(place) {
            true => self.read(place, None, trust_list).map(|content| content.document),
            false => place.document().map_err(|error| (SkillState::Malformed, error.to_string())),
        };
        let (state, document, reason) = match judged {
            Ok(document) => (SkillState::Ready, Some(document), String::new()),
            Err((state, reason)) => {
                (state, place.document().ok().filter(|_| state != SkillState::Malformed), reason)
            }
        };
        let SkillPlace { name, folder, source, .. } = place.clone();
        Skill { name, source, folder, state, document, reason }
    }

    /// Reads the folder of a skill once: its hash decides, and what is returned are bytes that were hashed.
    fn read(
        &self,
        place: &SkillPlace,
        file: Option<&str>,
        trust_list: &TrustList,
    ) -> Result<SkillContent, (SkillState, String)> {
        let malformed = |error: SkillError| (SkillState::Malformed, error.to_string());
        if let Some(problem) = &place.problem {
            return Err(malformed(problem.clone()));
        }
        if let Some(file) = file.filter(|file| self.is_denied(&place.folder.join(file))) {
            return Err((SkillState::Malformed, format!("scope.deny keeps its file {file} out of reach")));
        }
        let (mut document, mut wanted) = (Vec::new(), None);
        let read = SkillFolder::read_with(&place.folder, |found, bytes| {
            if found.path == DOCUMENT {
                document = bytes.to_vec();
            }
            if Some(found.path.as_str()) == file {
                wanted = Some(bytes.to_vec());
            }
        })
        .map_err(malformed)?;
        let document = parse_document_bytes(&document, &place.folder).map_err(malformed)?;
        if self.needs_trust(place) {
            check_trust(place, read.hash, trust_list)?;
        }
        Ok(SkillContent { document, folder: place.folder.clone(), read, file: wanted })
    }
}

fn check_trust(place: &SkillPlace, hash: Hash, trust_list: &TrustList) -> Result<(), (SkillState, String)> {
    let name = place.folder.file_name().unwrap_or_default().to_string_lossy();
    let why = match place.source {
        SkillSource::Project => "the project brought it along",
        SkillSource::User | SkillSource::Home | SkillSource::Config => {
            "sessions have worked where it lies and may have changed it,"
        }
    };
    match trust_list.state(&place.folder, hash) {
        TrustState::Trusted => Ok(()),
        TrustState::Changed => Err((
            SkillState::Changed,
            format!("its folder has changed since it was trusted; `longhaul skills trust {name}` shows what"),
        )),
        TrustState::Unknown => Err((
            SkillState::Untrusted,
            format!("{why} and it is not trusted; `longhaul skills trust {name}` shows it"),
        )),
    }
}

/// The folders in which the project of a work folder may have skills.
pub(super) fn project_skill_roots(config: &Config) -> Vec<PathBuf> {
    let roots = SkillSources::new(config, &config.work_dir).roots.into_iter();
    roots.filter(|root| root.source == SkillSource::Project).map(|root| root.path).collect()
}
