//! `longhaul sessions prune`: applies retention, and deletes what was in the trash for two weeks.

use longhaul_agent::config::SessionSettings;
use longhaul_agent::housekeeping::{PruneMode, PruneReason, Pruned, Pruning, prune};
use longhaul_agent::now;
use longhaul_journal::Journal;
use longhaul_protocol::PrintablePath;

use crate::args::GlobalArgs;
use crate::output::{format_count, note, print, truncate};
use crate::{config, exit};

pub(crate) async fn run(globals: &GlobalArgs, mode: PruneMode, as_json: bool) -> anyhow::Result<u8> {
    let config = config::load(globals)?;
    let pruning = match globals.open_journal().await? {
        Some(journal) => {
            let pruning = prune(&journal, &globals.home_dir()?, &config.settings.sessions, now(), mode).await;
            journal.close().await;
            pruning?
        }
        None => Pruning::default(),
    };
    let settings = &config.settings.sessions;
    if !as_json && *settings == SessionSettings::default() {
        note(
            "no retention limit is set; set sessions.keep, sessions.keep_runs, sessions.max_age_days or sessions.max_bytes",
        );
    }
    print(as_json, || &pruning, || pruned_lines(&pruning, mode))?;
    Ok(exit::DONE)
}

pub(crate) fn pruned_lines(pruning: &Pruning, mode: PruneMode) -> Vec<String> {
    let would = match mode {
        PruneMode::DryRun => "would be ",
        PruneMode::ForReal => "",
    };
    let session = |session: &Pruned| {
        let what = if session.deleted { "deleted" } else { "moved to the trash" };
        let why = match session.reason {
            PruneReason::TooMany => "more sessions than sessions.keep",
            PruneReason::TooManyRuns => "more runs of its schedule than sessions.keep_runs",
            PruneReason::TooOld => "unused for sessions.max_age_days",
            PruneReason::TooLarge => "sessions exceed sessions.max_bytes",
            PruneReason::InTrash => "in the trash for two weeks",
            PruneReason::Empty => "empty",
        };
        let bytes = format_count(session.bytes, "byte");
        format!("{}: {would}{what}, {bytes} ({why})", truncate(&session.key, 200))
    };
    let mut lines: Vec<String> = pruning.sessions.iter().map(session).collect();
    lines.extend(
        pruning.files.iter().map(|file| format!("{}: {would}removed (incomplete file)", file.printable())),
    );
    if pruning.blobs > 0 {
        lines.push(format!("{} {would}removed (unused)", format_count(pruning.blobs, "blob")));
    }
    if lines.is_empty() {
        lines.push("nothing to prune".to_owned());
    }
    lines
}
