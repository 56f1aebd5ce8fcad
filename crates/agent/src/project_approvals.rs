//! `approvals.toml` in the home: what the user always allows in a project, by the canonical path of its folder.
//!
//! The home is out of reach for every tool and command, and a project can't bring such a file. Each rule was shown in a question and is the
//! answer to it. A rule that is removed from the file no longer counts.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use longhaul_config::to_toml;
use longhaul_journal::{Home, ReplacingFile};
use longhaul_protocol::{ApprovalGrant, PrintablePath};
use longhaul_tools::{LastLink, read_small_file};
use serde::Deserialize;
use serde_json::Value;

use crate::{Error, Result};

const FILE_NAME: &str = "approvals.toml";
/// A larger file was not written by this program.
const MAX_FILE_BYTES: u64 = 8 << 20;
const HEADING: &str = "# What is always allowed in a project. The answer \"always for this project\" adds to it; remove what should ask again.\n";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectApprovals {
    #[serde(default)]
    project: Vec<ProjectGrants>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectGrants {
    folder: String,
    #[serde(default)]
    rule: Vec<ApprovalGrant>,
}

/// What the user always allows in this folder. Nothing, if the file can't be read or another user could have written it: then the user is
/// asked.
pub(crate) fn load_project_grants(home: &Path, folder: &Path) -> Vec<ApprovalGrant> {
    let approvals = load(home).unwrap_or_default();
    let of_folder = approvals.project.into_iter().filter(|project| Path::new(&project.folder) == folder);
    of_folder.flat_map(|project| project.rule).collect()
}

/// Adds a rule for this folder, if it is not there yet. The file is replaced atomically, and only the user may read it.
pub(crate) fn save_project_grant(home: &Path, folder: &Path, grant: &ApprovalGrant) -> Result<()> {
    let path = home.join(FILE_NAME);
    let wrong = |reason: String| Error::Folder { path: path.clone(), reason };
    let folder = folder.to_str().ok_or_else(|| wrong("the folder's name is not UTF-8".to_owned()))?;
    Home::create(home)?;
    // Another process may add a rule at the same moment: the file is read and replaced under a lock. Without the lock a rule could be lost,
    // so where the file system has no locks, the rule is kept for the session only.
    let alone = File::open(home).map_err(|error| wrong(format!("can't be locked: {error}")))?;
    alone.lock().map_err(|error| wrong(format!("can't be locked: {error}")))?;
    let mut approvals = load(home)?;
    match approvals.project.iter_mut().find(|project| project.folder == folder) {
        Some(project) if project.rule.contains(grant) => return Ok(()),
        Some(project) => project.rule.push(grant.clone()),
        None => {
            let (folder, rule) = (folder.to_owned(), vec![grant.clone()]);
            approvals.project.push(ProjectGrants { folder, rule });
        }
    }
    let mut file = ReplacingFile::create(&path)?;
    let written = file.write_all(format(&approvals).as_bytes());
    written.map_err(|error| wrong(format!("can't be written: {error}")))?;
    Ok(file.finish()?)
}

fn load(home: &Path) -> Result<ProjectApprovals> {
    let path: PathBuf = home.join(FILE_NAME);
    let wrong = |reason: String| Error::Config { origin: path.printable().to_string(), reason };
    let file =
        read_small_file(&path, LastLink::Refuse, MAX_FILE_BYTES).map_err(|error| wrong(error.to_string()))?;
    let Some(file) = file else { return Ok(ProjectApprovals::default()) };
    if let Some(reason) = file.foreign {
        return Err(wrong(format!("{reason}, so it is not used")));
    }
    let text = String::from_utf8(file.bytes)
        .map_err(|_| wrong("it is not UTF-8; mend it, or remove it".to_owned()))?;
    toml::from_str(&text).map_err(|error| wrong(format!("{}; mend it, or remove it", error.message())))
}

fn format(approvals: &ProjectApprovals) -> String {
    let mut text = HEADING.to_owned();
    for project in &approvals.project {
        let folder = to_toml(&Value::from(project.folder.as_str()));
        text.push_str(&format!("\n[[project]]\nfolder = {folder}\n"));
        for grant in &project.rule {
            text.push_str("\n[[project.rule]]\n");
            let fields = serde_json::to_value(grant).unwrap_or_default();
            for (name, value) in fields.as_object().into_iter().flatten() {
                text.push_str(&format!("{name} = {}\n", to_toml(value)));
            }
        }
    }
    text
}

#[cfg(test)]
#[path = "project_approvals_tests.rs"]
mod tests;
