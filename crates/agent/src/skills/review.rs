//! The trust in the skills of a project (P7). It is recorded in `trust.toml` for exactly one content of a folder, with a
//! listing of that content, so that the next look shows what has changed.

use std::path::{Path, PathBuf};

use longhaul_config::{TrustState, TrustedFile};
use longhaul_protocol::Hash;
use longhaul_skills::SkillFolder;

use super::library::project_skill_roots;
use crate::config::{load_trust_list, save_trust_list};
use crate::{Config, Error, Result};

/// A skill's folder as the user looks at it. What is shown is what is trusted: both are of bytes that were read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillReview {
    /// The canonical path of the folder.
    pub folder: PathBuf,
    /// The hash of all that it holds.
    pub hash: Hash,
    /// Every file, with its text where it has one.
    pub listing: String,
    /// Whether the user trusts this content.
    pub trust: TrustState,
    /// The listing that the user last agreed to.
    pub trusted_listing: Option<String>,
}

/// Reads a skill's folder for the user to look at.
pub fn review_skill(home: &Path, folder: &Path) -> Result<SkillReview> {
    let (read, listing) = SkillFolder::read_listing(folder)
        .map_err(|error| Error::Folder { path: folder.to_owned(), reason: error.to_string() })?;
    let list = load_trust_list(home)?;
    let trusted_listing = list.find(folder).and_then(|trusted| trusted.text.clone());
    let trust = list.state(folder, read.hash);
    Ok(SkillReview { folder: folder.to_owned(), hash: read.hash, listing, trust, trusted_listing })
}

/// Records that the user trusts what a review has shown.
pub fn trust_skill(home: &Path, review: &SkillReview) -> Result<()> {
    if review.folder.to_str().is_none() {
        let reason = "its path is not valid UTF-8".to_owned();
        return Err(Error::Folder { path: review.folder.clone(), reason });
    }
    let mut list = load_trust_list(home)?;
    list.insert(TrustedFile {
        path: review.folder.clone(),
        blake3: review.hash,
        text: Some(review.listing.clone()),
    });
    save_trust_list(&list, home)
}

/// Revokes the trust in all skills of the project that the work folder belongs to, even if they no longer exist. Returns their
/// folders.
pub fn distrust_project_skills(config: &Config) -> Result<Vec<PathBuf>> {
    let mut list = load_trust_list(&config.home)?;
    let roots = project_skill_roots(config);
    let is_of_project = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    let found: Vec<PathBuf> =
        list.files().iter().map(|file| file.path.clone()).filter(|path| is_of_project(path)).collect();
    if !found.is_empty() {
        found.iter().for_each(|folder| list.remove(folder));
        save_trust_list(&list, &config.home)?;
    }
    Ok(found)
}

/// Revokes the trust in a skill. Returns whether there was any.
pub fn distrust_skill(home: &Path, folder: &Path) -> Result<bool> {
    let mut list = load_trust_list(home)?;
    let was_trusted = list.find(folder).is_some();
    if was_trusted {
        list.remove(folder);
        save_trust_list(&list, home)?;
    }
    Ok(was_trusted)
}
