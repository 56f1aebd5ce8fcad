//! The project files that the user trusts, with their content at the time when the user read them.

use std::path::{Path, PathBuf};

use longhaul_protocol::Hash;
use serde::Deserialize;

use crate::display::to_toml;

/// Whether a project file may set all keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustState {
    Trusted,
    /// The user trusted an earlier text of the file.
    Changed,
    /// The user never trusted it.
    Unknown,
}

/// The trusted project files, in the order in which they were trusted.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct TrustList {
    #[serde(default)]
    trusted: Vec<TrustedFile>,
}

/// A file that is trusted as long as its bytes stay the same.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TrustedFile {
    pub path: PathBuf,
    /// The hash of the trusted bytes.
    pub blake3: Hash,
    /// The trusted text, to show what has changed. Lists of earlier versions don't have it.
    #[serde(default)]
    pub text: Option<String>,
}

impl TrustList {
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    pub fn to_toml(&self) -> String {
        let mut toml =
            String::from("# Files of projects that may set everything; `longhaul trust` writes it.\n");
        for TrustedFile { path, blake3, text } in &self.trusted {
            let path = to_toml(&path.to_string_lossy().into());
            toml.push_str(&format!("\n[[trusted]]\npath = {path}\nblake3 = \"{blake3}\"\n"));
            if let Some(text) = text {
                toml.push_str(&format!("text = {}\n", to_toml(&text.as_str().into())));
            }
        }
        toml
    }

    pub fn files(&self) -> &[TrustedFile] {
        &self.trusted
    }

    pub fn find(&self, path: &Path) -> Option<&TrustedFile> {
        self.trusted.iter().find(|trusted| trusted.path == path)
    }

    pub fn state(&self, path: &Path, hash: Hash) -> TrustState {
        match self.find(path) {
            Some(trusted) if trusted.blake3 == hash => TrustState::Trusted,
            Some(_) => TrustState::Changed,
            None => TrustState::Unknown,
        }
    }

    /// Trusts a file. An earlier entry for the same path is replaced.
    pub fn insert(&mut self, file: TrustedFile) {
        self.remove(&file.path);
        self.trusted.push(file);
    }

    pub fn remove(&mut self, path: &Path) {
        self.trusted.retain(|trusted| trusted.path != path);
    }
}
