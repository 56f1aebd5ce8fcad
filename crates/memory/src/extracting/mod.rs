//! Phase 1: what is worth remembering in a span of a session.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `parts` | a span, divided into parts that fit a model |
//! | `asking` | what a model is asked about a part |
//! | `reading` | from its answer to items, one by one |
//!
//! | a crash | is on disk | on resume |
//! | --- | --- | --- |
//! | while a model is asked | the parts before this one | this part is asked about again, and then the rest |
//! | before the append of a part | the same | the same |
//! | after it | this part too | the next part comes |
//!
//! Never: a record in two parts, or in none; a part without the range that it covers.

mod asking;
mod parts;
mod reading;

use std::sync::Arc;

use longhaul_journal::Journal;
use longhaul_model::{FailureClass, Purpose, StopKind};
use longhaul_protocol::{ExtractRecord, Extracted, Seq, SessionId, StreamName, Usage};

use crate::answering::entries;
use crate::calling::Leased;
use crate::span::{extracted_through, key_for, last_at_rest};
use crate::text::brief;
use crate::{BackgroundModel, Error, Form, Result};
use asking::Asking;
use parts::{Part, Parts};
use reading::{JudgedItems, judge};

pub(crate) use asking::shown_tokens;

/// The tool that a model calls to say what is worth remembering.
pub const WRITE_EXTRACTED: &str = "write_extracted";

/// So much is repeated of what was wrong with an answer.
const LONGEST_REASON: usize = 200;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extraction {
    /// The session has been gone through up to here.
    pub through: Seq,
    /// How many model answers were read: one for each part, none where nothing was new.
    pub parts: usize,
    /// How many items were found.
    pub items: usize,
    /// What was not taken, with the reasons.
    pub refused: Vec<String>,
}

/// Goes through everything that is new in a session, up to the last record at which no turn was open, in as many parts as it takes. Each
/// part is one append to the session's extracts; what is cut in the middle goes on with the next part. `usages` has what earlier calls
/// for this session cost that failed, and is emptied into the record that is written next.
pub async fn extract(
    journal: &Arc<dyn Journal>,
    session: SessionId,
    scope: &str,
    calling: &BackgroundModel,
    usages: &mut Vec<Usage>,
) -> Result<Extraction> {
    let through = extracted_through(&**journal, session).await?;
    if journal.head(&StreamName::session(session)).await?.seq <= through {
        return Ok(Extraction { through, parts: 0, items: 0, refused: vec![] });
    }
    let leased = Leased::take(journal, &StreamName::extract(session)).await?;
    let job = Job { journal: &**journal, session, scope, calling, leased: &leased };
    let done = job.run(usages).await;
    leased.give_back().await;
    done
}

/// One run over everything that is new, under the lease.
struct Job<'a> {
    journal: &'a dyn Journal,
    session: SessionId,
    scope: &'a str,
    calling: &'a BackgroundModel,
    leased: &'a Leased,
}

impl Job<'_> {
    async fn run(&self, usages: &mut Vec<Usage>) -> Result<Extraction> {
        // Whoever had the lease before may have gone on.
        let through = extracted_through(self.journal, self.session).await?;
        let mut head = self.journal.head(&StreamName::extract(self.session)).await?.seq;
        let mut done = Extraction { through, parts: 0, items: 0, refused: vec![] };
        let end = last_at_rest(self.journal, self.session, through).await?;
        let mut parts = Parts::new(self.journal, self.session, through, end).await?;
        if !parts.has_more().await? {
            return Ok(done);
        }
        let mut asking = Asking::new(self.calling)?;
        while let Some(part) = parts.next(asking.budget).await? {
            // Before the model is asked: an answer that can't be recorded would be paid for in vain.
            let key = key_for(self.journal, self.session, part.through).await?;
            let Some(found) = self.ask(&part, head, &mut asking, usages).await? else {
                parts.put_back(part);
                continue;
            };
            done.items += found.items.len();
            done.refused.extend(found.refused.iter().cloned());
            let range = (done.through + 1, part.through);
            self.append(range, &key, head, found, usages).await?;
            parts.is_over(&part);
            (head, done.through, done.parts) = (head + 1, part.through, done.parts + 1);
        }
        Ok(done)
    }

    /// What a model finds in a part. Nothing, if the part was too long for it, or the answer to it: the next one will be shorter.
    async fn ask(
        &self,
        part: &Part,
        extracts: Seq,
        asking: &mut Asking,
        usages: &mut Vec<Usage>,
    ) -> Result<Option<JudgedItems>> {
        let purpose = Purpose::Extract { extracts_before: usize::try_from(extracts).unwrap_or(usize::MAX) };
        loop {
            let asked = asking.about(part);
            let failure = match self.leased.keep(self.calling.ask(&asked, purpose, usages)).await? {
                Ok(answer) => match entries(&answer.items, WRITE_EXTRACTED, "items") {
                    Ok(values) => {
                        asking.wrong = None;
                        return Ok(Some(judge(values, part, &self.calling.redact)));
                    }
                    Err(reason) => {
                        let is_cut = answer.stop == StopKind::Length;
                        let reason = match is_cut {
                            true => "it was cut at its greatest length".to_owned(),
                            false => brief(&(self.calling.redact)(&reason), LONGEST_REASON),
                        };
                        let before = asking.wrong.replace(reason.clone());
                        // To less there is less to be said: else the same would be cut and paid for again and again.
                        if is_cut && asking.halve() {
                            return Ok(None);
                        }
                        if before.is_some() {
                            let name = self.calling.model.name();
                            return Err(Error::Model(format!(
                                "the answer of {name} can't be used: {reason}"
                            )));
                        }
                        continue;
                    }
                },
                Err(failure) => failure,
            };
            match failure.class {
                FailureClass::NoTools if asking.form == Form::ToolCall => asking.form = Form::Text,
                FailureClass::TooLong if asking.halve() => return Ok(None),
                _ => return Err(Error::Model((self.calling.redact)(&failure.message))),
            }
        }
    }

    async fn append(
        &self,
        (from, through): (Seq, Seq),
        key: &str,
        head: Seq,
        found: JudgedItems,
        usages: &mut Vec<Usage>,
    ) -> Result<()> {
        let JudgedItems { items, refused } = found;
        let scope = self.scope.to_owned();
        // Taken out before: whoever is cut while this is written must not say it a second time.
        let usage = std::mem::take(usages);
        let extracted = Extracted { scope, from, through, items, refused, usage: usage.clone() };
        let record = ExtractRecord::Extracted(extracted).encode().with_key(key);
        match self.journal.append(self.leased.append().expecting(head).record(record)).await {
            Ok(_) => Ok(()),
            Err(error) => {
                *usages = usage;
                Err(error.into())
            }
        }
    }
}
