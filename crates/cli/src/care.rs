//! Looking after the journal: verify, backup, restore, erase.

use std::path::Path;

use longhaul_journal::{Damage, Error, Home, Journal, Report, Salvaged, erase_record};
use longhaul_protocol::{PrintablePath, Seq, StreamName};
use serde::Serialize;

use crate::arguments::{BackupOptions, EraseOptions, Family, Place, RestoreOptions, VerifyOptions};
use crate::output::{count, grouped, is_closed_pipe, json, line};
use crate::resuming;
use crate::sessions::finding::find_exactly;
use crate::{BadUsage, exit};

/// How many findings people are shown; programs get them all.
const SHOWN: usize = 50;

#[derive(Serialize)]
struct Verified {
    ok: bool,
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    salvaged: Option<SalvagedForm>,
}

#[derive(Serialize)]
struct SalvagedForm {
    file: String,
    report: Report,
    lost: Vec<Damage>,
}

pub(crate) fn verify(place: &Place, options: &VerifyOptions) -> anyhow::Result<u8> {
    let Some(home) = place.existing()? else {
        return nothing_yet(place, options.json);
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
        tell_verified(place, &home, &report, salvaged.as_ref())
    };
    match printed {
        // Whoever stopped reading still learns from the exit code what was found.
        Err(error) if is_closed_pipe(&error) => Ok(code),
        printed => printed.map(|()| code),
    }
}

fn tell_verified(
    place: &Place,
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
            line(format!("To go on with it: {}", resuming::home_command(place, &["restore", &file])))
        }
        None if report.is_sound() && report.lost > 0 => {
            line("Everything that is left is as it was committed.")
        }
        None if report.is_sound() => line("Everything is as it was committed."),
        None => line(format!(
            "What can be read is still there. To get it out: {} --salvage FILE, then {} FILE",
            resuming::home_command(place, &["verify"]),
            resuming::home_command(place, &["restore"]),
        )),
    }
}

fn nothing_yet(place: &Place, as_json: bool) -> anyhow::Result<u8> {
    if as_json {
        json(&Verified { ok: true, report: Report::default(), salvaged: None })?;
    } else {
        line(format!("There is no journal in {} yet: nothing to verify.", place.folder()?.printable()))?;
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

fn contents(report: &Report) -> String {
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

fn tell(damage: &[Damage]) -> anyhow::Result<()> {
    for finding in damage.iter().take(SHOWN) {
        line(format!("  {finding}"))?;
    }
    if damage.len() > SHOWN {
        line(format!("  and {} more; --json shows all", damage.len() - SHOWN))?;
    }
    Ok(())
}

pub(crate) async fn backup(place: &Place, options: BackupOptions) -> anyhow::Result<u8> {
    let Some(journal) = place.journal().await? else {
        let nothing =
            format!("there is no journal in {} yet: nothing to back up", place.folder()?.printable());
        return Err(BadUsage(nothing).into());
    };
    let report = journal.backup(&options.file).await;
    journal.close().await;
    let report = report?;
    let sound = report.is_sound();
    if options.json {
        json(&Verified { ok: sound, report, salvaged: None })?;
    } else {
        line(format!("Wrote and read back {}: {}.", options.file.printable(), contents(&report)))?;
        tell(&report.damage)?;
    }
    Ok(if sound { exit::DONE } else { exit::FAILED })
}

#[derive(Serialize)]
struct RestoredForm {
    #[serde(flatten)]
    report: Report,
    kept: Option<String>,
}

pub(crate) fn restore(place: &Place, options: &RestoreOptions) -> anyhow::Result<u8> {
    let home = Home::create(&place.folder()?)?;
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

#[derive(Serialize)]
struct ErasedForm {
    stream: StreamName,
    seq: Seq,
}

pub(crate) async fn erase(place: &Place, options: EraseOptions) -> anyhow::Result<u8> {
    let EraseOptions { key, seq, reason, stream, json: as_json } = options;
    let Some(journal) = place.journal().await? else { return Err(Error::NoSuchSession { key }.into()) };
    let session = find_exactly(&journal, &key).await?.id;
    let erased = match stream {
        Family::Session => erase_record(&journal, session, seq, &reason).await,
        other => {
            let stream = other.stream(session);
            let places = vec![(stream, seq)];
            journal.erase(&places, &reason).await.map(|()| places)
        }
    };
    let erased = erased?;
    let is_extract = |stream: &StreamName| stream.as_str().starts_with("extract/");
    let extracts: Vec<_> =
        erased.iter().filter(|(stream, _)| is_extract(stream)).map(|(_, seq)| (session, *seq)).collect();
    let pages = longhaul_memory::pages_from(&journal, &extracts).await?;
    journal.close().await;
    let erased: Vec<ErasedForm> =
        erased.into_iter().map(|(stream, seq)| ErasedForm { stream, seq }).collect();
    if as_json {
        json(&erased)?;
        return Ok(exit::DONE);
    }
    for ErasedForm { stream, seq } in erased {
        line(format!(
            "Erased {stream} seq {seq}: its bytes, what was found through it, and blobs that only it used."
        ))?;
    }
    for (scope, page) in pages {
        line(format!(
            "The page {page} of {scope} was made from it and may still say it, in older versions too: \
             `longhaul memory show {page} --scope {scope}`."
        ))?;
    }
    line("Backups and exports that were made before still hold it.")?;
    if let Some(tasks) =
        place.existing()?.map(|home| home.folder().join("tasks")).filter(|tasks| tasks.exists())
    {
        line(format!("If it was a command or its output, so does its folder under {}.", tasks.printable()))?;
    }
    for kept in place.existing()?.map(|home| home.replaced_journals()).unwrap_or_default() {
        line(format!(
            "So may {}, which a restore has replaced: delete it if you don't need it.",
            kept.printable()
        ))?;
    }
    Ok(exit::DONE)
}
