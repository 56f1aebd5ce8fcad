//! The report of a session: the conversation as a page in the terminal, or as one HTML file with charts.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `figures` | totals, and how full the context was at each step (pure) |
//! | `text` | head and totals of the page in the terminal |
//! | `html`, `chart` | the page for a browser: one file that needs nothing else |
//!
//! The crate `transcript` renders the conversation. Only one page of the records is in memory at a time, and the points of the charts,
//! whose number is bounded.

mod chart;
mod figures;
mod html;
mod text;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use figures::Figures;
use longhaul_agent::session::load;
use longhaul_journal::{Error, Journal, SessionEntry, records};
use longhaul_protocol::{At, InboxRecord, Input, Order, OrderKind, PrintablePath, Seq, StreamName};
use longhaul_transcript::{StoredTranscript, Update, page_text};

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
pub(crate) async fn show(globals: &GlobalArgs, name: &str, options: &ShowOptions) -> anyhow::Result<u8> {
    let (journal, session) = open_session(globals, name).await?;
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
        text::write_head(&mut out, &self.session, figures)?;
        if from > 1 {
            text::write_left_out(&mut out, figures)?;
        }
        self.render(from, |update| Ok(out.write_all(page_text(update).as_bytes())?)).await?;
        text::write_totals(&mut out, figures)?;
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
        let mut page = html::HtmlPage::begin(out, &self.session.key, self.session.id, figures)?;
        self.render(1, |update| page.push(update)).await?;
        page.end()
    }

    /// Hands over what happened in the session, from a record on. An input may have been taken long before the turn that has it.
    async fn render(
        &self,
        from: Seq,
        mut push: impl FnMut(&Update) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut transcript = StoredTranscript::new();
        let mut cursor = records(self.journal, &self.stream, 1).through(self.through);
        loop {
            let (seq, updates) = match cursor.next().await {
                Ok(Some(record)) => (record.seq, transcript.apply(&record)),
                Ok(None) => break,
                Err(Error::Damaged { seq, reason, .. }) => (seq, transcript.apply_damaged(seq, reason)),
                Err(error) => return Err(error.into()),
            };
            updates.iter().filter(|_| seq >= from).try_for_each(&mut push)?;
        }
        let open = transcript.end();
        let untaken = transcript.untaken_inputs(self.untaken_inputs().await?);
        open.iter().chain(&untaken).try_for_each(push)
    }

    /// The inputs that wait in the inbox, where the session has not taken them yet. One that is being taken back is none.
    async fn untaken_inputs(&self) -> anyhow::Result<Vec<(At, Input)>> {
        // A session with damaged records has its page, too.
        let Ok(state) = load(self.journal, &self.session.key, self.session.id).await else {
            return Ok(vec![]);
        };
        let inbox = StreamName::inbox(self.session.id);
        let mut cursor = records(self.journal, &inbox, state.inbox_through + 1);
        let mut untaken: Vec<(At, Input)> = Vec::new();
        while let Some(record) = cursor.next().await? {
            match InboxRecord::decode(&record) {
                Ok(InboxRecord::Input(input)) => untaken.push((record.at, input)),
                Ok(InboxRecord::Order(Order { kind: OrderKind::Withdraw { input }, .. })) => {
                    untaken.retain(|(_, waiting)| waiting.id != input);
                }
                _ => {}
            }
        }
        Ok(untaken)
    }
}
