//! `longhaul sessions export`: one session as a file of JSON lines.

use std::io::Write;
use std::path::{Path, PathBuf};

use longhaul_agent::session::load;
use longhaul_agent::subagent_sessions;
use longhaul_journal::{ExportReport, Journal, SessionEntry, export_session};
use longhaul_protocol::{PrintablePath, SessionId};

use crate::args::GlobalArgs;
use crate::exit;
use crate::output::{format_count, json, line, note, truncate};
use crate::output_file::{OutputFile, destination};
use crate::session_lookup::open_session;

pub(crate) async fn run(
    globals: &GlobalArgs,
    key: &str,
    file: Option<&Path>,
    as_json: bool,
) -> anyhow::Result<u8> {
    let (journal, SessionEntry { key, id, .. }) = &open_session(globals, key).await?;
    let file = file.filter(|file| *file != Path::new("-"));
    let exported = match file {
        Some(path) => {
            let state = load(journal, key, *id).await.ok();
            let work_dir = state.and_then(|state| state.created?.work_dir);
            export_to(journal, key, &destination(&globals.home_dir()?, work_dir.as_deref(), path)?).await?
        }
        None => {
            let mut out = std::io::BufWriter::new(TrackedStdout { out: std::io::stdout(), closed: false });
            let exported = export_session(journal, key, &mut out).await;
            if out.get_ref().closed {
                return Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into());
            }
            out.flush()?;
            exported?
        }
    };
    journal.close().await;
    match (file, as_json) {
        (Some(_), true) => json(&exported)?,
        (Some(path), false) => {
            line(format!("Exported {} to {}", describe_export(&exported), path.printable()))?;
        }
        // Standard output is the export itself.
        (None, _) => note(format!("exported {}", describe_export(&exported))),
    }
    Ok(exit::DONE)
}

/// Exports a session and its subagents: the session to the file, each subagent to a file beside it.
pub(crate) async fn run_tree(
    globals: &GlobalArgs,
    key: &str,
    file: &Path,
    as_json: bool,
) -> anyhow::Result<u8> {
    let (journal, SessionEntry { key, id, .. }) = &open_session(globals, key).await?;
    let state = load(journal, key, *id).await.ok();
    let work_dir = state.and_then(|state| state.created?.work_dir);
    let home = globals.home_dir()?;
    let mut exported = Vec::new();
    let mut paths = vec![(key.clone(), file.to_owned())];
    let subagents = subagent_sessions(journal, *id).await?;
    paths.extend(subagents.into_iter().map(|entry| (entry.key, beside(file, entry.id))));
    for (key, path) in paths {
        let report = export_to(journal, &key, &destination(&home, work_dir.as_deref(), &path)?).await?;
        exported.push((report, path));
    }
    journal.close().await;
    if as_json {
        json(&exported.iter().map(|(report, _)| report).collect::<Vec<_>>())?;
        return Ok(exit::DONE);
    }
    for (report, path) in &exported {
        line(format!("Exported {} to {}", describe_export(report), path.printable()))?;
    }
    Ok(exit::DONE)
}

/// The file of a subagent: `work.jsonl` becomes `work.agent-01J….jsonl`.
fn beside(file: &Path, subagent: SessionId) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let extension = file.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    file.with_file_name(format!("{stem}.agent-{subagent}{}", extension.unwrap_or_default()))
}

/// Writes an export to a file that the user named.
pub(crate) async fn export_to(journal: &dyn Journal, key: &str, path: &Path) -> anyhow::Result<ExportReport> {
    let mut out = OutputFile::create(path)?;
    let exported = export_session(journal, key, &mut out).await?;
    out.finish()?;
    Ok(exported)
}

/// Standard output that remembers a closed pipe: the journal reports it as an error of the export.
struct TrackedStdout {
    out: std::io::Stdout,
    closed: bool,
}

impl Write for TrackedStdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes);
        self.closed |= matches!(&written, Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe);
        written
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// `KEY (id): 12 records, 1 blob`.
pub(crate) fn describe_export(exported: &ExportReport) -> String {
    let ExportReport { key, id, records, blobs } = exported;
    format!(
        "{} ({id}): {}, {}",
        truncate(key, 100),
        format_count(*records, "record"),
        format_count(*blobs, "blob")
    )
}
