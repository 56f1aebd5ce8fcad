//! `longhaul backup FILE`: a consistent copy of the journal.

use longhaul_journal::Journal;
use longhaul_protocol::PrintablePath;

use crate::args::{BackupOptions, GlobalArgs};
use crate::commands::verify::{Verified, contents, damage_lines};
use crate::output::print;
use crate::{bad_usage, exit};

pub(crate) async fn run(globals: &GlobalArgs, options: BackupOptions) -> anyhow::Result<u8> {
    let Some(journal) = globals.open_journal().await? else {
        let nothing = format!("nothing to back up: no sessions in {} yet", globals.home_dir()?.printable());
        return Err(bad_usage(nothing));
    };
    let report = journal.backup(&options.file).await;
    journal.close().await;
    let report = report?;
    let sound = report.is_sound();
    let mut lines =
        vec![format!("Backed up to {} and verified: {}", options.file.printable(), contents(&report))];
    lines.extend(damage_lines(&report.damage));
    print(options.json, || Verified { ok: sound, report, salvaged: None }, || lines)?;
    Ok(if sound { exit::DONE } else { exit::FAILED })
}
