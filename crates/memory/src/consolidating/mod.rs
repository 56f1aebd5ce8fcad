//! Phase 2: extracts become pages.
//!
//! One holder of a lease at a time asks; a person's change never waits for it. What comes of it is one append, which also says how far the
//! extracts were read: so whatever is cut before it has not happened, and nothing is read twice.

mod asking;
mod guarding;
mod news;
mod reading;

use std::collections::BTreeMap;
use std::sync::Arc;

use longhaul_journal::Journal;
use longhaul_model::{FailureClass, Purpose, StopKind};
use longhaul_protocol::{ChangedBy, PageChange, PagesChanged, Seq, Source, StreamName, Usage};

use self::asking::Question;
use self::guarding::{Guard, Judged};
use self::news::{Extracts, News};
use self::reading::{Answered, read_answer};
use crate::book::PageSet;
use crate::calling::Leased;
use crate::changing::{PageEdited, TRIES, too_busy, write};
use crate::text::brief;
use crate::{BackgroundModel, Error, Form, Result, ScopeFn};

/// The tool that a model calls to write pages.
pub const WRITE_PAGES: &str = "write_pages";
/// What is asked has at most so many tokens, however many are usable: a large window is no reason to pay for all pages each time.
const MOST_ASKED: u64 = 24_000;
/// So many answers that can't be used are enough, and so many that were cut.
const MOST_WRONG: usize = 2;
const MOST_CUT: usize = 3;
/// So many reasons are kept.
const MOST_REFUSED: usize = 100;
/// So much is repeated of what was wrong with an answer.
const LONGEST_REASON: usize = 300;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consolidation {
    /// There are too few new items: so many.
    NotDue(usize),
    /// Pages were put in order.
    Done {
        /// The record.
        seq: Seq,
        /// The pages that are different now.
        pages: Vec<String>,
        /// How many items were read.
        items: usize,
        /// What was not taken, with the reasons.
        refused: Vec<String>,
    },
}

/// Puts the pages of a scope in order, if at least so many items are new; 0: never. `scope_of` tells whose memory an imported session has
/// here, whatever its file says. `usages` has what earlier calls for this scope cost that
/// failed, and is emptied into the record that is written.
pub async fn consolidate(
    journal: &Arc<dyn Journal>,
    scope: &str,
    scope_of: &ScopeFn,
    at_items: u64,
    calling: &BackgroundModel,
    usages: &mut Vec<Usage>,
) -> Result<Consolidation> {
    if at_items == 0 {
        return Ok(Consolidation::NotDue(0));
    }
    let at_items = usize::try_from(at_items).unwrap_or(usize::MAX);
    // Where nothing is due nobody is kept from anything.
    let mut book = PageSet::load(&**journal, scope).await?;
    let extracts = Extracts { journal: &**journal, scope_of };
    let new = News::look(&extracts, &book).await?.items();
    if new < at_items {
        return Ok(Consolidation::NotDue(new));
    }
    let stream = StreamName::consolidation(scope).map_err(|_| Error::BadScope { scope: scope.to_owned() })?;
    let leased = Leased::take(journal, &stream).await?;
    let done = under(&leased, &extracts, &mut book, at_items, calling, usages).await;
    leased.give_back().await;
    done
}

async fn under(
    leased: &Leased,
    extracts: &Extracts<'_>,
    book: &mut PageSet,
    at_items: usize,
    calling: &BackgroundModel,
    usages: &mut Vec<Usage>,
) -> Result<Consolidation> {
    // Whoever had the lease before may have read what was new.
    book.catch_up(extracts.journal).await?;
    let news = News::look(extracts, book).await?;
    if news.items() < at_items {
        return Ok(Consolidation::NotDue(news.items()));
    }
    let mut decided = leased.keep(decide(book, &news, calling, None, usages)).await??;
    if decided.is_all_refused() {
        // Most of that can be mended by who knows what it was. What comes of it counts, unless nothing does.
        let reasons = format!("nothing of it was taken: {}", decided.refused.join("; "));
        let again = leased.keep(decide(book, &news, calling, Some(reasons), usages)).await?;
        decided = again.unwrap_or(decided);
    }
    let Decided { question, changes, mut refused } = decided;
    if changes.is_empty() && !refused.is_empty() {
        refused.push(
            "no page was changed; the items stay in the extracts, where a search finds them".to_owned(),
        );
    }
    if question.left_out > 0 {
        let left = question.left_out;
        refused.push(format!("{left} items had no room and were not shown; they stay in the extracts"));
    }
    let (items, positions) = (question.items.len(), news.positions(question.extracts));
    let sessions: std::collections::BTreeSet<_> =
        question.items.iter().map(|(source, _)| source.session).collect();
    let changed = PagesChanged {
        by: ChangedBy::Consolidation,
        reason: reason(items, sessions.len(), changes.len()),
        extracts: positions,
        pages: changes,
        undoes: None,
        refused,
        usage: vec![],
    };
    finish(extracts.journal, book, changed, items, usages).await
}

