//! `longhaul verify [--salvage FILE]`: reads the whole journal and reports damage.

use std::path::Path;

use longhaul_journal::{Damage, Error, Home, Journal as _, VerifyReport};
use longhaul_protocol::PrintablePath;
use longhaul_salvage::{SalvageReport, salvage};
use serde::Serialize;

use crate::args::{GlobalArgs, VerifyOptions};
use crate::output::{format_count, format_number, is_closed_pipe, print};
use crate::suggested_command::home_command;
use crate::{bad_usage, exit};

/// Findings printed for people; `--json` has all of them.
const MAX_FINDINGS_SHOWN: usize = 50;

#[derive(Serialize)]
pub(crate) struct Verified {
    pub(crate) ok: bool,
    #[serde(flatten)]
    pub(crate) report: VerifyReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) salvaged: Option<SalvagedForm>,
}

#[derive(Serialize)]
pub(crate) struct SalvagedForm {
    file: String,
    report: VerifyReport,
    lost: Vec<Damage>,
}

pub(crate) async fn run(globals: &GlobalArgs, options: &VerifyOptions) -> anyhow::Result<u8> {
    let Some(home) = globals.existing_home()? else {
        return report_no_journal(globals, options.json);
    };
    let place = globals.journal_place()?;
    if !place.is_file() && options.salvage.is_some() {
        return Err(bad_usage("--salvage is for a journal.db; a database is recovered with its own tools"));
    }
    let report = if place.is_file() {
        verify_home(&home)?
    } else {
        let journal = place.open(&home).await?;
        let report = journal.verify().await;
        journal.close().await;
        report?
    };
    let salvaged = match &options.salvage {
        Some(file) => Some((file.as_path(), salvage(&home, file)?)),
        None => None,
    };
    let code = if report.is_sound() { exit::DONE } else { exit::FAILED };
    let shown = place.shown(&home).to_string();
    let lines = report_lines(globals, &shown, &report, salvaged.as_ref());
    let form = |(file, SalvageReport { report, lost }): (&Path, SalvageReport)| {
        let file = file.display().to_string();
        SalvagedForm { file, report, lost }
    };
    let verified = Verified { ok: report.is_sound(), report, salvaged: salvaged.map(form) };
    match print(options.json, || verified, || lines) {
        // A reader that stopped early still learns the result from the exit code.
        Err(error) if is_closed_pipe(&error) => Ok(code),
        printed => printed.map(|()| code),
    }
}

fn report_lines(
    globals: &GlobalArgs,
    journal: &str,
    report: &VerifyReport,
    salvaged: Option<&(&Path, SalvageReport)>,
) -> Vec<String> {
    let mut lines = vec![format!("{journal}: {}", contents(report))];
    lines.extend(damage_lines(&report.damage));
    lines.extend(report.unnamed.iter().map(|id| {
        format!(
            "  session {id} has no key: an import is running or was interrupted (import it again), or the key is lost"
        )
    }));
    match salvaged {
        Some((file, salvaged)) => {
            lines.push(format!("Salvaged to {}: {}", file.printable(), contents(&salvaged.report)));
            lines.extend(damage_lines(&salvaged.lost));
            let restore = home_command(globals, &["restore", &file.printable().to_string()]);
            lines.push(format!("To use it: {restore}"));
        }
        None if report.is_sound() && report.lost > 0 => {
            lines.push("Everything that is left is intact.".to_owned());
        }
        None if report.is_sound() => lines.push("Everything is intact.".to_owned()),
        None => lines.push(format!(
            "To copy what can be read: {} --salvage FILE, then {} FILE",
            home_command(globals, &["verify"]),
            home_command(globals, &["restore"]),
        )),
    }
    lines
}

fn report_no_journal(globals: &GlobalArgs, as_json: bool) -> anyhow::Result<u8> {
    let nothing = format!("Nothing to verify: no sessions in {} yet.", globals.home_dir()?.printable());
    print(
        as_json,
        || Verified { ok: true, report: VerifyReport::default(), salvaged: None },
        || vec![nothing],
    )?;
    Ok(exit::DONE)
}

/// Verifies the home. A file that can't be opened counts as damage.
fn verify_home(home: &Home) -> anyhow::Result<VerifyReport> {
    match longhaul_journal::verify_home(home) {
        Err(Error::Corrupt { reason, .. } | Error::Foreign { reason, .. } | Error::Io { reason, .. }) => {
            let reason = format!("can't open it: {reason}");
            let damage = vec![Damage { stream: None, seq: None, through: None, reason }];
            Ok(VerifyReport { damage, ..VerifyReport::default() })
        }
        verified => Ok(verified?),
    }
}

/// What a journal holds: `2 streams, 10 entries, 0 blobs`.
pub(crate) fn contents(report: &VerifyReport) -> String {
    let VerifyReport { streams, records, blobs, erased, lost, .. } = report;
    let mut contents = format!(
        "{}, {}, {}",
        format_count(*streams, "stream"),
        format_count(*records, "entry"),
        format_count(*blobs, "blob")
    );
    if *erased > 0 {
        contents.push_str(&format!("; {} erased", format_number(*erased)));
    }
    if *lost > 0 {
        contents.push_str(&format!("; {} lost to earlier damage", format_number(*lost)));
    }
    contents
}

/// The first findings as lines.
pub(crate) fn damage_lines(damage: &[Damage]) -> Vec<String> {
    let mut lines: Vec<String> =
        damage.iter().take(MAX_FINDINGS_SHOWN).map(|finding| format!("  {finding}")).collect();
    if damage.len() > MAX_FINDINGS_SHOWN {
        lines.push(format!("  and {} more (--json lists all)", damage.len() - MAX_FINDINGS_SHOWN));
    }
    lines
}
