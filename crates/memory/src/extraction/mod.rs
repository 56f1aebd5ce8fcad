//! Phase 1: extracting what is worth remembering from the unread span of a session.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `parts` | a span, split into parts that fit a model |
//! | `prompt` | the prompt for a part |
//! | `parse` | from an answer to items, each validated by itself |
//!
//! | a crash | is on disk | on resume |
//! | --- | --- | --- |
//! | during the model call | the parts before this one | this part is asked again, then the rest |
//! | before the append of a part | the same | the same |
//! | after it | this part too | the next part |
//! | after two unusable answers, before `extraction_failed` | the parts before this one | this part is asked again |
//! | after `extraction_failed` | that, and what the calls cost | nothing is asked until enough is new |
//!
//! Never: a record in two parts, or in none; a part without the range that it covers.

mod parse;
mod parts;
mod prompt;

use std::sync::Arc;

use longhaul_context::list_entries;
use longhaul_journal::Journal;
use longhaul_model::{FailureClass, Purpose, StopKind};
use longhaul_protocol::{
    ExtractRecord, Extracted, ExtractionFailed, NewRecord, Seq, SessionId, StreamName, Usage,
};

use crate::lease::LeaseGuard;
use crate::text::truncate_line;
use crate::unextracted::{extracted_through, key_for, last_at_rest};
use crate::{BackgroundModel, Error, Result};
use parse::{JudgedItems, judge};
use parts::{Part, Parts};
use prompt::ExtractionPrompt;

pub(crate) use prompt::shown_tokens;

/// The tool that a model calls to write extracted items.
pub const WRITE_EXTRACTED: &str = "write_extracted";

/// The most bytes of the reason why an answer can't be used.
const MAX_REASON_BYTES: usize = 200;

/// The result of [`extract`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extraction {
    /// The last record that is extracted now.
    pub through: Seq,
    /// Extracted parts, with one model answer each. 0 if there was nothing new.
    pub parts: usize,
    pub items: usize,
    /// The items that were refused, with the reasons.
    pub refused: Vec<String>,
}

/// Extracts everything that is new in a session, up to the last record at which no turn was open, in as many parts as
/// needed. Each part is one append to the session's extracts. So after a cancelled run, the next run continues with
/// the next part. `usages` holds the cost of earlier failed calls for this session, and is moved into the next
/// record.
pub async fn extract(
    journal: &Arc<dyn Journal>,
    session: SessionId,
    scope: &str,
    model: &BackgroundModel,
    usages: &mut Vec<Usage>,
) -> Result<Extraction> {
    let through = extracted_through(&**journal, session).await?;
    if journal.head(&StreamName::session(session)).await?.seq <= through {
        return Ok(Extraction { through, parts: 0, items: 0, refused: vec![] });
    }
    let lease = LeaseGuard::acquire(journal, &StreamName::extract(session)).await?;
    let job = ExtractionJob { journal: &**journal, session, scope, model, lease: &lease };
    let done = job.run(usages).await;
    lease.release().await;
    done
}

/// One run over everything that is new, under the lease.
struct ExtractionJob<'a> {
    journal: &'a dyn Journal,
    session: SessionId,
    scope: &'a str,
    model: &'a BackgroundModel,
    lease: &'a LeaseGuard,
}

