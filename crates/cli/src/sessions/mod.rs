//! Sessions: find, show, change, export, import.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `finding` | which session a name means, for every command that takes one |
//! | `listing` | those that there are |
//! | `changing` | forks, keys, pins, the trash, retention |
//! | `saving`, `about` | whether a session is safe; what there is to know about it |

pub(crate) mod about;
pub(crate) mod changing;
pub(crate) mod finding;
pub(crate) mod listing;
pub(crate) mod saving;

use std::io::Write;
use std::path::Path;

use longhaul_agent::{Mode, load};

use longhaul_journal::{
    Author, Error, Exported, Journal, Page, SessionEntry, export_session, import_session, verify_export,
};
use longhaul_protocol::{PrintablePath, Record, Seq, SessionId, StreamName};
use serde::Serialize;

use crate::arguments::{Choice, Family, ImportOptions, ListOptions, Place, SessionsCommand, ShowOptions};
use crate::output::{count, grouped, json, line, note, record, shortened};
use crate::output_file::{OutputFile, destination};
use crate::{epochs, exit, report};
use finding::find_session;

/// So many records are listed, unless somebody says how many.
const RECORDS_SHOWN: u64 = 200;

impl Family {
    pub(crate) fn stream(self, session: SessionId) -> StreamName {
        match self {
            Self::Session => StreamName::session(session),
            Self::Inbox => StreamName::inbox(session),
            Self::Extract => StreamName::extract(session),
        }
    }
}

/// The least that is read.
pub(crate) const ONE: Page = Page { records: 1, bytes: 0 };

pub(crate) async fn run(
    place: &Place,
    choice: &Choice,
    command: Option<SessionsCommand>,
    json: bool,
) -> anyhow::Result<u8> {
    let alone = || SessionsCommand::List(ListOptions { json, ..ListOptions::default() });
    match command.unwrap_or_else(alone) {
        SessionsCommand::List(options) => listing::run(place, options).await,
        SessionsCommand::Show(options) => show(place, options).await,
        SessionsCommand::Fork(options) => changing::fork_named(place, choice, &options.key, options.at).await,
        SessionsCommand::Rename { key, new, json } => changing::rename(place, &key, &new, json).await,
        SessionsCommand::Pin { key, off, json } => changing::pin(place, &key, off, json).await,
        SessionsCommand::Delete { key, now, json } => changing::delete(place, choice, &key, now, json).await,
        SessionsCommand::Restore { key, json } => changing::restore(place, &key, json).await,
        SessionsCommand::Export { key, file, json } => export(place, &key, file.as_deref(), json).await,
        SessionsCommand::Import(options) => import(place, choice, options).await,
        SessionsCommand::Prune { dry_run, json } => {
            let mode = if dry_run { Mode::DryRun } else { Mode::ForReal };
            changing::prune_now(place, choice, mode, json).await
        }
    }
}

/// A session as programs see it.
#[derive(Serialize)]
struct SessionForm {
    key: String,
    id: SessionId,
    records: Seq,
    inbox: Seq,
    /// Where its newest epoch begins.
    epoch_from: Option<Seq>,
    last_at: Option<String>,
    trashed: bool,
    pinned: bool,
}

impl From<SessionEntry> for SessionForm {
    fn from(entry: SessionEntry) -> Self {
        let SessionEntry { key, id, trashed, pinned, head, last_at, epoch_from, inbox_head } = entry;
        let last_at = last_at.map(|at| at.to_string());
        Self { key, id, records: head.seq, inbox: inbox_head, epoch_from, last_at, trashed, pinned }
    }
}

#[derive(Serialize)]
struct ShownForm {
    #[serde(flatten)]
    session: SessionForm,
    stream: StreamName,
    /// The epoch that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    records_shown: Vec<Shown>,
}

/// A record, or why there is none to show.
#[derive(Serialize)]
#[serde(untagged)]
enum Shown {
    Record(Record),
    Damaged { seq: Seq, damaged: String },
}

async fn show(place: &Place, options: ShowOptions) -> anyhow::Result<u8> {
    if options.is_page() {
        return report::show(place, &options).await;
    }
    let ShowOptions { key, from, epoch, limit, stream, json: as_json, .. } = options;
    let (limit, family) = (limit.unwrap_or(RECORDS_SHOWN), stream.unwrap_or(Family::Session));
    let Some(journal) = place.journal().await? else { return Err(Error::NoSuchSession { key }.into()) };
    let session = find_session(&journal, &key).await?;
    let stream = family.stream(session.id);
    let head = journal.head(&stream).await?.seq;
    let newest_epoch = if family == Family::Session { session.epoch_from } else { None };
    let (from, end) = match epoch {
        Some(number) => epochs::range_of(&journal, &stream, number).await?,
        None => (from.or(newest_epoch).unwrap_or(1).max(1), head),
    };
    let through = end.min(from.saturating_add(limit).saturating_sub(1));
    let shown = read(&journal, &stream, from, through).await?;
    journal.close().await;
    let damaged = shown.iter().any(|shown| matches!(shown, Shown::Damaged { .. }));
    let code = if damaged { exit::FAILED } else { exit::DONE };
    if as_json {
        json(&ShownForm { session: session.into(), stream, epoch, records_shown: shown })?;
        return Ok(code);
    }
    line(format!("{}  {}", shortened(&session.key, 100), session.id))?;
    let range = match epoch {
        Some(number) => format!("epoch {number} is seq {from} to {end}"),
        None => format!("shown from seq {from}"),
    };
    line(format!("{stream}: {}, {range}", count(head, "record")))?;
    for record_or_damage in &shown {
        match record_or_damage {
            Shown::Record(shown) => line(record(shown))?,
            Shown::Damaged { seq, damaged } => line(format!("{seq:>6}  damaged: {damaged}"))?,
        }
    }
    if through < end {
        line(format!("{} more: --from {} shows them", grouped(end - through), through + 1))?;
    }
    Ok(code)
}

