//! A private file with the text of a page, for the editor or to keep a text that could not be saved.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use longhaul_protocol::{InputId, PrintablePath};

use crate::signals::{ExitSignals, SIGINT};
use crate::{bad_usage, exit};

/// A file in a folder of its own. Both are deleted on drop unless kept.
pub(super) struct PageDraft {
    folder: PathBuf,
    file: PathBuf,
    is_kept: bool,
}

/// How the editor ended.
pub(super) enum EditorResult {
    Text(String),
    /// It exited with an error.
    Failed(String),
    /// A signal ends this program, with this exit code.
    Signal(u8),
}

impl PageDraft {
    /// `name` must be a plain file name.
    pub(super) fn new(name: &str, text: &str) -> anyhow::Result<Self> {
        let unique = InputId::generate().to_string();
        let folder = std::env::temp_dir().join(format!("longhaul-{unique}"));
        let in_words = || format!("can't create a file for the editor in {}", folder.printable());
        std::fs::DirBuilder::new().mode(0o700).create(&folder).with_context(in_words)?;
        let file = folder.join(format!("{name}.md"));
        let draft = Self { file, folder: folder.clone(), is_kept: false };
        let mut made = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft.file)
            .with_context(in_words)?;
        made.write_all(text.as_bytes()).with_context(in_words)?;
        Ok(draft)
    }

    /// Runs the editor on the file and waits for it. Ctrl-C goes to the editor.
    pub(super) async fn edit(&self, editor: &str) -> anyhow::Result<EditorResult> {
        let mut signals = ExitSignals::new()?;
        let mut process = tokio::process::Command::new("sh")
            .args(["-c", &format!("{editor} \"$@\""), editor])
            .arg(&self.file)
            .spawn()
            .with_context(|| format!("can't start {editor}"))?;
        let status = loop {
            tokio::select! {
                number = signals.next() => if number != SIGINT { return Ok(EditorResult::Signal(exit::SIGNAL + number)) },
                ended = process.wait() => break ended?,
            }
        };
        if !status.success() {
            return Ok(EditorResult::Failed(format!("{editor} failed: {status}")));
        }
        Ok(EditorResult::Text(read(&self.file)?))
    }

    pub(super) fn text(&self) -> Option<String> {
        read(&self.file).ok()
    }

    /// Keeps the file and returns its path.
    pub(super) fn keep(mut self) -> PathBuf {
        self.is_kept = true;
        self.file.clone()
    }
}

impl Drop for PageDraft {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// The value of `VISUAL`, else of `EDITOR`.
pub(super) fn editor() -> anyhow::Result<String> {
    let variable = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    variable("VISUAL").or_else(|| variable("EDITOR")).ok_or_else(|| {
        let hint = "no editor is set; set VISUAL or EDITOR, or use --file FILE";
        bad_usage(hint)
    })
}

/// The text of a file that the user named.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(path).map_err(|error| bad_usage(format!("{}: {error}", path.printable())))?;
    String::from_utf8(bytes).map_err(|_| bad_usage(format!("{} is not valid UTF-8", path.printable())))
}