impl ExtractionJob<'_> {
    async fn run(&self, usages: &mut Vec<Usage>) -> Result<Extraction> {
        // The previous holder of the lease may have extracted more.
        let through = extracted_through(self.journal, self.session).await?;
        let mut head = self.journal.head(&StreamName::extract(self.session)).await?.seq;
        let mut done = Extraction { through, parts: 0, items: 0, refused: vec![] };
        let end = last_at_rest(self.journal, self.session, through).await?;
        let mut parts = Parts::new(self.journal, self.session, through, end).await?;
        if !parts.has_more().await? {
            return Ok(done);
        }
        let mut prompt = ExtractionPrompt::new(self.model)?;
        let failures =
            self.journal.records_of_kind(&StreamName::extract(self.session), "extraction_failed").await?;
        let failures = failures.len() as u64;
        while let Some(part) = parts.next(prompt.ask.budget).await? {
            // Checked before the model is asked. Otherwise an answer might cost money and then not be recorded.
            let key = key_for(self.journal, self.session, part.through).await?;
            let found = match self.ask_about(&part, head.saturating_sub(failures), &mut prompt, usages).await
            {
                Ok(Some(found)) => found,
                Ok(None) => {
                    parts.put_back(part);
                    continue;
                }
                Err(error) => {
                    if matches!(error, Error::Unstructured { .. }) {
                        self.record_failure((done.through + 1, end), head, usages).await?;
                    }
                    return Err(error);
                }
            };
            done.items += found.items.len();
            done.refused.extend(found.refused.iter().cloned());
            let range = (done.through + 1, part.through);
            self.append_items(range, &key, head, found, usages).await?;
            parts.mark_extracted(&part);
            (head, done.through, done.parts) = (head + 1, part.through, done.parts + 1);
        }
        Ok(done)
    }

    /// The items that the model finds in a part. `None` if the part or its answer was too long. Then the next part is
    /// smaller.
    async fn ask_about(
        &self,
        part: &Part,
        extracts: Seq,
        prompt: &mut ExtractionPrompt,
        usages: &mut Vec<Usage>,
    ) -> Result<Option<JudgedItems>> {
        let purpose = Purpose::Extract { extracts_before: usize::try_from(extracts).unwrap_or(usize::MAX) };
        let redact = &self.model.redact;
        loop {
            let request = prompt.for_part(part);
            let failure = match self.lease.renew_during(self.model.ask(&request, purpose, usages)).await? {
                Ok(answer) => match list_entries(&answer.items, WRITE_EXTRACTED, "items") {
                    Ok(values) => {
                        prompt.ask.accept_answer();
                        return Ok(Some(judge(values, part, redact)));
                    }
                    Err(reason) => {
                        let is_cut = answer.stop == StopKind::Length;
                        let reason = match is_cut {
                            true => "it was cut off at its length limit".to_owned(),
                            false => truncate_line(&redact(&reason), MAX_REASON_BYTES),
                        };
                        let budget = prompt.ask.budget;
                        prompt.ask.reject_answer(reason, is_cut).map_err(|reason| {
                            let model = self.model.model.name().to_owned();
                            Error::Unstructured { model, reason }
                        })?;
                        if prompt.ask.budget < budget {
                            return Ok(None);
                        }
                        continue;
                    }
                },
                Err(failure) => failure,
            };
            match failure.class {
                FailureClass::NoTools if prompt.ask.switch_to_text() => {}
                FailureClass::TooLong if prompt.ask.halve_budget() => return Ok(None),
                _ => return Err(Error::Model(redact(&failure.message))),
            }
        }
    }

    async fn append_items(
        &self,
        (from, through): (Seq, Seq),
        key: &str,
        head: Seq,
        found: JudgedItems,
        usages: &mut Vec<Usage>,
    ) -> Result<()> {
        let JudgedItems { items, refused } = found;
        let scope = self.scope.to_owned();
        let extracted = Extracted { scope, from, through, items, refused, usage: usages.clone() };
        let record = ExtractRecord::Extracted(extracted).encode().with_key(key);
        self.append(record, head, usages).await
    }

    /// Records that the model gave no usable answer. Without it, each check and each restart would pay for the same span.
    async fn record_failure(
        &self,
        (from, through): (Seq, Seq),
        head: Seq,
        usages: &mut Vec<Usage>,
    ) -> Result<()> {
        let failed = ExtractionFailed { from, through, usage: usages.clone() };
        self.append(ExtractRecord::ExtractionFailed(failed).encode(), head, usages).await
    }

    async fn append(&self, record: NewRecord, head: Seq, usages: &mut Vec<Usage>) -> Result<()> {
        // Moved before the append: a run that is cancelled during the append must not report the cost twice.
        let usage = std::mem::take(usages);
        match self.journal.append(self.lease.append().expecting(head).record(record)).await {
            Ok(_) => Ok(()),
            Err(error) => {
                *usages = usage;
                Err(error.into())
            }
        }
    }
}
