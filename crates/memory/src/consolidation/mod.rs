//! Phase 2: consolidating extracts into pages.
//!
//! Only the holder of a lease asks a model. A person's edit never waits for it. The result is one append, which also
//! records how far the extracts were read. So a run that is interrupted before the append changes nothing, and no
//! extract is consolidated twice.

mod parse;
mod pending_extracts;
mod prompt;
mod validate;

use std::collections::BTreeMap;
use std::sync::Arc;

use longhaul_context::{StructuredAsk, StructuredLimits};
use longhaul_journal::Journal;
use longhaul_model::{FailureClass, Purpose, StopKind};
use longhaul_protocol::{ChangedBy, PageChange, PagesChanged, Seq, Source, StreamName, Usage};

use self::parse::{ParsedEdits, parse_edits};
use self::pending_extracts::{ExtractSources, PendingExtracts};
use self::prompt::ConsolidationPrompt;
use self::validate::{EditValidator, ValidatedEdits};
use crate::edit::{MAX_CONFLICTS, PageEdited, append_edit, conflict_error};
use crate::lease::LeaseGuard;
use crate::page_set::PageSet;
use crate::text::truncate_line;
use crate::{BackgroundModel, Error, Result, ScopeFn};

/// The tool that a model calls to write pages.
pub const WRITE_PAGES: &str = "write_pages";
/// The most tokens of a prompt, however large the window is. Otherwise a large window would cost the price of all
/// pages each time.
const MAX_PROMPT_TOKENS: u64 = 24_000;
const LIMITS: StructuredLimits =
    StructuredLimits { unusable_answers: 2, cut_answers: 3, halvings: u32::MAX, min_budget: 0 };
const MAX_REFUSED: usize = 100;
const MAX_REASON_BYTES: usize = 300;

/// The result of [`consolidate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consolidation {
    /// There are too few new items. Holds their number.
    NotDue(usize),
    Done {
        seq: Seq,
        pages: Vec<String>,
        items: usize,
        /// Edits and lines that were refused, with the reasons.
        refused: Vec<String>,
    },
}

/// Consolidates the new extracts of a scope if there are at least `at_items` new items; 0 turns it off. `scope_of`
/// returns the scope that an imported session has here. `usages` holds the cost of earlier failed calls for this
/// scope, and is moved into the record.
pub async fn consolidate(
    journal: &Arc<dyn Journal>,
    scope: &str,
    scope_of: &ScopeFn,
    at_items: u64,
    model: &BackgroundModel,
    usages: &mut Vec<Usage>,
) -> Result<Consolidation> {
    if at_items == 0 {
        return Ok(Consolidation::NotDue(0));
    }
    let at_items = usize::try_from(at_items).unwrap_or(usize::MAX);
    // Checked without the lease first, so that a call with nothing to do does not block other processes.
    let mut page_set = PageSet::load(&**journal, scope).await?;
    let extracts = ExtractSources { journal: &**journal, scope_of };
    let new = PendingExtracts::load(&extracts, &page_set).await?.items();
    if new < at_items {
        return Ok(Consolidation::NotDue(new));
    }
    let stream = StreamName::consolidation(scope).map_err(|_| Error::BadScope { scope: scope.to_owned() })?;
    let lease = LeaseGuard::acquire(journal, &stream).await?;
    let done = run_under_lease(&lease, &extracts, &mut page_set, at_items, model, usages).await;
    lease.release().await;
    done
}

async fn run_under_lease(
    lease: &LeaseGuard,
    extracts: &ExtractSources<'_>,
    page_set: &mut PageSet,
    at_items: usize,
    model: &BackgroundModel,
    usages: &mut Vec<Usage>,
) -> Result<Consolidation> {
    // The previous holder of the lease may have consolidated the new extracts.
    page_set.catch_up(extracts.journal).await?;
    let pending = PendingExtracts::load(extracts, page_set).await?;
    if pending.items() < at_items {
        return Ok(Consolidation::NotDue(pending.items()));
    }
    let mut decided = lease.renew_during(decide(page_set, &pending, model, None, usages)).await??;
    if decided.is_all_refused() {
        // With the reasons, a model can fix most of it. The second answer counts unless it fails.
        let reasons = format!("all of it was rejected: {}", decided.refused.join("; "));
        let again = lease.renew_during(decide(page_set, &pending, model, Some(reasons), usages)).await?;
        decided = again.unwrap_or(decided);
    }
    let ConsolidationDecision { question, changes, mut refused } = decided;
    if changes.is_empty() && !refused.is_empty() {
        refused.push("no page changed; the items stay searchable".to_owned());
    }
    if question.left_out > 0 {
        let left = question.left_out;
        refused.push(format!("{left} items did not fit and were not shown; they stay searchable"));
    }
    let (items, positions) = (question.items.len(), pending.positions(question.extracts));
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
    append_decision(extracts.journal, page_set, changed, items, usages).await
}

