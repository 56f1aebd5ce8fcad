//! A mistake in the program itself: it takes the way out that everything takes (S1).
//!
//! Whatever panics is written down in the home's folder `log`, with where it came from. A turn whose worker panics ends as failed, and
//! nothing else is hurt. Where the conversation itself can't go on, or what waits for a turn, everything is suspended as by a signal.

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
use crate::output::{note, shortened};

/// How long suspending may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// How many reports are kept.
const MAX_REPORTS: usize = 20;

/// What is needed when nothing else works any more.
#[derive(Default)]
struct PanicContext {
    home: Option<PathBuf>,
    runtime: Option<Runtime>,
    /// The command that goes on with what is open.
    resume: Option<String>,
    /// What has happened and was not told yet.
    untold: Vec<String>,
}

static PANIC_CONTEXT: Mutex<Option<PanicContext>> = Mutex::new(None);

fn panic_context() -> MutexGuard<'static, Option<PanicContext>> {
    PANIC_CONTEXT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on a panic is written down, in this home if there is one.
pub(crate) fn expect(home: Option<PathBuf>) {
    *panic_context() = Some(PanicContext { home, ..PanicContext::default() });
    std::panic::set_hook(Box::new(write_down));
}

/// From here on there is something to suspend, and a way to go on with it.
pub(crate) fn suspend(runtime: &Runtime, resume: String) {
    if let Some(panic_context) = &mut *panic_context() {
        (panic_context.runtime, panic_context.resume) = (Some(runtime.clone()), Some(resume));
    }
}

/// The way out when whoever should have taken it has panicked.
pub(crate) async fn way_out() -> u8 {
    let runtime = panic_context().as_ref().and_then(|panic_context| panic_context.runtime.clone());
    if let Some(runtime) = runtime {
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, runtime.shutdown()).await;
    }
    exit::FAILED
}

/// Says what has happened, if something has, and how to go on. There is nothing to suspend any more.
pub(crate) fn tell() {
    let Some(PanicContext { untold, resume, .. }) = panic_context().take() else { return };
    if untold.is_empty() {
        return;
    }
    for what in untold {
        note(what);
    }
    if let Some(resume) = resume {
        note(format!("what is open is saved; to go on: {resume}"));
    }
}

fn write_down(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("for no reason that it knows");
    let place = panic.location().map(|location| format!(", at {}:{}", location.file(), location.line()));
    let place = place.unwrap_or_default();
    let thread = std::thread::current();
    let report = format!(
        "longhaul {}, thread {}\n{message}{place}\n\n{}\n",
        env!("CARGO_PKG_VERSION"),
        thread.name().unwrap_or("without a name"),
        Backtrace::force_capture()
    );
    let home = panic_context().as_ref().and_then(|panic_context| panic_context.home.clone());
    let details = match home.as_deref().map(|home| keep(home, &report)) {
        Some(Ok(file)) => format!("; details are in {}", file.printable()),
        Some(Err(error)) => format!("; no details could be kept: {error}"),
        None => String::new(),
    };
    let what = format!("a mistake in longhaul itself: {}{place}{details}", shortened(message, 200));
    // Said at the end, when nothing shows or asks anything any more.
    if let Some(panic_context) = &mut *panic_context() {
        panic_context.untold.push(what);
    }
}

/// Keeps a report, and not too many of them.
fn keep(home: &Path, report: &str) -> std::io::Result<PathBuf> {
    let folder = home.join("log");
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // The time has as many digits as its neighbours, so names are in the order of time.
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

/// For tests of all this: a build that is not for release makes a mistake when it sees the event that this variable names.
pub(crate) fn rehearse(watched: &Watched) {
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
