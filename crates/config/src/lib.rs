//! Configuration in layers: TOML files, variables and flags, one over the other, generic over the settings.
//!
//! # What this crate promises
//!
//! - **The settings type is the only list of keys.** A [`ConfigFormat`] derives the schema from it, and every file is checked against
//!   that schema.
//! - **All mistakes of a file are reported at once**, each with its line. An unknown key comes with the nearest known one.
//! - **Every value knows its origin**: a file and line, a variable, a flag, or the default.
//! - **Nothing here reads or writes a file.** The caller passes texts, so it decides which files to open.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `format` | [`ConfigFormat`]: the schema of a settings type, and what a schema can't express |
//! | `validate`, `suggestion` | the check of a file against the schema; the nearest name to an unknown key |
//! | `layer` | [`Layer`], the entries of one file, and [`Layers`], which merges them into settings |
//! | `origin` | the source of each value |
//! | `display` | the settings in the form that people read: `key = value  # origin` |
//! | `trust` | the list of project files that the user trusts |
//!
//! # Example
//!
//! ```
//! use longhaul_config::{ConfigFormat, Layers};
//!
//! #[derive(Default, serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields, default)]
//! struct Settings { server: Server }
//! #[derive(Default, serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields, default)]
//! struct Server { port: u16, name: String }
//!
//! let format = ConfigFormat::<Settings>::new("The server's configuration");
//! let mut layers = Layers::new(&format);
//! layers.put(format.parse("[server]\nport = 80\nname = \"a\"", "home.toml")?);
//! layers.put(format.parse("[server]\nport = 8080", "project.toml")?);
//!
//! let settings = layers.settings()?;
//! assert_eq!((settings.server.port, settings.server.name.as_str()), (8080, "a"));
//! assert_eq!(layers.origins.source("server.port"), "project.toml:2");
//! assert_eq!(
//!     format.parse("[server]\nprot = 1", "bad.toml").unwrap_err().to_string(),
//!     "bad.toml:2: unknown key \"prot\" in [server]; did you mean \"port\"?"
//! );
//! # Ok::<(), longhaul_config::ConfigError>(())
//! ```

mod display;
mod format;
mod layer;
mod origin;
mod suggestion;
mod trust;
mod validate;

use std::io;
use std::path::{Path, PathBuf};

pub use display::{ResolvedSetting, hide_url_password, resolved_settings, sections_in_order, to_toml};
pub use format::{ConfigFormat, choices};
pub use layer::{Layer, LayerEntry, Layers};
pub use origin::{Origin, Origins};
pub use trust::{TrustList, TrustState, TrustedFile};

/// A config that is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {reason}")]
pub struct ConfigError {
    /// A file, often with its line.
    pub origin: String,
    pub reason: String,
}

impl ConfigError {
    pub fn new(origin: impl Into<String>, reason: &(impl ToString + ?Sized)) -> Self {
        Self { origin: origin.into(), reason: reason.to_string() }
    }
}

/// The paths at which a project file of this name may be: in the folder and in each one above it, nearest first.
pub fn project_file_candidates(folder: &Path, name: &str) -> io::Result<Vec<PathBuf>> {
    Ok(folder.canonicalize()?.ancestors().map(|folder| folder.join(name)).collect())
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
