//! `longhaul verify [--salvage FILE]`: reads the whole journal and reports damage.

use std::path::Path;

use longhaul_journal::{Damage, Error, Home, Report, Salvaged};
use longhaul_protocol::PrintablePath;
use serde::Serialize;

use crate::args::{GlobalArgs, VerifyOptions};
use crate::output::{count, grouped, is_closed_pipe, json, line};
use crate::{exit, suggested_command};

/// How many findings people are shown; programs get them all.
const MAX_FINDINGS_SHOWN: usize = 50;

#[derive(Serialize)]
pub(crate) struct Verified {
    pub(crate) ok: bool,
    #[serde(flatten)]
    pub(crate) report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) salvaged: Option<SalvagedForm>,
}

#[derive(Serialize)]
pub(crate) struct SalvagedForm {
    file: String,
    report: Report,
    lost: Vec<Damage>,
}

pub(crate) fn run(globals: &GlobalArgs, options: &VerifyOptions) -> anyhow::Result<u8> {
    let Some(home) = globals.existing_home()? else {
        return nothing_yet(globals, options.json);
    };
    let report = report_on(&home)?;
    let salvaged = match &options.salvage {
        Some(file) => Some((file.as_path(), longhaul_journal::salvage(&home, file)?)),
        None => None,
    };
    let code = if report.is_sound() { exit::DONE } else { exit::FAILED };
    let printed = if options.json {
        let form = |(file, Salvaged { report, lost }): (&Path, Salvaged)| {
            let file = file.display().to_string();
            SalvagedForm { file, report, lost }
        };
        json(&Verified { ok: report.is_sound(), report, salvaged: salvaged.map(form) })
    } else {
        tell_verified(globals, &home, &report, salvaged.as_ref())
    };
    match printed {
        // Whoever stopped reading still learns from the exit code what was found.
        Err(error) if is_closed_pipe(&error) => Ok(code),
        printed => printed.map(|()| code),
    }
}

fn tell_verified(
    globals: &GlobalArgs,
    home: &Home,
    report: &Report,
    salvaged: Option<&(&Path, Salvaged)>,
) -> anyhow::Result<()> {
    line(format!("{}: {}", home.journal_file().printable(), contents(report)))?;
    tell(&report.damage)?;
    for id in &report.unnamed {
        line(format!(
            "  session {id} has no name: an import of it goes on or was cut short (import it again), or its name is lost"
        ))?;
    }
    match salvaged {
        Some((file, salvaged)) => {
            line(format!("Salvaged to {}: {}.", file.printable(), contents(&salvaged.report)))?;
            tell(&salvaged.lost)?;
            let file = file.printable().to_string();
            line(format!(
                "To go on with it: {}",
                suggested_command::home_command(globals, &["restore", &file])
            ))
        }
        None if report.is_sound() && report.lost > 0 => {
            line("Everything that is left is as it was committed.")
        }
        None if report.is_sound() => line("Everything is as it was committed."),
        None => line(format!(
            "What can be read is still there. To get it out: {} --salvage FILE, then {} FILE",
            suggested_command::home_command(globals, &["verify"]),
            suggested_command::home_command(globals, &["restore"]),
        )),
    }
}

fn nothing_yet(globals: &GlobalArgs, as_json: bool) -> anyhow::Result<u8> {
    if as_json {
        json(&Verified { ok: true, report: Report::default(), salvaged: None })?;
    } else {
        line(format!("There is no journal in {} yet: nothing to verify.", globals.home_dir()?.printable()))?;
    }
    Ok(exit::DONE)
}

/// What verifying shows; a file that can't even be opened is damage too.
fn report_on(home: &Home) -> anyhow::Result<Report> {
    match longhaul_journal::verify_home(home) {
        Err(Error::Corrupt { reason, .. } | Error::Foreign { reason, .. } | Error::Io { reason, .. }) => {
            let reason = format!("it can't be opened: {reason}");
            let damage = vec![Damage { stream: None, seq: None, through: None, reason }];
            Ok(Report { damage, ..Report::default() })
        }
        verified => Ok(verified?),
    }
}

pub(crate) fn contents(report: &Report) -> String {
    let Report { streams, records, blobs, erased, lost, .. } = report;
    let mut contents =
        format!("{}, {}, {}", count(*streams, "stream"), count(*records, "record"), count(*blobs, "blob"));
    if *erased > 0 {
        contents.push_str(&format!("; {} erased", grouped(*erased)));
    }
    if *lost > 0 {
        contents.push_str(&format!("; {} lost to damage earlier", grouped(*lost)));
    }
    contents
}

pub(crate) fn tell(damage: &[Damage]) -> anyhow::Result<()> {
    for finding in damage.iter().take(MAX_FINDINGS_SHOWN) {
        line(format!("  {finding}"))?;
    }
    if damage.len() > MAX_FINDINGS_SHOWN {
        line(format!("  and {} more; --json shows all", damage.len() - MAX_FINDINGS_SHOWN))?;
    }
    Ok(())
}