/// A prompt, and the accepted part of its answer.
struct ConsolidationDecision {
    question: ConsolidationPrompt,
    changes: Vec<PageChange>,
    refused: Vec<String>,
}

impl ConsolidationDecision {
    fn is_all_refused(&self) -> bool {
        self.changes.is_empty() && !self.refused.is_empty()
    }
}

/// Asks for pages and validates the answer. Passes on the reasons why the last answer was refused.
async fn decide(
    page_set: &PageSet,
    pending: &PendingExtracts,
    model: &BackgroundModel,
    complaint: Option<String>,
    usages: &mut Vec<Usage>,
) -> Result<ConsolidationDecision> {
    let (question, answered) = ask(page_set, pending, model, complaint, usages).await?;
    let guard = EditValidator::new(page_set, &question.items, &question.shown, &model.redact);
    let ValidatedEdits { changes, refused } = guard.validate(&answered.edits);
    // The reasons quote the answer, so they are redacted too.
    let said = |reason: &String| truncate_line(&(model.redact)(reason), MAX_REASON_BYTES);
    let refused = answered.refused.iter().map(said).chain(refused).collect();
    Ok(ConsolidationDecision { question, changes, refused })
}

/// Asks for pages until an answer can be parsed.
async fn ask(
    page_set: &PageSet,
    pending: &PendingExtracts,
    model: &BackgroundModel,
    complaint: Option<String>,
    usages: &mut Vec<Usage>,
) -> Result<(ConsolidationPrompt, ParsedEdits)> {
    let budget = model.usable_tokens().unwrap_or(u64::MAX).min(MAX_PROMPT_TOKENS);
    let mut ask = StructuredAsk::new(model.answer_form(), budget, LIMITS);
    ask.complaint = complaint;
    loop {
        // Fails once the budget is too small for any prompt.
        let question =
            ConsolidationPrompt::new(page_set, pending, ask.form, ask.budget, model.answer_tokens())?;
        let purpose = Purpose::Consolidate { consolidations_before: page_set.consolidations };
        let failure = match model
            .ask(&question.with_complaint(ask.complaint.as_deref()), purpose, usages)
            .await
        {
            Ok(whole) => match parse_edits(&whole.items) {
                Ok(answered) => return Ok((question, answered)),
                Err(reason) => {
                    let is_cut = whole.stop == StopKind::Length;
                    let reason = truncate_line(&(model.redact)(&reason), MAX_REASON_BYTES);
                    let reason = if is_cut { format!("{reason} (it was cut at its limit)") } else { reason };
                    ask.reject_answer(reason, is_cut)
                        .map_err(|reason| Error::Model(format!("the model did not write pages: {reason}")))?;
                    continue;
                }
            },
            Err(failure) => failure,
        };
        match failure.class {
            FailureClass::NoTools if ask.switch_to_text() => {}
            FailureClass::TooLong if ask.halve_budget() => {}
            _ => return Err(Error::Model((model.redact)(&failure.to_string()))),
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

/// Appends the decision. A page that was changed meanwhile keeps that version. The other pages are written.
async fn append_decision(
    journal: &dyn Journal,
    page_set: &mut PageSet,
    mut changed: PagesChanged,
    items: usize,
    usages: &mut Vec<Usage>,
) -> Result<Consolidation> {
    let decided_upon: BTreeMap<String, Option<Seq>> = changed
        .pages
        .iter()
        .map(|change| (change.page.clone(), page_set.newest_change(&change.page)))
        .collect();
    for _ in 0..MAX_CONFLICTS {
        if is_consolidated(page_set, &changed.extracts) {
            // Another process has taken over the lease and consolidated the new extracts.
            return Ok(Consolidation::NotDue(0));
        }
        changed.pages.retain(|change| {
            let newest = page_set.newest_change(&change.page);
            let is_as_it_was = newest == decided_upon[&change.page];
            if let (false, Some(newer)) = (is_as_it_was, newest) {
                let reason = format!("{}: changed in the meantime by change {newer}", change.page);
                changed.refused.push(reason);
            }
            is_as_it_was
        });
        changed.refused.truncate(MAX_REFUSED);
        // Moved before the append: a run that is cancelled during the append must not report the cost twice.
        changed.usage = std::mem::take(usages);
        let written = append_edit(journal, page_set, changed.clone()).await;
        if let Ok(Some(PageEdited { seq, pages })) = written {
            return Ok(Consolidation::Done { seq, pages, items, refused: changed.refused });
        }
        *usages = std::mem::take(&mut changed.usage);
        written?;
    }
    Err(conflict_error(page_set))
}

fn is_consolidated(page_set: &PageSet, extracts: &[Source]) -> bool {
    extracts
        .iter()
        .any(|source| page_set.read.get(&source.session).is_some_and(|read| *read >= source.through))
}
