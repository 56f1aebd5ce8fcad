//! Ctrl-G: the typed text in the user's own editor.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const FALLBACK_EDITOR: &str = "vi";
/// The exit code of a shell that does not find a command.
const NOT_FOUND: i32 = 127;
/// How often the editor is checked for its end, and the program for its own.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A longer text would not fit into the input field.
const MAX_TEXT_BYTES: u64 = 8 << 20;

/// Whether an editor has the terminal.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// Whether an editor has the terminal: then Ctrl-C is meant for the editor, although the terminal sends the signal to both.
pub(crate) fn is_running() -> bool {
    IS_RUNNING.load(Ordering::SeqCst)
}

/// Lets the user edit the text, and returns the new one. `is_ending` says that the program ends, which ends the editor, too. The error
/// tells the user what went wrong; the caller's text is then the one to keep.
pub(super) fn edit_text(text: &str, is_ending: &AtomicBool) -> Result<String, String> {
    let path = write_draft(text).map_err(|error| format!("no file for the editor: {error}"))?;
    IS_RUNNING.store(true, Ordering::SeqCst);
    let ended = run_editor(&editor_command(), &path, is_ending);
    IS_RUNNING.store(false, Ordering::SeqCst);
    let edited = match ended {
        Ok(status) if status.success() => read_draft(&path),
        Ok(status) if status.code() == Some(NOT_FOUND) => {
            Err(format!("{} is not installed; set VISUAL or EDITOR to an editor", editor_command()))
        }
        Ok(status) => Err(format!("the editor failed ({status})")),
        Err(error) => Err(format!("the editor can't be started: {error}")),
    };
    let has_changed = || std::fs::read(&path).is_ok_and(|now| now != text.as_bytes());
    match edited {
        // What was written there is kept.
        Err(error) if has_changed() => {
            Err(format!("{error}; your text is as it was, and the edited one is in {}", path.display()))
        }
        edited => {
            let _ = std::fs::remove_file(&path);
            edited.map_err(|error| format!("{error}; your text is as it was"))
        }
    }
}

/// `VISUAL`, else `EDITOR`, else vi.
fn editor_command() -> String {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| FALLBACK_EDITOR.to_owned())
}

/// A new private file with the text.
fn write_draft(text: &str) -> io::Result<PathBuf> {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let path = std::env::temp_dir().join(format!("longhaul-{}-{nanos}.md", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(text.as_bytes())?;
    Ok(path)
}

fn read_draft(path: &Path) -> Result<String, String> {
    let unreadable = |error: io::Error| format!("the edited text can't be read: {error}");
    if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_TEXT_BYTES {
        return Err("the edited text has more than 8 MiB".to_owned());
    }
    let text = String::from_utf8_lossy(&std::fs::read(path).map_err(unreadable)?).into_owned();
    // Editors end a file with a line break.
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// Runs the editor through a shell, as git does, so that it may have arguments.
fn run_editor(editor: &str, path: &Path, is_ending: &AtomicBool) -> io::Result<ExitStatus> {
    let mut child =
        Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("editor").arg(path).spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if is_ending.load(Ordering::SeqCst) {
            return end_editor(child);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn end_editor(mut child: Child) -> io::Result<ExitStatus> {
    child.kill()?;
    child.wait()
}
