//! The folders that sessions of a home have worked in, in the file `work_folders` of the home: one path a line, as JSON.
//!
//! Commands of a session may change everything in its work folder. So a skill that lies in one of these folders is used only as the
//! user has seen it, in every session. A folder is in the file before the first tool works in it. The file can be deleted: the next
//! runtime makes it again from the first records of all sessions.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use longhaul_journal::{Journal, session_place};

use crate::Result;

/// Sessions that are read from the list at a time.
const LIST_PAGE: usize = 200;

/// The folders that sessions have worked in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WorkFolders(Vec<PathBuf>);

impl WorkFolders {
    /// Those of a home. Empty if no session has worked in a folder yet.
    pub(crate) fn load(home: &Path) -> Self {
        let text = std::fs::read_to_string(file_of(home)).unwrap_or_default();
        Self(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// Whether a path lies in one of them.
    pub(crate) fn contain(&self, path: &Path) -> bool {
        self.0.iter().any(|folder| path.starts_with(folder))
    }

    /// Adds a folder in which a session is about to work.
    pub(crate) fn add(home: &Path, folder: &Path) -> std::io::Result<()> {
        if Self::load(home).0.iter().any(|known| known == folder) {
            return Ok(());
        }
        let mut file = OpenOptions::new().create(true).append(true).open(file_of(home))?;
        file.write_all(lines([folder]).as_bytes())?;
        file.sync_data()
    }

    /// Makes the file if it is not there. Two processes may do that at the same time.
    pub(crate) async fn ensure(journal: &dyn Journal, home: &Path) -> Result<()> {
        let file = file_of(home);
        if file.exists() {
            return Ok(());
        }
        let (mut folders, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = journal.sessions(after.as_deref(), LIST_PAGE).await?;
            for entry in &page {
                let place = session_place(journal, entry.id).await.ok().flatten();
                folders.extend(place.and_then(|place| place.work_dir).map(PathBuf::from));
            }
            after = page.last().map(|entry| entry.key.clone());
            if page.len() < LIST_PAGE {
                break;
            }
        }
        folders.sort();
        folders.dedup();
        // Under its name at once and as a whole, and never over what another process has added meanwhile. A home that can't be
        // written has no sessions that work.
        let draft = file.with_extension(format!("{}.draft", std::process::id()));
        let written = std::fs::write(&draft, lines(folders.iter().map(PathBuf::as_path)));
        let _ = written.and_then(|()| std::fs::hard_link(&draft, &file));
        let _ = std::fs::remove_file(&draft);
        Ok(())
    }
}

fn file_of(home: &Path) -> PathBuf {
    home.join("work_folders")
}

/// A path that is no UTF-8 is no work folder: records could not name it.
fn lines<'a>(folders: impl IntoIterator<Item = &'a Path>) -> String {
    let line = |folder: &Path| Some(format!("{}\n", serde_json::to_string(folder.to_str()?).ok()?));
    folders.into_iter().filter_map(line).collect()
}