/// Records of a stream between two places; a damaged one is said and passed over.
async fn read(
    journal: &dyn Journal,
    stream: &StreamName,
    from: Seq,
    through: Seq,
) -> anyhow::Result<Vec<Shown>> {
    let mut shown = Vec::new();
    let mut next = from;
    while next <= through {
        match journal.read(stream, next, Page::default()).await {
            Ok(page) if page.is_empty() => break,
            Ok(page) => {
                next = page.last().map_or(through, |last| last.seq) + 1;
                shown.extend(page.into_iter().filter(|record| record.seq <= through).map(Shown::Record));
            }
            Err(Error::Damaged { seq, reason, .. }) => {
                shown.push(Shown::Damaged { seq, damaged: reason });
                next = seq + 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(shown)
}

async fn export(place: &Place, key: &str, file: Option<&Path>, as_json: bool) -> anyhow::Result<u8> {
    let Some(journal) = place.journal().await? else {
        return Err(Error::NoSuchSession { key: key.to_owned() }.into());
    };
    // A key that leads nowhere must not leave a file behind.
    let SessionEntry { key, id, .. } = &find_session(&journal, key).await?;
    let file = file.filter(|file| *file != Path::new("-"));
    let exported = match file {
        Some(path) => {
            let state = load(&journal, key, *id).await.ok();
            let work_dir = state.and_then(|state| state.created?.work_dir);
            export_to(&journal, key, &destination(&place.folder()?, work_dir.as_deref(), path)?).await?
        }
        None => {
            let mut out = std::io::BufWriter::new(NotingPipe { out: std::io::stdout(), closed: false });
            let exported = export_session(&journal, key, &mut out).await;
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
        (Some(path), false) => line(format!("Exported {} to {}", brought(&exported), path.printable()))?,
        // Standard output is the export itself.
        (None, _) => note(format!("exported {}", brought(&exported))),
    }
    Ok(exit::DONE)
}

/// Writes an export to a file that the user named.
pub(crate) async fn export_to(journal: &dyn Journal, key: &str, path: &Path) -> anyhow::Result<Exported> {
    let mut out = OutputFile::create(path)?;
    let exported = export_session(journal, key, &mut out).await?;
    out.finish()?;
    Ok(exported)
}

/// Standard output that notes when nobody reads it any more, since an export has errors of its own.
struct NotingPipe {
    out: std::io::Stdout,
    closed: bool,
}

impl Write for NotingPipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes);
        self.closed |= matches!(&written, Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe);
        written
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

async fn import(place: &Place, choice: &Choice, options: ImportOptions) -> anyhow::Result<u8> {
    let ImportOptions { file, key, mine, json: as_json } = options;
    let work_dir = match choice.work_dir()? {
        Some(folder) => Some(folder),
        None => std::env::current_dir().and_then(|folder| folder.canonicalize()).ok(),
    };
    let work_dir = work_dir.and_then(|folder| folder.to_str().map(str::to_owned));
    let author = if mine { Author::Importer } else { Author::Stranger };
    if place.existing()?.is_none() {
        // A bad file must not leave a new home behind.
        verify_export(&file)?;
    }
    let journal = place.journal_or_new().await?;
    let options = longhaul_journal::ImportOptions { at: listing::now(), key, work_dir, author };
    let imported = import_session(&journal, &file, &options).await;
    journal.close().await;
    let imported = imported?;
    if as_json {
        json(&imported)?;
        return Ok(exit::DONE);
    }
    line(format!("Imported {}", brought(&imported)))?;
    if let Some(folder) = &options.work_dir {
        line(format!(
            "It works in {}. Whatever was unfinished in it was stopped.",
            Path::new(folder).printable()
        ))?;
    }
    if !mine {
        note(
            "what its user said counts as somebody else's words; for a session of your own: sessions import --mine",
        );
    }
    Ok(exit::DONE)
}

pub(crate) fn brought(exported: &Exported) -> String {
    let Exported { key, id, records, blobs } = exported;
    format!("{} ({id}): {}, {}", shortened(key, 100), count(*records, "record"), count(*blobs, "blob"))
}
