//! Panics: reported, and followed by the same shutdown as any other end (S1).
//!
//! The panic hook writes a report with a backtrace to the home's folder `log`. A turn whose worker panics ends as failed, and the process
//! goes on. Where the command itself panics, the runtime is shut down as by a signal.

use std::backtrace::Backtrace;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use longhaul_agent::{Runtime, Watched};
use longhaul_protocol::PrintablePath;

use crate::exit;
use crate::output::{note, truncate};

const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Reports kept in the folder `log`; older ones are deleted.
const MAX_REPORTS: usize = 20;

/// What the panic hook and the shutdown after it need.
#[derive(Default)]
struct PanicContext {
    home: Option<PathBuf>,
    runtime: Option<Runtime>,
    /// The command that resumes the open session.
    resume: Option<String>,
    /// Messages for the user, printed once the terminal is restored.
    messages: Vec<String>,
}

static PANIC_CONTEXT: Mutex<Option<PanicContext>> = Mutex::new(None);

fn panic_context() -> MutexGuard<'static, Option<PanicContext>> {
    PANIC_CONTEXT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the panic hook. Reports go to this home.
pub(crate) fn install_hook(home: Option<PathBuf>) {
    *panic_context() = Some(PanicContext { home, ..PanicContext::default() });
    std::panic::set_hook(Box::new(report_panic));
}

/// Registers the runtime that a panic has to shut down, and the command that resumes its session.
pub(crate) fn register_runtime(runtime: &Runtime, resume: String) {
    if let Some(context) = &mut *panic_context() {
        (context.runtime, context.resume) = (Some(runtime.clone()), Some(resume));
    }
}

/// Shuts down the registered runtime after the command has panicked. Returns the exit code.
pub(crate) async fn shut_down() -> u8 {
    let runtime = panic_context().as_ref().and_then(|context| context.runtime.clone());
    if let Some(runtime) = runtime {
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, runtime.shutdown()).await;
    }
    exit::FAILED
}

/// Prints what the hook has recorded, and how to go on. Called last.
pub(crate) fn print_messages() {
    let Some(PanicContext { messages, resume, .. }) = panic_context().take() else { return };
    if messages.is_empty() {
        return;
    }
    for what in messages {
        note(what);
    }
    if let Some(resume) = resume {
        note(format!("your session is saved; to resume: {resume}"));
    }
}

fn report_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("unknown reason");
    let place = panic.location().map(|location| format!(", at {}:{}", location.file(), location.line()));
    let place = place.unwrap_or_default();
    let thread = std::thread::current();
    let report = format!(
        "longhaul {}, thread {}\n{message}{place}\n\n{}\n",
        env!("CARGO_PKG_VERSION"),
        thread.name().unwrap_or("unnamed"),
        Backtrace::force_capture()
    );
    let home = panic_context().as_ref().and_then(|context| context.home.clone());
    let details = match home.as_deref().map(|home| save_report(home, &report)) {
        Some(Ok(file)) => format!("; details in {}", file.printable()),
        Some(Err(error)) => format!("; could not save details: {error}"),
        None => String::new(),
    };
    let what = format!("longhaul crashed (this is a bug): {}{place}{details}", truncate(message, 200));
    if let Some(context) = &mut *panic_context() {
        context.messages.push(what);
    }
}

fn save_report(home: &Path, report: &str) -> std::io::Result<PathBuf> {
    let folder = home.join("log");
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Milliseconds have the same number of digits until 2286, so names sort by time.
    let file = folder.join(format!("panic-{}-{}.txt", now.as_millis(), std::process::id()));
    OpenOptions::new().create_new(true).write(true).mode(0o600).open(&file)?.write_all(report.as_bytes())?;
    let names = std::fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
    let is_report = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("panic-"))
    };
    let mut reports: Vec<PathBuf> = names.filter(is_report).collect();
    reports.sort();
    for old in reports.iter().rev().skip(MAX_REPORTS) {
        let _ = std::fs::remove_file(old);
    }
    Ok(file)
}

/// For tests: a debug build panics at the first event of the kind that the variable names.
pub(crate) fn panic_for_tests(watched: &Watched) {
    if cfg!(debug_assertions)
        && let Ok(kind) = std::env::var("LONGHAUL_REHEARSE_PANIC")
        && let Watched::Event(event) = watched
        && serde_json::to_value(&event.kind).is_ok_and(|value| value["type"] == kind.as_str())
    {
        panic!("this is a rehearsal");
    }
}

#[cfg(test)]
#[path = "panics_tests.rs"]
mod tests;