/// What a model was asked, and what of its answer is taken.
struct Decided {
    question: Question,
    changes: Vec<PageChange>,
    refused: Vec<String>,
}

impl Decided {
    fn is_all_refused(&self) -> bool {
        self.changes.is_empty() && !self.refused.is_empty()
    }
}

/// Asks, with what was wrong with the answer before if one was, and judges what comes.
async fn decide(
    book: &PageSet,
    news: &News,
    calling: &BackgroundModel,
    complaint: Option<String>,
    usages: &mut Vec<Usage>,
) -> Result<Decided> {
    let (question, answered) = ask(book, news, calling, complaint, usages).await?;
    let guard = Guard::new(book, &question.items, &question.shown, &calling.redact);
    let Judged { changes, refused } = guard.judge(&answered.edits);
    // What can't be understood is repeated in part by who says so.
    let said = |reason: &String| brief(&(calling.redact)(reason), LONGEST_REASON);
    let refused = answered.refused.iter().map(said).chain(refused).collect();
    Ok(Decided { question, changes, refused })
}

/// Asks for pages, again where the answer can't be used, or in another way where the model takes no tools or not so much.
async fn ask(
    book: &PageSet,
    news: &News,
    calling: &BackgroundModel,
    mut complaint: Option<String>,
    usages: &mut Vec<Usage>,
) -> Result<(Question, Answered)> {
    let mut form = calling.form();
    // Estimates can be off; where nothing is left to be asked, that is said.
    let mut most = calling.usable().unwrap_or(u64::MAX).min(MOST_ASKED);
    let mut wrong = 0;
    loop {
        let question = Question::new(book, news, form, most, calling.answer())?;
        let purpose = Purpose::Consolidate { consolidations_before: book.consolidations };
        let failure = match calling.ask(&question.asked(complaint.as_deref()), purpose, usages).await {
            Ok(whole) => match read_answer(&whole.items) {
                Ok(answered) => return Ok((question, answered)),
                Err(reason) => {
                    let is_cut = whole.stop == StopKind::Length;
                    let reason = brief(&(calling.redact)(&reason), LONGEST_REASON);
                    let reason = if is_cut { format!("{reason} (it was cut at its limit)") } else { reason };
                    // To less there is less to be written: else the same would be cut and paid for again and again.
                    most /= if is_cut { 2 } else { 1 };
                    wrong += 1;
                    if wrong >= if is_cut { MOST_CUT } else { MOST_WRONG } {
                        return Err(Error::Model(format!("the model did not write pages: {reason}")));
                    }
                    complaint = Some(reason);
                    continue;
                }
            },
            Err(failure) => failure,
        };
        match failure.class {
            FailureClass::NoTools if form == Form::ToolCall => form = Form::Text,
            FailureClass::TooLong => most /= 2,
            _ => return Err(Error::Model((calling.redact)(&failure.to_string()))),
        }
    }
}

fn reason(items: usize, sessions: usize, pages: usize) -> String {
    let counted = |number: usize, what: &str| match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    };
    let read = format!("{} of {} read", counted(items, "new item"), counted(sessions, "session"));
    if pages == 0 { format!("{read}; no page changed") } else { read }
}

/// Appends what was decided. Where somebody changed a page meanwhile, that version stays; the other pages are written.
async fn finish(
    journal: &dyn Journal,
    book: &mut PageSet,
    mut changed: PagesChanged,
    items: usize,
    usages: &mut Vec<Usage>,
) -> Result<Consolidation> {
    let decided_upon: BTreeMap<String, Option<Seq>> =
        changed.pages.iter().map(|change| (change.page.clone(), book.newest_change(&change.page))).collect();
    for _ in 0..TRIES {
        if is_read(book, &changed.extracts) {
            // Another took the lease over and was faster: what was new is read.
            return Ok(Consolidation::NotDue(0));
        }
        changed.pages.retain(|change| {
            let newest = book.newest_change(&change.page);
            let is_as_it_was = newest == decided_upon[&change.page];
            if let (false, Some(newer)) = (is_as_it_was, newest) {
                let reason =
                    format!("{}: it was changed meanwhile (by change {newer}), and stays so", change.page);
                changed.refused.push(reason);
            }
            is_as_it_was
        });
        changed.refused.truncate(MOST_REFUSED);
        // Taken out before: whoever is cut while this is written must not say it a second time.
        changed.usage = std::mem::take(usages);
        let written = write(journal, book, changed.clone()).await;
        if let Ok(Some(PageEdited { seq, pages })) = written {
            return Ok(Consolidation::Done { seq, pages, items, refused: changed.refused });
        }
        *usages = std::mem::take(&mut changed.usage);
        written?;
    }
    Err(too_busy(book))
}

/// Whether any of this was read already.
fn is_read(book: &PageSet, extracts: &[Source]) -> bool {
    extracts.iter().any(|source| book.read.get(&source.session).is_some_and(|read| *read >= source.through))
}
