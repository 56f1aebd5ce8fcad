//! Blocks from the records of a session: those that ended with a span of records, and those that are open at its end.
//!
//! A fold begins at the beginning of a turn, so that calls, questions and answers that the span ends are known from their start, and at one
//! before which no input waits that the span may show. In a
//! long turn it begins at a step, and what the turn has done before is looked up once and then remembered. Either way a span costs what it has, however
//! old the session is.

use longhaul_journal::{Error as JournalError, Journal, Page};
use longhaul_protocol::{Record, Seq, SessionId, StepStarted, StreamName, TaskStarted, TurnStarted, Usage};
use longhaul_transcript::{
    Block, BlockContent, FoldStart, RunningTurn, SessionCost, StoredTranscript, Update, WaitingInput,
    find_fold_start, find_last_page, recorded_model,
};

use super::fold_starts::{FoldStarts, KnownStart};

/// Records to read for each block that is wanted, at first.
const RECORDS_PER_BLOCK: Seq = 4;
/// The most records of one page. A step that is longer is cut.
const MAX_RECORDS: Seq = 16_384;
/// Records to read before a span to find the beginning of its turn, at first and at most.
const FIRST_LOOK_BACK: Seq = 128;
const MAX_LOOK_BACK: Seq = 2_048;

/// Reads the blocks of one session.
pub(crate) struct BlockReader<'a> {
    journal: &'a dyn Journal,
    session: SessionId,
    stream: StreamName,
    starts: &'a FoldStarts,
    max_look_back: Seq,
}

/// A block, and the record with which it ended.
pub(crate) struct EndedBlock {
    pub(crate) seq: Seq,
    pub(crate) block: Block,
}

/// A span of records as blocks.
pub(crate) struct BlockSpan {
    pub(crate) ended: Vec<EndedBlock>,
    pub(crate) open: Vec<Block>,
}

impl<'a> BlockReader<'a> {
    pub(crate) fn new(journal: &'a dyn Journal, session: SessionId, starts: &'a FoldStarts) -> Self {
        let stream = StreamName::session(session);
        Self { journal, session, stream, starts, max_look_back: MAX_LOOK_BACK }
    }

    /// The blocks that ended with a record after `after`, up to `end`. None if there are more than `limit`, or if there are too
    /// many records to look at.
    pub(crate) async fn blocks_after(
        &self,
        after: Seq,
        end: Seq,
        limit: usize,
    ) -> Result<Option<BlockSpan>, JournalError> {
        if end.saturating_sub(after) > MAX_RECORDS {
            return Ok(None);
        }
        let (start, earlier) = self.find_start(after).await?;
        let mut inputs = Vec::new();
        for waiting in &start.waiting {
            inputs.extend(self.read_span(waiting.seq, waiting.seq).await?);
        }
        let mut transcript = StoredTranscript::starting_at(start, &inputs);
        let mut last_step = None;
        for record in &earlier {
            last_step = step_start(record, &transcript).or(last_step);
            transcript.apply(record);
        }
        let mut ended = Vec::new();
        let mut cursor = longhaul_journal::records(self.journal, &self.stream, after + 1).through(end);
        while let Some(record) = cursor.next_undamaged().await? {
            last_step = step_start(&record, &transcript).or(last_step);
            let blocks = ended_blocks(transcript.apply(&record));
            ended.extend(blocks.map(|block| EndedBlock { seq: record.seq, block }));
            if ended.len() > limit {
                return Ok(None);
            }
        }
        last_step.into_iter().for_each(|step| self.starts.remember(self.session, step));
        self.complete_tasks(&mut ended).await?;
        Ok(Some(BlockSpan { ended, open: transcript.open_blocks() }))
    }

