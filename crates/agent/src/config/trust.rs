//! `trust.toml` in the home: which files of projects somebody has looked at, as they were then.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use longhaul_journal::Home;
use longhaul_protocol::Hash;
use serde::Deserialize;

use super::project::ProjectFile;
use super::show::toml_text;
use super::{bad, project};
use crate::config::Sources;
use crate::{Error, Result};

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
}

impl TrustedFile {
    /// What has become of it; none if it is gone.
    pub fn standing(&self) -> Option<Standing> {
        let bytes = std::fs::read(&self.path).ok()?;
        Some(if Hash::of(bytes) == self.blake3 { Standing::Trusted } else { Standing::Changed })
    }
}

impl TrustList {
    /// The list of a home; empty if there is none.
    pub fn of_home(home: &Path) -> Result<Self> {
        let path = file_of(home);
        match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|error| {
                let reason = format!("{}; mend it, or remove it and trust anew", error.message());
                bad(&path.display().to_string(), &reason)
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(bad(&path.display().to_string(), &error)),
        }
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

    /// Trusts a file as it was when it was read, and keeps that in the home.
    pub fn trust(home: &Path, file: &ProjectFile) -> Result<()> {
        if file.path.to_str().is_none() {
            return Err(bad(&file.path.display().to_string(), "its path is not UTF-8"));
        }
        let mut list = Self::of_home(home)?;
        list.trusted.retain(|known| known.path != file.path);
        list.trusted.push(TrustedFile { path: file.path.clone(), blake3: file.hash });
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
        let new = home.folder().join(format!("trust.toml.{}.new", std::process::id()));
        let replaced = write_private(&new, &self.to_toml())
            .and_then(|()| std::fs::rename(&new, &path))
            .and_then(|()| File::open(home.folder())?.sync_all());
        replaced.map_err(|error| {
            let _ = std::fs::remove_file(&new);
            Error::Folder { path, reason: format!("can't be written: {error}") }
        })
    }

    fn to_toml(&self) -> String {
        let mut text =
            String::from("# Files of projects that may set everything; `longhaul trust` writes it.\n");
        for TrustedFile { path, blake3 } in &self.trusted {
            let path = toml_text(&path.to_string_lossy().into());
            text.push_str(&format!("\n[[trusted]]\npath = {path}\nblake3 = \"{blake3}\"\n"));
        }
        text
    }
}

fn file_of(home: &Path) -> PathBuf {
    home.join("trust.toml")
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
