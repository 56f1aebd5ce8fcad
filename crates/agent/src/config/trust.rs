//! `trust.toml` in the home: the project files that the user has read and trusts, with their content at that time.

use std::io::Write;
use std::path::{Path, PathBuf};

use longhaul_config::{TrustList, TrustState, TrustedFile};
use longhaul_journal::{Home, ReplacingFile};
use longhaul_mcp::PROJECT_FILE;
use longhaul_protocol::{Hash, PrintablePath};
use longhaul_skills::SkillFolder;
use longhaul_tools::{LastLink, read_small_file};

use super::files::MAX_CONFIG_BYTES;
use super::project::ProjectFile;
use super::project_servers::ProjectServersFile;
use super::{config_error, project};
use crate::config::Sources;
use crate::subagents::kinds::{KindFile, project_folders};
use crate::{Error, Result};

/// The list contains the text of every trusted file. A larger list was not written by this program.
const MAX_TRUST_LIST_BYTES: u64 = 256 << 20;

/// Whether a trusted file, or the folder of a trusted skill, has changed since. `None` if it is gone.
pub fn trust_state(file: &TrustedFile) -> Option<TrustState> {
    if file.path.is_dir() {
        let is_same = SkillFolder::read(&file.path).is_ok_and(|folder| folder.hash == file.blake3);
        return Some(if is_same { TrustState::Trusted } else { TrustState::Changed });
    }
    let read = read_small_file(&file.path, LastLink::Refuse, MAX_CONFIG_BYTES).ok()??;
    Some(if Hash::of(read.bytes) == file.blake3 { TrustState::Trusted } else { TrustState::Changed })
}

/// The trust list of a home. Empty if there is none.
pub fn load_trust_list(home: &Path) -> Result<TrustList> {
    let path = trust_file(home);
    let name = path.printable().to_string();
    let file = read_small_file(&path, LastLink::Follow, MAX_TRUST_LIST_BYTES)
        .map_err(|error| config_error(&name, &error))?;
    let Some(file) = file else { return Ok(TrustList::default()) };
    let text = String::from_utf8(file.bytes)
        .map_err(|_| config_error(&name, "it is not valid UTF-8; fix or remove it"))?;
    TrustList::from_toml(&text).map_err(|error| {
        let reason = format!("{}; fix it, or remove it and run `longhaul trust` again", error.message());
        config_error(&name, &reason)
    })
}

/// Records in the home that the user trusts a project file with the content that was read.
pub fn trust_project(home: &Path, file: &ProjectFile) -> Result<()> {
    trust_file_content(home, &file.path, file.hash, &file.text)
}

/// Records in the home that the user trusts the MCP servers of a project with the content that was read.
pub fn trust_project_servers(home: &Path, file: &ProjectServersFile) -> Result<()> {
    trust_file_content(home, &file.path, file.hash, &file.text)
}

/// Records in the home that the user trusts a kind of subagent with the content that was read.
pub fn trust_kind(home: &Path, file: &KindFile) -> Result<()> {
    trust_file_content(home, &file.path, file.hash, &file.text)
}

fn trust_file_content(home: &Path, path: &Path, hash: Hash, text: &str) -> Result<()> {
    if path.to_str().is_none() {
        return Err(config_error(&path.printable().to_string(), "its path is not valid UTF-8"));
    }
    let mut list = load_trust_list(home)?;
    list.insert(TrustedFile { path: path.to_owned(), blake3: hash, text: Some(text.to_owned()) });
    save_trust_list(&list, home)
}

/// Revokes the trust in the nearest trusted files at or above the work folder: its `longhaul.toml` and its `.mcp.json`, even if they no
/// longer exist. Returns their paths.
pub fn distrust_project(home: &Path, sources: &Sources) -> Result<Vec<PathBuf>> {
    let mut list = load_trust_list(home)?;
    let candidates = project::candidate_paths(sources)?;
    let servers: Vec<PathBuf> = candidates.iter().map(|path| path.with_file_name(PROJECT_FILE)).collect();
    let nearest = |paths: Vec<PathBuf>| paths.into_iter().find(|path| list.find(path).is_some());
    let found: Vec<PathBuf> = [nearest(candidates), nearest(servers)].into_iter().flatten().collect();
    if !found.is_empty() {
        found.iter().for_each(|path| list.remove(path));
        save_trust_list(&list, home)?;
    }
    Ok(found)
}

/// Revokes the trust in all kinds of subagents of the project that a folder belongs to, even if they no longer exist. Returns their paths.
pub fn distrust_kinds(home: &Path, work_dir: &Path) -> Result<Vec<PathBuf>> {
    let mut list = load_trust_list(home)?;
    let folders = project_folders(work_dir);
    let is_kind =
        |path: &&Path| path.parent().is_some_and(|parent| folders.iter().any(|folder| folder == parent));
    let found: Vec<PathBuf> =
        list.files().iter().map(|file| file.path.as_path()).filter(is_kind).map(Path::to_owned).collect();
    if !found.is_empty() {
        found.iter().for_each(|path| list.remove(path));
        save_trust_list(&list, home)?;
    }
    Ok(found)
}

/// Replaces the file atomically, so that no process ever reads half of it.
pub(crate) fn save_trust_list(list: &TrustList, home: &Path) -> Result<()> {
    let home = Home::create(home)?;
    let path = trust_file(home.folder());
    let mut file = ReplacingFile::create(&path)?;
    let written = file.write_all(list.to_toml().as_bytes());
    written.map_err(|error| Error::Folder { path, reason: format!("can't write it: {error}") })?;
    Ok(file.finish()?)
}

fn trust_file(home: &Path) -> PathBuf {
    home.join("trust.toml")
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
