//! `longhaul journal copy FROM TO`: copies a journal between a home and a database, both ways.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_agent::JournalPlace;
use longhaul_journal::{CopyProgress, CopyReport, Home, Journal, SqliteJournal, VerifyReport, copy_journal};
use longhaul_protocol::PrintablePath;
use serde::Serialize;

use crate::args::{CopyOptions, GlobalArgs, JournalCommand};
use crate::commands::verify::{contents, damage_lines};
use crate::output::{format_count, note, print};
use crate::{bad_usage, exit};

/// The name of a journal's file in its home.
const JOURNAL_FILE: &str = "journal.db";

#[derive(Serialize)]
struct CopiedForm {
    ok: bool,
    from: String,
    to: String,
    copied: u64,
    kept: u64,
    report: VerifyReport,
}

/// A journal that a user named, opened.
struct NamedJournal {
    journal: Arc<dyn Journal>,
    shown: String,
    /// The home that a backup was restored to, to read it.
    temporary: Option<PathBuf>,
}

pub(crate) async fn run(globals: &GlobalArgs, command: JournalCommand) -> anyhow::Result<u8> {
    match command {
        JournalCommand::Copy(options) => copy(globals, &options).await,
    }
}

async fn copy(globals: &GlobalArgs, options: &CopyOptions) -> anyhow::Result<u8> {
    let from = open_source(globals, &options.from).await?;
    let copied = copy_from(globals, &from, options).await;
    from.journal.close().await;
    if let Some(folder) = &from.temporary {
        let _ = std::fs::remove_dir_all(folder);
    }
    copied
}

async fn copy_from(globals: &GlobalArgs, from: &NamedJournal, options: &CopyOptions) -> anyhow::Result<u8> {
    let to = open_target(globals, &options.to).await?;
    let shows_progress = std::io::stderr().is_terminal() && !options.json;
    let progress = |CopyProgress { streams_done, streams, records }: CopyProgress| {
        if shows_progress && streams_done % 100 == 0 && streams_done > 0 {
            note(format!("{streams_done} of {}, {records} copied", format_count(streams as u64, "stream")));
        }
    };
    let copied = copy_journal(&*from.journal, &*to.journal, (&from.shown, &to.shown), progress).await;
    to.journal.close().await;
    let CopyReport { copied, kept, report } = copied?;
    let (ok, from, to) = (report.is_sound(), from.shown.clone(), to.shown);
    let mut lines = vec![format!("Copied {from} to {to}, compared and verified: {}", contents(&report))];
    if kept > 0 {
        lines.push(format!("{} had been copied before.", format_count(kept, "entry")));
    }
    lines.extend(damage_lines(&report.damage));
    print(options.json, || CopiedForm { ok, from, to, copied, kept, report }, || lines)?;
    Ok(if ok { exit::DONE } else { exit::FAILED })
}

async fn open_source(globals: &GlobalArgs, name: &str) -> anyhow::Result<NamedJournal> {
    if let Some(place) = database_place(name)? {
        return open_database(globals, &place).await;
    }
    let path = Path::new(name);
    let missing = || {
        bad_usage(format!("no journal at {}; name a home, a {JOURNAL_FILE} or a backup", path.printable()))
    };
    let folder = if path.is_dir() { path } else { home_of(path).unwrap_or(path) };
    if folder.is_dir() {
        let home = Home::existing(folder)?;
        return if home.has_journal()? { open_home(&home).await } else { Err(missing()) };
    }
    if !path.is_file() {
        return Err(missing());
    }
    // A backup is read like a journal, in a home of its own.
    let scratch = globals.home_dir()?.join("cache").join(format!("copy-{}", std::process::id()));
    let home = Home::create(&scratch)?;
    let opened = match longhaul_journal::restore(&home, path) {
        Ok(_) => open_home(&home).await,
        Err(error) => Err(error.into()),
    };
    match opened {
        Ok(opened) => {
            Ok(NamedJournal { shown: path.printable().to_string(), temporary: Some(scratch), ..opened })
        }
        Err(error) => {
            let _ = std::fs::remove_dir_all(&scratch);
            Err(error)
        }
    }
}

async fn open_target(globals: &GlobalArgs, name: &str) -> anyhow::Result<NamedJournal> {
    match database_place(name)? {
        Some(place) => open_database(globals, &place).await,
        None => {
            let path = Path::new(name);
            open_home(&Home::create(home_of(path).unwrap_or(path))?).await
        }
    }
}

/// The folder of a path that ends with the journal's file.
fn home_of(path: &Path) -> Option<&Path> {
    let is_journal = path.file_name().is_some_and(|name| name == JOURNAL_FILE) && !path.is_dir();
    if !is_journal {
        return None;
    }
    path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
}

/// The database that an argument names: `env:NAME`, or a URL without a password, because others can read arguments.
fn database_place(name: &str) -> anyhow::Result<Option<JournalPlace>> {
    if let Some(variable) = name.strip_prefix("env:") {
        let url = std::env::var(variable).ok().filter(|url| !url.is_empty());
        let url = url.ok_or_else(|| {
            bad_usage(format!("the variable {variable} is not set; put the URL of the database into it"))
        })?;
        return Ok(Some(JournalPlace::from_url(&url)?));
    }
    let Some((_, rest)) = name.split_once("://") else { return Ok(None) };
    let has_password =
        rest.split_once('@').is_some_and(|(user, _)| user.contains(':')) || rest.contains("password=");
    if has_password {
        return Err(bad_usage(
            "a password in an argument is visible to others: put the URL into a variable and name that, as env:NAME, or the password into the file of PGPASSFILE",
        ));
    }
    Ok(Some(JournalPlace::from_url(name)?))
}

async fn open_database(globals: &GlobalArgs, place: &JournalPlace) -> anyhow::Result<NamedJournal> {
    let home = Home::create(&globals.home_dir()?)?;
    let journal = place.open(&home).await?;
    Ok(NamedJournal { journal, shown: place.shown(&home).to_string(), temporary: None })
}

async fn open_home(home: &Home) -> anyhow::Result<NamedJournal> {
    let journal = Arc::new(SqliteJournal::open(home).await?);
    Ok(NamedJournal { journal, shown: home.journal_file().printable().to_string(), temporary: None })
}
