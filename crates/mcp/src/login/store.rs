//! The file with the login of one server: `mcp/logins/<name>-<hash of its url>.json` in the home, private to the user.
//!
//! A server with another address is another server, so that a token goes only to the address that it was given for.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use longhaul_journal::ReplacingFile;
use longhaul_redact::Redactor;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, OAuthTokenResponse, StoredCredentials,
};
use serde::{Deserialize, Serialize};

use crate::{Error, Result, ServerSettings};

const LOGINS_FOLDER: &str = "mcp/logins";
/// How many rights a server can ask for, and their bytes together. It can ask for others with each answer, and all of them go into one
/// address at the next login.
const MAX_WANTED_SCOPES: usize = 64;
const MAX_WANTED_BYTES: usize = 4 << 10;

/// What is kept about the login at one server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LoginFile {
    /// For people who look into the file.
    pub(crate) url: String,
    /// The secret that the server gave us when we registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) credentials: Option<StoredCredentials>,
    /// Whether the server has refused a request since the last login.
    #[serde(default)]
    pub(crate) is_needed: bool,
    /// The rights that it wanted then, in addition to those that it gave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) wanted_scopes: Vec<String>,
}

impl LoginFile {
    /// Notes a right for the next login, if there is room for it.
    pub(crate) fn want_scope(&mut self, scope: String) {
        let bytes = self.wanted_scopes.iter().map(String::len).sum::<usize>() + scope.len();
        let has_room = self.wanted_scopes.len() < MAX_WANTED_SCOPES && bytes <= MAX_WANTED_BYTES;
        if has_room && !self.wanted_scopes.contains(&scope) {
            self.wanted_scopes.push(scope);
        }
    }
}

/// Whether the user is logged in at a server, as far as is known without asking it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginState {
    /// It has never asked for a login.
    NotNeeded,
    /// It refused the last request.
    Needed,
    LoggedIn,
}

/// The file of one server's login.
#[derive(Debug, Clone)]
pub(crate) struct LoginStore {
    path: PathBuf,
    url: String,
    redactor: Redactor,
    /// Whether rmcp gets the token to renew a login with.
    is_renewable: bool,
}

impl LoginStore {
    pub(crate) fn new(home: &Path, name: &str, settings: &ServerSettings, redactor: Redactor) -> Self {
        let hash = blake3::hash(settings.url.as_bytes()).to_hex();
        let path = home.join(LOGINS_FOLDER).join(format!("{name}-{}.json", &hash[..16]));
        Self { path, url: settings.url.clone(), redactor, is_renewable: true }
    }

    /// The store of a login that can't be renewed: once its token has ended, a new login is needed.
    pub(crate) fn without_renewal(self) -> Self {
        Self { is_renewable: false, ..self }
    }

    /// What is kept. Every secret in it is known to the redactor from now on.
    pub(crate) fn read(&self) -> Result<Option<LoginFile>> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.broken("read", &error.to_string())),
        };
        let file: LoginFile =
            serde_json::from_slice(&bytes).map_err(|error| self.broken("read", &error.to_string()))?;
        self.redactor.add_secrets(secrets_of(&file));
        Ok(Some(file))
    }

    /// Changes what is kept. No other process changes it meanwhile: a token that was just renewed would be lost.
    pub(crate) fn update(&self, change: impl FnOnce(&mut LoginFile)) -> Result<()> {
        self.create_folder()?;
        let _lock = lock_file(&self.path.with_extension("lock"))
            .map_err(|error| self.broken("write", &error.to_string()))?;
        let mut file = match self.read() {
            Ok(file) => file.unwrap_or_default(),
            // A file with other content is replaced. One that can't be read now may be a login, and stays.
            Err(_) if std::fs::read(&self.path).is_ok() => LoginFile::default(),
            Err(error) => return Err(error),
        };
        change(&mut file);
        file.url.clone_from(&self.url);
        self.redactor.add_secrets(secrets_of(&file));
        let bytes = serde_json::to_vec_pretty(&file).unwrap_or_default();
        let failed = |error: String| self.broken("write", &error);
        let mut replacing = ReplacingFile::create(&self.path).map_err(|error| failed(error.to_string()))?;
        replacing.write_all(&bytes).map_err(|error| failed(error.to_string()))?;
        replacing.finish().map_err(|error| failed(error.to_string()))
    }

    /// Forgets the login. False if there was none.
    pub(crate) fn remove(&self) -> Result<bool> {
        self.create_folder()?;
        let _lock = lock_file(&self.path.with_extension("lock"))
            .map_err(|error| self.broken("remove", &error.to_string()))?;
        let had_login = self.read().ok().flatten().is_some_and(|file| file.credentials.is_some());
        match std::fs::remove_file(&self.path) {
            Ok(()) => Ok(had_login),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.broken("remove", &error.to_string())),
        }
    }

    pub(crate) fn state(&self) -> LoginState {
        match self.read() {
            Ok(Some(file)) if file.is_needed => LoginState::Needed,
            Ok(Some(file)) if file.credentials.is_some() => LoginState::LoggedIn,
            Ok(_) => LoginState::NotNeeded,
            Err(_) => LoginState::Needed,
        }
    }

    fn create_folder(&self) -> Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        created.map_err(|error| self.broken("write", &error.to_string()))
    }

    fn broken(&self, verb: &str, reason: &str) -> Error {
        let path = longhaul_protocol::printable(self.path.as_os_str().as_encoded_bytes()).to_string();
        Error::NotStarted(format!("can't {verb} its login in {path}: {reason}"))
    }
}