    /// The record at which a page with about `limit` blocks begins that ends with `end`: the beginning of a step or of a turn.
    pub(crate) async fn find_page_start(&self, end: Seq, limit: usize) -> Result<Seq, JournalError> {
        let mut span = (limit as Seq).saturating_mul(RECORDS_PER_BLOCK).min(MAX_RECORDS);
        loop {
            let from = end.saturating_sub(span - 1).max(1);
            let page = find_last_page(&self.read_span(from, end).await?, from == 1, limit);
            if page.blocks_in_span >= limit || from == 1 || span >= MAX_RECORDS {
                return Ok(page.first);
            }
            span = span.saturating_mul(2).min(MAX_RECORDS);
        }
    }

    /// Where a fold must begin that is correct from the record after `after` on: what it needs to know there, and the records
    /// up to `after` that it has to apply first.
    async fn find_start(&self, after: Seq) -> Result<(FoldStart, Vec<Record>), JournalError> {
        let known = self.starts.last_before(self.session, after);
        if let Some(known) = known.filter(|known| after - known.seq < self.max_look_back) {
            let records = self.read_span(known.seq, after).await?;
            if records.first().is_some_and(|record| known.is_at(record)) {
                return Ok((known.start, records));
            }
        }
        let mut span = FIRST_LOOK_BACK.min(self.max_look_back);
        loop {
            let from = (after + 1).saturating_sub(span).max(1);
            let mut records = self.read_span(from, after).await?;
            let is_last_try = span >= self.max_look_back || from == 1;
            let begins = match find_fold_start(&records, from == 1) {
                Some(begins) => begins,
                None if is_last_try => return self.look_up_start(after).await,
                None => {
                    span = span.saturating_mul(4).min(self.max_look_back);
                    continue;
                }
            };
            let known = records[..begins].iter().rev().find_map(recorded_model);
            if known.is_none() && !is_last_try {
                span = span.saturating_mul(4).min(self.max_look_back);
                continue;
            }
            let first = records.get(begins).map_or(after + 1, |record| record.seq);
            let last_end = records.drain(..begins).next_back().map(|record| record.seq);
            let model = match known {
                None if from > 1 => self.look_up_model(first).await?,
                known => known,
            };
            return Ok((FoldStart { model, turn: None, last_end, waiting: vec![] }, records));
        }
    }

    /// The same for a place in a long turn: the fold begins with the last step.
    async fn look_up_start(&self, after: Seq) -> Result<(FoldStart, Vec<Record>), JournalError> {
        let mut last_end = None;
        for kind in ["turn_ended", "imported"] {
            last_end = last_end.max(self.last_of_kind(kind, after).await?.map(|record| record.seq));
        }
        let begins = last_end.map_or(1, |end| end + 1);
        let step = self.last_of_kind("step_started", after).await?.filter(|step| step.seq > begins);
        let begins = step.as_ref().map_or(begins, |step| step.seq);
        let turn = match &step {
            Some(step) => self.look_up_turn(step).await?,
            None => None,
        };
        let model = self.look_up_model(begins).await?;
        let waiting = self.look_up_waiting(begins).await?;
        Ok((FoldStart { model, turn, last_end, waiting }, self.read_span(begins, after).await?))
    }

    /// The inputs that wait before this record.
    async fn look_up_waiting(&self, before: Seq) -> Result<Vec<WaitingInput>, JournalError> {
        let mut records = Vec::new();
        for kind in ["input_taken", "order_taken", "turn_started", "step_started", "turn_ended", "imported"] {
            let of_kind = self.journal.records_of_kind(&self.stream, kind).await?;
            records.extend(of_kind.into_iter().filter(|record| record.seq < before));
        }
        records.sort_by_key(|record| record.seq);
        let begins = find_fold_start(&records, true).unwrap_or(0);
        let mut transcript = StoredTranscript::new();
        records[begins..].iter().for_each(|record| drop(transcript.apply(record)));
        Ok(transcript.next_start().waiting)
    }

