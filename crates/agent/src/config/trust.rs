//! `trust.toml` in the home: which files of projects somebody has looked at, as they were then.

use std::io::Write;
use std::path::{Path, PathBuf};

use longhaul_journal::{Home, ReplacingFile};
use longhaul_protocol::{Hash, PrintablePath};
use longhaul_tools::{LastLink, read_small_file};
use serde::Deserialize;

use super::project::ProjectFile;
use super::reading::MAX_CONFIG_BYTES;
use super::show::toml_text;
use super::{bad, project};
use crate::config::Sources;
use crate::{Error, Result};

/// A list that is larger was not written by this program.
const MAX_LIST_BYTES: u64 = 256 << 20;

/// Whether a file may set everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Trusted,
    /// It was trusted when it said something else.
    Changed,
    /// Nobody has said so.
    Unknown,
}

/// The files of projects that are trusted.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct TrustList {
    #[serde(default)]
    trusted: Vec<TrustedFile>,
}

/// A file that is trusted as long as it is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TrustedFile {
    /// Where it is.
    pub path: PathBuf,
    /// The hash that its bytes had.
    pub blake3: Hash,
    /// What it said then, for showing what has changed. Lists of earlier versions don't have it.
    #[serde(default)]
    pub text: Option<String>,
}

impl TrustedFile {
    /// What has become of it; none if it is gone.
    pub fn standing(&self) -> Option<Standing> {
        let file = read_small_file(&self.path, LastLink::Refuse, MAX_CONFIG_BYTES).ok()??;
        Some(if Hash::of(file.bytes) == self.blake3 { Standing::Trusted } else { Standing::Changed })
    }
}

impl TrustList {
    /// The list of a home; empty if there is none.
    pub fn of_home(home: &Path) -> Result<Self> {
        let path = file_of(home);
        let name = path.printable().to_string();
        // It holds the text of every trusted file.
        let file =
            read_small_file(&path, LastLink::Follow, MAX_LIST_BYTES).map_err(|error| bad(&name, &error))?;
        let Some(file) = file else { return Ok(Self::default()) };
        let text = String::from_utf8(file.bytes)
            .map_err(|_| bad(&name, "it is not UTF-8; mend it, or remove it"))?;
        toml::from_str(&text).map_err(|error| {
            let reason = format!("{}; mend it, or remove it and trust anew", error.message());
            bad(&name, &reason)
        })
    }

    /// All of them, in the order in which they were trusted.
    pub fn files(&self) -> &[TrustedFile] {
        &self.trusted
    }

    pub(crate) fn standing(&self, path: &Path, hash: Hash) -> Standing {
        match self.trusted.iter().find(|known| known.path == path) {
            Some(known) if known.blake3 == hash => Standing::Trusted,
            Some(_) => Standing::Changed,
            None => Standing::Unknown,
        }
    }

    /// What a file said when it was last trusted.
    pub(crate) fn text_of(&self, path: &Path) -> Option<String> {
        self.trusted.iter().find(|known| known.path == path)?.text.clone()
    }

    /// Trusts a file as it was when it was read, and keeps that in the home.
    pub fn trust(home: &Path, file: &ProjectFile) -> Result<()> {
        if file.path.to_str().is_none() {
            return Err(bad(&file.path.printable().to_string(), "its path is not UTF-8"));
        }
        let mut list = Self::of_home(home)?;
        list.trusted.retain(|known| known.path != file.path);
        let (path, text) = (file.path.clone(), Some(file.text.clone()));
        list.trusted.push(TrustedFile { path, blake3: file.hash, text });
        list.save(home)
    }

    /// Takes back the trust in the nearest file at or above the work folder that is trusted, whether it still exists or not.
    /// Says which that was.
    pub fn distrust(home: &Path, sources: &Sources) -> Result<Option<PathBuf>> {
        let mut list = Self::of_home(home)?;
        let is_trusted = |path: &PathBuf| list.trusted.iter().any(|known| known.path == *path);
        let Some(nearest) = project::candidates(sources)?.into_iter().find(is_trusted) else {
            return Ok(None);
        };
        list.trusted.retain(|known| known.path != nearest);
        list.save(home)?;
        Ok(Some(nearest))
    }

    /// Replaces the file as a whole, so that nobody ever reads half of it.
    fn save(&self, home: &Path) -> Result<()> {
        let home = Home::create(home)?;
        let path = file_of(home.folder());
        let mut file = ReplacingFile::create(&path)?;
        let written = file.write_all(self.to_toml().as_bytes());
        written.map_err(|error| Error::Folder { path, reason: format!("can't be written: {error}") })?;
        Ok(file.finish()?)
    }

    fn to_toml(&self) -> String {
        let mut text =
            String::from("# Files of projects that may set everything; `longhaul trust` writes it.\n");
        for TrustedFile { path, blake3, text: said } in &self.trusted {
            let path = toml_text(&path.to_string_lossy().into());
            text.push_str(&format!("\n[[trusted]]\npath = {path}\nblake3 = \"{blake3}\"\n"));
            if let Some(said) = said {
                text.push_str(&format!("text = {}\n", toml_text(&said.as_str().into())));
            }
        }
        text
    }
}

fn file_of(home: &Path) -> PathBuf {
    home.join("trust.toml")
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
