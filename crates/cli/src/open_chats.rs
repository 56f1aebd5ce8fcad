//! Which sessions are open in a terminal. A chat that waits at its prompt holds no lease, so each chat keeps a small file in the home:
//! `run/chats/<pid>.json`, with its session and its process. A file whose process is gone counts for nothing and is removed.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use longhaul_journal::Holder;
use serde::{Deserialize, Serialize};

/// The session that a chat has open, and the process of the chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenChat {
    pub(crate) session: String,
    pub(crate) process: Holder,
}

/// The file of this process. It is removed when this is dropped.
pub(crate) struct ChatMark {
    folder: PathBuf,
    file: PathBuf,
}

impl ChatMark {
    /// The mark of this process in a home. The file is written by [`ChatMark::open_session`].
    pub(crate) fn new(home: &Path) -> Self {
        let folder = home.join("run/chats");
        let file = folder.join(format!("{}.json", std::process::id()));
        Self { folder, file }
    }

    /// Notes the session that this process has open now.
    pub(crate) fn open_session(&self, key: &str) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let chat = OpenChat { session: key.to_owned(), process: Holder::this_process() };
        let new = self.file.with_extension("new");
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        io::Write::write_all(&mut file, &serde_json::to_vec(&chat)?)?;
        fs::rename(new, &self.file)
    }

    /// The other chats that have a session open.
    pub(crate) fn others(&self) -> Vec<OpenChat> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let files = files.filter(|file| file.extension().is_some_and(|kind| kind == "json"));
        files.filter(|file| *file != self.file).filter_map(|file| read_mark(&file)).collect()
    }

    /// The keys of the sessions that other chats have open.
    pub(crate) fn other_keys(&self) -> HashSet<String> {
        self.others().into_iter().map(|chat| chat.session).collect()
    }
}

impl Drop for ChatMark {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// The chat of a file, if its process is there. Removes the file of a process that is gone.
fn read_mark(file: &Path) -> Option<OpenChat> {
    let chat: OpenChat = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    if chat.process.is_gone() {
        let _ = fs::remove_file(file);
        return None;
    }
    Some(chat)
}

#[cfg(test)]
#[path = "open_chats_tests.rs"]
mod tests;
