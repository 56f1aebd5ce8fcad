//! Which files, variables and flags a config is loaded from.

use std::path::{Path, PathBuf};

/// The sources of a config besides the home.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The work folder of new sessions. A project's `longhaul.toml` is searched there and above. By default, the
    /// current folder of the process.
    pub work_dir: Option<PathBuf>,
    /// A file that replaces the home's `config.toml` (`--config`). It must exist.
    pub config_file: Option<PathBuf>,
    /// The value of `LONGHAUL_MODEL`. Empty means unset.
    pub model_variable: Option<String>,
    /// The value of `--model`.
    pub model_flag: Option<String>,
}

impl Sources {
    /// The file of the lowest layer.
    pub(crate) fn base_file(&self, home: &Path) -> PathBuf {
        let file = self.config_file.clone().unwrap_or_else(|| home.join("config.toml"));
        std::path::absolute(&file).unwrap_or(file)
    }

    pub(crate) fn work_dir(&self) -> PathBuf {
        let here = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        self.work_dir.clone().unwrap_or_else(here)
    }
}
