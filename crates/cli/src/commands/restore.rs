//! `longhaul restore FILE`: replaces the journal by a backup. The old journal is kept.

use longhaul_journal::{Home, RestoreReport, VerifyReport};
use longhaul_protocol::PrintablePath;
use serde::Serialize;

use crate::args::{GlobalArgs, RestoreOptions};
use crate::commands::verify::contents;
use crate::exit;
use crate::output::print;

#[derive(Serialize)]
struct RestoredForm {
    #[serde(flatten)]
    report: VerifyReport,
    kept: Option<String>,
}

pub(crate) fn run(globals: &GlobalArgs, options: &RestoreOptions) -> anyhow::Result<u8> {
    let home = Home::create(&globals.home_dir()?)?;
    let restored = longhaul_journal::restore(&home, &options.file)?;
    let RestoreReport { report, kept } = restored;
    let mut lines = vec![format!("Restored {}: {}.", options.file.printable(), contents(&report))];
    if let Some(kept) = &kept {
        lines.push(format!("The previous journal is kept as {}", kept.printable()));
    }
    let kept = kept.map(|kept| kept.display().to_string());
    print(options.json, || RestoredForm { report, kept }, || lines)?;
    Ok(exit::DONE)
}
