//! The token of the first start: a private file of the home.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use longhaul_protocol::PrintablePath;

use super::registry::new_token;

/// The largest file that is read.
const MAX_TOKEN_FILE_BYTES: u64 = 4096;

/// `run/http-token` of a home.
#[derive(Debug, Clone)]
pub struct HttpTokenFile(PathBuf);

/// Why the token of the first start can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpTokenFileError {
    /// Another user could have read it.
    #[error("{} can be read by other users (mode {mode:03o}); delete it, and the next `longhaul serve` makes a new token", path.printable())]
    Exposed { path: PathBuf, mode: u32 },
    /// It can't be read or written.
    #[error("{}: {source}", path.printable())]
    Io {
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl HttpTokenFile {
    /// The file of this home.
    pub fn in_home(home: &Path) -> Self {
        Self(home.join("run").join("http-token"))
    }

    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    fn failed(&self, source: io::Error) -> HttpTokenFileError {
        HttpTokenFileError::Io { path: self.0.clone(), source }
    }

    /// The token, if the file exists. Only a file that no other user can read counts.
    pub fn read(&self) -> Result<Option<String>, HttpTokenFileError> {
        let file = match File::open(&self.0) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        let metadata = file.metadata().map_err(|error| self.failed(error))?;
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
        if metadata.mode() & 0o077 != 0 || !is_own {
            let mode = metadata.mode() & 0o777;
            return Err(HttpTokenFileError::Exposed { path: self.0.clone(), mode });
        }
        let mut text = String::new();
        file.take(MAX_TOKEN_FILE_BYTES).read_to_string(&mut text).map_err(|error| self.failed(error))?;
        let token = text.trim();
        Ok((!token.is_empty()).then(|| token.to_owned()))
    }

    /// Makes a new token and keeps it in the file. If another process was faster, its token stays.
    pub fn create(&self) -> Result<(), HttpTokenFileError> {
        let failed = |error| self.failed(error);
        let folder = self.0.parent().unwrap_or(Path::new("."));
        if !folder.exists() {
            fs::create_dir_all(folder).map_err(failed)?;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        }
        let token = new_token().map_err(failed)?;
        let partial = self.0.with_extension(format!("{}.partial", std::process::id()));
        let _ = fs::remove_file(&partial);
        let written = || {
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&partial)?;
            file.write_all(token.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            match fs::hard_link(&partial, &self.0) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            }
        };
        let written = written().map_err(failed);
        let _ = fs::remove_file(&partial);
        written
    }

    /// Removes the file. Returns whether there was one.
    pub fn remove(&self) -> Result<bool, HttpTokenFileError> {
        match fs::remove_file(&self.0) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }
}
