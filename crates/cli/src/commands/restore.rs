//! `longhaul restore FILE`: replaces the journal by a backup. The old journal is kept.

use anyhow::Context as _;
use longhaul_journal::{Error, Home, Journal as _, RestoreReport, VerifyReport};
use longhaul_protocol::PrintablePath;
use longhaul_server::RestoredTokens;
use serde::Serialize;

use crate::args::{GlobalArgs, RestoreOptions};
use crate::commands::verify::contents;
use crate::output::print;
use crate::{bad_usage, exit};

#[derive(Serialize)]
struct RestoredForm {
    #[serde(flatten)]
    report: VerifyReport,
    kept: Option<String>,
    /// Names of tokens that the backup brought and that no longer count.
    revoked_tokens: Vec<String>,
}

pub(crate) async fn run(globals: &GlobalArgs, options: &RestoreOptions) -> anyhow::Result<u8> {
    if !globals.journal_place()?.is_file() {
        let file = options.file.printable();
        return Err(bad_usage(format!(
            "the journal of this home is a database; copy the backup into an empty one: longhaul journal copy {file} env:NAME"
        )));
    }
    let folder = globals.home_dir()?;
    let home = Home::create(&folder)?;
    let marker = RestoredTokens::in_home(&folder);
    marker.mark().with_context(|| format!("{}: can't write to run", folder.printable()))?;
    let restored = longhaul_journal::restore(&home, &options.file);
    // After one that is not finished, the next process that opens the home finishes it.
    if options.keep_tokens || matches!(&restored, Err(error) if !matches!(error, Error::Unfinished { .. })) {
        marker.clear()?;
    }
    let RestoreReport { report, kept } = restored?;
    let revoked = revoke_tokens(globals, &marker).await?;
    let mut lines = vec![format!("Restored {}: {}.", options.file.printable(), contents(&report))];
    if let Some(kept) = &kept {
        lines.push(format!("The previous journal is kept as {}", kept.printable()));
    }
    if !revoked.is_empty() {
        lines.push(revoked_line(&revoked));
    }
    let kept = kept.map(|kept| kept.display().to_string());
    print(options.json, || RestoredForm { report, kept, revoked_tokens: revoked }, || lines)?;
    Ok(exit::DONE)
}

/// What was done to the tokens that a backup brought.
pub(crate) fn revoked_line(revoked: &[String]) -> String {
    let names = revoked.join(", ");
    format!(
        "The tokens of the backup no longer count, because some may have been revoked since: {names}. Make new ones with `longhaul token new`"
    )
}

async fn revoke_tokens(globals: &GlobalArgs, marker: &RestoredTokens) -> anyhow::Result<Vec<String>> {
    let Some(journal) = globals.open_journal().await? else { return Ok(vec![]) };
    let revoked = marker.revoke(&journal).await;
    journal.close().await;
    Ok(revoked?)
}
