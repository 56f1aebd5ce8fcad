//! `longhaul restore FILE`: replaces the journal by a backup. The old journal is kept.

use longhaul_journal::{Home, Report};
use longhaul_protocol::PrintablePath;
use serde::Serialize;

use crate::args::{GlobalArgs, RestoreOptions};
use crate::commands::verify::contents;
use crate::exit;
use crate::output::{json, line};

#[derive(Serialize)]
struct RestoredForm {
    #[serde(flatten)]
    report: Report,
    kept: Option<String>,
}

pub(crate) fn run(globals: &GlobalArgs, options: &RestoreOptions) -> anyhow::Result<u8> {
    let home = Home::create(&globals.home_dir()?)?;
    let restored = longhaul_journal::restore(&home, &options.file)?;
    if options.json {
        let kept = restored.kept.as_ref().map(|kept| kept.display().to_string());
        json(&RestoredForm { report: restored.report, kept })?;
        return Ok(exit::DONE);
    }
    line(format!("Restored {}: {}.", options.file.printable(), contents(&restored.report)))?;
    if let Some(kept) = restored.kept {
        line(format!("The journal that it replaced is kept as {}", kept.printable()))?;
    }
    Ok(exit::DONE)
}