    /// The last record of this kind, up to `through`.
    async fn last_of_kind(&self, kind: &str, through: Seq) -> Result<Option<Record>, JournalError> {
        let records = self.journal.records_of_kind(&self.stream, kind).await?;
        Ok(records.into_iter().rfind(|record| record.seq <= through))
    }

    /// The turn that runs at this step, and what it has done before.
    async fn look_up_turn(&self, step: &Record) -> Result<Option<RunningTurn>, JournalError> {
        let Some(record) = self.last_of_kind("turn_started", step.seq).await? else { return Ok(None) };
        let Ok(TurnStarted { turn: number, .. }) = record.decode() else { return Ok(None) };
        let steps = step.decode().map_or(0, |step: StepStarted| step.step.saturating_sub(1));
        let mut spend = SessionCost::default();
        for usage in self.journal.records_of_kind(&self.stream, "usage").await? {
            let is_of_turn = usage.seq > record.seq && usage.seq < step.seq;
            if let (true, Ok(usage)) = (is_of_turn, usage.decode::<Usage>()) {
                spend.add(&usage);
            }
        }
        Ok(Some(RunningTurn { number, seq: record.seq, started_at: record.at, steps, spend }))
    }

    /// The model that was in use before this record.
    async fn look_up_model(&self, before: Seq) -> Result<Option<String>, JournalError> {
        let mut newest: Option<Record> = None;
        for kind in ["attempt_started", "model_changed"] {
            let last = self.last_of_kind(kind, before.saturating_sub(1)).await?;
            newest = newest.into_iter().chain(last).max_by_key(|record| record.seq);
        }
        Ok(newest.as_ref().and_then(recorded_model))
    }

    /// Completes tasks that started before the fold began.
    async fn complete_tasks(&self, ended: &mut [EndedBlock]) -> Result<(), JournalError> {
        let is_unseen = |ended: &&mut EndedBlock| {
            matches!(ended.block.content, BlockContent::Task { description: None, .. })
        };
        let mut unseen = ended.iter_mut().filter(is_unseen).peekable();
        if unseen.peek().is_none() {
            return Ok(());
        }
        let tasks = self.journal.records_of_kind(&self.stream, "task_started").await?;
        let turns = self.journal.records_of_kind(&self.stream, "turn_started").await?;
        for EndedBlock { block, .. } in unseen {
            let BlockContent::Task { task: id, description, .. } = &mut block.content else { continue };
            let started = tasks.iter().find_map(|record| {
                let task: TaskStarted = record.decode().ok()?;
                (task.task_id == *id).then_some((record, task))
            });
            let Some((record, task)) = started else { continue };
            *description = Some(task.description);
            (block.seq, block.started_at) = (Some(record.seq), record.at);
            let turn = turns.iter().rfind(|turn| turn.seq < record.seq);
            block.turn = turn.and_then(|turn| Some(turn.decode::<TurnStarted>().ok()?.turn));
        }
        Ok(())
    }

    /// The records of a span. Damaged ones are left out.
    async fn read_span(&self, from: Seq, end: Seq) -> Result<Vec<Record>, JournalError> {
        let cursor = longhaul_journal::records(self.journal, &self.stream, from);
        let mut cursor = cursor.through(end).in_pages_of(Page::default());
        let mut records = Vec::new();
        while let Some(record) = cursor.next_undamaged().await? {
            records.push(record);
        }
        Ok(records)
    }
}

fn ended_blocks(updates: Vec<Update>) -> impl Iterator<Item = Block> {
    updates.into_iter().filter_map(|update| match update {
        Update::Ended(block) => Some(block),
        Update::Started(_) | Update::Appended { .. } => None,
    })
}

/// The place before a record, if it is the beginning of a step.
fn step_start(record: &Record, transcript: &StoredTranscript) -> Option<KnownStart> {
    let start = || KnownStart { seq: record.seq, hash: record.hash, start: transcript.next_start() };
    (record.kind == "step_started").then(start)
}

#[cfg(test)]
#[path = "recorded_blocks_tests.rs"]
mod tests;
