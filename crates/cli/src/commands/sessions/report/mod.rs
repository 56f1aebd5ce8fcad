//! A session as people read it: the conversation as a page in the terminal, or as one HTML file with charts.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `story` | records told as what happened: turns, words, answers, calls (pure) |
//! | `figures` | what all of it came to, and how full the context was at each step (pure) |
//! | `text` | the page for a terminal |
//! | `html`, `chart`, `style` | the page for a browser: one file that needs nothing else |
//!
//! However long a session is, only a page of its records is in memory, besides the points of the charts, which are bounded.

mod chart;
mod figures;
mod html;
mod story;
mod style;
mod text;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use figures::Figures;
use longhaul_agent::load;
use longhaul_journal::{Error, Journal, SessionEntry, records};
use longhaul_protocol::{At, PrintablePath, Seq, StreamName};
use story::Story;

use crate::args::{GlobalArgs, ShowOptions};
use crate::exit;
use crate::output::line;
use crate::output_file::{OutputFile, destination};
use crate::session_lookup::open_session;

/// Turns shown in a terminal without `--all`.
const DEFAULT_TURNS: usize = 20;

/// A session up to the record that was its last when the report began.
struct SessionReport<'a> {
    journal: &'a dyn Journal,
    session: SessionEntry,
    stream: StreamName,
    through: Seq,
}

/// `sessions show`, as a page in the terminal or as an HTML file.
pub(crate) async fn show(globals: &GlobalArgs, options: &ShowOptions) -> anyhow::Result<u8> {
    let (journal, session) = open_session(globals, &options.key).await?;
    let stream = StreamName::session(session.id);
    let through = journal.head(&stream).await?.seq;
    let report = SessionReport { journal: &journal, session, stream, through };
    let figures = report.figures().await?;
    match &options.html {
        Some(file) => {
            let file = file.as_deref().filter(|file| *file != Path::new("-"));
            let work_dir = load(&journal, &report.session.key, report.session.id).await.ok();
            let work_dir = work_dir.and_then(|state| state.created?.work_dir);
            let destination = |file| destination(&globals.home_dir()?, work_dir.as_deref(), file);
            report.as_html(file.map(destination).transpose()?, &figures).await?;
            if let Some(file) = file {
                line(format!("Wrote {}", file.printable()))?;
            }
        }
        None => report.as_text(options.all, &figures).await?,
    }
    journal.close().await;
    Ok(if figures.damaged > 0 { exit::FAILED } else { exit::DONE })
}

impl SessionReport<'_> {
    async fn figures(&self) -> anyhow::Result<Figures> {
        let mut figures = Figures::new(DEFAULT_TURNS);
        let mut cursor = records(self.journal, &self.stream, 1).through(self.through);
        loop {
            match cursor.next().await {
                Ok(Some(record)) => figures.count(&record),
                Ok(None) => return Ok(figures),
                Err(Error::Damaged { .. }) => {
                    figures.records += 1;
                    figures.damaged += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn as_text(&self, all: bool, figures: &Figures) -> anyhow::Result<()> {
        let from = if all { 1 } else { figures.shown_from() };
        let mut out = BufWriter::new(std::io::stdout());
        text::head(&mut out, &self.session, figures)?;
        if from > 1 {
            text::left_out(&mut out, figures)?;
        }
        self.tell(from, |entry| text::entry(&mut out, entry)).await?;
        text::foot(&mut out, figures)?;
        Ok(out.flush()?)
    }

    async fn as_html(&self, file: Option<PathBuf>, figures: &Figures) -> anyhow::Result<()> {
        let Some(path) = file else {
            let mut out = BufWriter::new(std::io::stdout());
            self.write_html(&mut out, figures).await?;
            return Ok(out.flush()?);
        };
        let mut out = OutputFile::create(&path)?;
        self.write_html(&mut out, figures).await?;
        out.finish()
    }

    async fn write_html(&self, out: &mut dyn Write, figures: &Figures) -> anyhow::Result<()> {
        let mut page = html::Page::begin(out, &self.session.key, self.session.id, figures)?;
        self.tell(1, |entry| page.entry(entry)).await?;
        page.end()
    }

    /// Tells the session from a record on, entry by entry.
    async fn tell(
        &self,
        from: Seq,
        mut show: impl FnMut(&story::Entry) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut story = Story::default();
        let mut cursor = records(self.journal, &self.stream, from).through(self.through);
        loop {
            match cursor.next().await {
                Ok(Some(record)) => story.tell(&record).iter().try_for_each(&mut show)?,
                Ok(None) => break,
                Err(Error::Damaged { seq, reason, .. }) => show(&story::Entry::Damaged { seq, reason })?,
                Err(error) => return Err(error.into()),
            }
        }
        story.end().iter().try_for_each(show)
    }
}

/// `2026-01-31 12:34:56`, in UTC.
fn moment(at: At) -> String {
    let exact = at.to_string();
    match exact.split_once('T') {
        Some((day, time)) if exact.ends_with('Z') => format!("{day} {}", time.get(..8).unwrap_or(time)),
        _ => exact,
    }
}