/// How rmcp reads and renews the login.
#[async_trait]
impl CredentialStore for LoginStore {
    async fn load(&self) -> std::result::Result<Option<StoredCredentials>, AuthError> {
        let file = self.read().map_err(|error| AuthError::CredentialStoreError(error.to_string()))?;
        let mut credentials = file.and_then(|file| file.credentials);
        let token = credentials.as_mut().and_then(|credentials| credentials.token_response.as_mut());
        if let Some(token) = token.filter(|_| !self.is_renewable) {
            token.set_refresh_token(None);
        }
        Ok(credentials)
    }

    async fn save(&self, credentials: StoredCredentials) -> std::result::Result<(), AuthError> {
        let saved = self.update(|file| {
            file.is_needed = credentials.token_response.is_none();
            file.wanted_scopes.clear();
            file.credentials = Some(credentials);
        });
        saved.map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }

    async fn clear(&self) -> std::result::Result<(), AuthError> {
        let cleared = self.update(|file| {
            (file.credentials, file.client_secret, file.is_needed) = (None, None, true);
        });
        cleared.map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }

    /// Two processes that renew one login would each use a renewal token that many servers take only once.
    async fn acquire_refresh_guard(&self) -> std::result::Result<Option<CredentialRefreshGuard>, AuthError> {
        let failed = |reason: String| AuthError::CredentialStoreError(reason);
        self.create_folder().map_err(|error| failed(error.to_string()))?;
        let path = self.path.with_extension("renewal.lock");
        let locked = tokio::task::spawn_blocking(move || lock_file(&path)).await;
        let locked = locked.map_err(|error| failed(error.to_string()))?;
        Ok(Some(CredentialRefreshGuard::new(locked.map_err(|error| failed(error.to_string()))?)))
    }
}

/// Holds a lock until the file is dropped. Blocks.
fn lock_file(path: &Path) -> std::io::Result<File> {
    let file = File::options().create(true).append(true).mode(0o600).open(path)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(file)
}

/// The secrets of all logins of a home, so that none of them is ever shown.
pub fn stored_secrets(home: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(home.join(LOGINS_FOLDER)) else { return vec![] };
    let files = entries.flatten().filter_map(|entry| std::fs::read(entry.path()).ok());
    let logins = files.filter_map(|bytes| serde_json::from_slice::<LoginFile>(&bytes).ok());
    logins.flat_map(|login| secrets_of(&login)).collect()
}

fn secrets_of(file: &LoginFile) -> Vec<String> {
    let token = file.credentials.as_ref().and_then(|credentials| credentials.token_response.as_ref());
    token.into_iter().flat_map(token_secrets).chain(file.client_secret.clone()).collect()
}

/// All tokens in an answer of the authorization server, nonstandard ones too.
fn token_secrets(token: &OAuthTokenResponse) -> Vec<String> {
    let value = serde_json::to_value(token).unwrap_or_default();
    let fields = value.as_object().into_iter().flatten();
    let is_token = |name: &str| name.ends_with("_token");
    fields
        .filter(|(name, _)| is_token(name))
        .filter_map(|(_, value)| Some(value.as_str()?.to_owned()))
        .collect()
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
