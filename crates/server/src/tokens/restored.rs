//! Tokens that a restored backup brings back.
//!
//! A backup has tokens that were revoked since, or that its author still has. So a restore revokes them all. A marker in the home says that
//! this is not done yet:
//!
//! | killed | what is there | what happens next |
//! | --- | --- | --- |
//! | before the marker | the journal as it was | `restore` is run again |
//! | after it, before the restore took effect | the marker, the journal as it was | the next `serve` revokes the tokens, and says so |
//! | after the restore | the marker, the backup's tokens | the same |
//! | after the revocations | the marker, no tokens | there is nothing to revoke |

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use longhaul_journal::Journal;

use super::registry::{TokenError, list_tokens, revoke_token};

/// The marker of a home whose journal was restored, and whose tokens are not revoked yet.
#[derive(Debug)]
pub struct RestoredTokens(PathBuf);

impl RestoredTokens {
    /// The marker of this home.
    pub fn in_home(home: &Path) -> Self {
        Self(home.join("run").join("restored-tokens"))
    }

    /// Notes that the tokens of the journal must not count. Before the restore takes effect.
    pub fn mark(&self) -> io::Result<()> {
        let folder = self.0.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        File::create(&self.0)?.sync_all()?;
        File::open(folder)?.sync_all()
    }

    /// Removes the marker: nothing was restored, or the tokens are to be kept.
    pub fn clear(&self) -> io::Result<()> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Revokes every token of a journal that was restored. Returns their names.
    pub async fn revoke(&self, journal: &dyn Journal) -> Result<Vec<String>, TokenError> {
        if !self.0.exists() {
            return Ok(vec![]);
        }
        let mut revoked = Vec::new();
        for token in list_tokens(journal).await?.tokens {
            revoke_token(journal, &token.name).await?;
            revoked.push(token.name);
        }
        self.clear().map_err(TokenError::Marker)?;
        Ok(revoked)
    }
}
