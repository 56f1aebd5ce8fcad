//! Records told as what happened.

use longhaul_protocol::{
    At, AttemptEnded, AttemptId, Body, EpochReason, EventKind, InputTaken, Item, OrderKind, Outcome, Record,
    Role, Seq, SessionRecord, TurnEnded,
};

use super::figures::Spent;
use crate::event_text::{aside, aside_in_detail};
use crate::output::{count, shortened};

/// Something that stands on the page.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entry {
    /// A turn began.
    Turn { number: u64, at: At },
    /// What a person or a program said.
    Said { at: At, text: String, images: usize },
    /// What the model thought on its way.
    Thought(String),
    /// What the model answered.
    Answer(String),
    /// What there is of an answer that did not come to its end.
    Unfinished(String),
    /// Anything else that happened, in a line.
    Aside(String),
    /// What the context begins with from here on.
    Summary(String),
    /// A turn is over.
    Ended { outcome: Outcome, error: Option<String>, took_ms: u64, steps: u64, spent: Spent },
    /// The words of a record are gone.
    Gone { seq: Seq, kind: String, at: At, reason: String },
    /// A record can't be read.
    Damaged { seq: Seq, reason: String },
}

/// What has been told so far of what is not over yet.
#[derive(Default)]
pub(super) struct Story {
    /// Inputs that were taken and belong to the turn that begins next.
    waiting: Vec<Entry>,
    turn: Option<Turn>,
    attempt: Option<Attempt>,
    model: Option<String>,
}

struct Turn {
    number: u64,
    at: At,
    steps: u64,
    spent: Spent,
}

struct Attempt {
    id: AttemptId,
    blocks: Vec<Item>,
    unfinished: String,
}

impl Story {
    /// What a record adds to the page.
    pub(super) fn tell(&mut self, record: &Record) -> Vec<Entry> {
        if let Body::Gone(gone) = &record.body {
            let (seq, kind) = (record.seq, record.kind.clone());
            return vec![Entry::Gone { seq, kind, at: gone.at, reason: gone.reason.clone() }];
        }
        match SessionRecord::decode(record) {
            Ok(fact) => self.happened(record.at, fact),
            Err(error) => vec![Entry::Damaged { seq: record.seq, reason: error.to_string() }],
        }
    }

    /// What is left to say when there are no more records.
    pub(super) fn end(&mut self) -> Vec<Entry> {
        let mut entries = self.given_up(None);
        entries.append(&mut self.waiting);
        if let Some(turn) = self.turn.take() {
            entries.push(Entry::Aside(format!("turn {} is not over yet", turn.number)));
        }
        entries
    }

    fn happened(&mut self, at: At, fact: SessionRecord) -> Vec<Entry> {
        match fact {
            SessionRecord::InputTaken(input) => self.said(at, input),
            SessionRecord::OrderTaken(taken) => {
                in_words(&taken.order.kind).map(Entry::Aside).into_iter().collect()
            }
            SessionRecord::TurnStarted(started) => {
                let number = started.turn;
                self.turn = Some(Turn { number, at, steps: 0, spent: Spent::default() });
                let waiting = std::mem::take(&mut self.waiting);
                std::iter::once(Entry::Turn { number, at }).chain(waiting).collect()
            }
            SessionRecord::StepStarted(_) => {
                if let Some(turn) = &mut self.turn {
                    turn.steps += 1;
                }
                vec![]
            }
            SessionRecord::AttemptStarted(started) => {
                let mut entries = self.given_up(None);
                self.attempt =
                    Some(Attempt { id: started.attempt, blocks: vec![], unfinished: String::new() });
                if self.model.as_ref() != Some(&started.model) {
                    entries.push(Entry::Aside(format!("model: {}", shortened(&started.model, 100))));
                    self.model = Some(started.model);
                }
                entries
            }
            SessionRecord::Block(block) => {
                if let Some(attempt) = self.attempt.as_mut().filter(|attempt| attempt.id == block.attempt) {
                    attempt.blocks.push(block.item);
                    attempt.unfinished.clear();
                }
                vec![]
            }
            SessionRecord::Checkpoint(checkpoint) => {
                if let Some(attempt) =
                    self.attempt.as_mut().filter(|attempt| attempt.id == checkpoint.attempt)
                {
                    attempt.unfinished.push_str(&checkpoint.text);
                }
                vec![]
            }
            SessionRecord::AttemptEnded(ended) => self.answered(&ended),
            SessionRecord::Usage(usage) => {
                if let Some(turn) = &mut self.turn {
                    turn.spent.add(&usage);
                }
                vec![]
            }
            SessionRecord::TurnEnded(ended) => self.ended(at, ended),
            SessionRecord::Imported(imported) => {
                let mut entries = self.given_up(None);
                self.turn = None;
                let kind = EventKind::Imported { work_dir: imported.work_dir, mine: imported.mine };
                entries.extend(aside(&kind).map(Entry::Aside));
                entries
            }
            fact => self.beside(fact),
        }
    }

    /// An input belongs to the turn that runs, or to the next one.
    fn said(&mut self, at: At, input: InputTaken) -> Vec<Entry> {
        let said = Entry::Said { at, text: input.text, images: input.images.len() };
        if self.turn.is_some() {
            return vec![said];
        }
        self.waiting.push(said);
        vec![]
    }

    /// Of an answer those blocks count that were kept.
    fn answered(&mut self, ended: &AttemptEnded) -> Vec<Entry> {
        let Some(error) = &ended.error else {
            let Some(attempt) = self.attempt.take() else { return vec![] };
            return told(attempt.blocks, ended.kept);
        };
        let mut entries = match &mut self.attempt {
            Some(attempt) if ended.kept > 0 => told(std::mem::take(&mut attempt.blocks), ended.kept),
            _ => vec![],
        };
        entries.extend(self.given_up(Some(error)));
        entries
    }

    /// An attempt that came to nothing more.
    fn given_up(&mut self, error: Option<&str>) -> Vec<Entry> {
        let Some(attempt) = self.attempt.take() else { return vec![] };
        let unfinished = Some(attempt.unfinished).filter(|text| !text.trim().is_empty());
        let error = error.map(|error| format!("✗ the answer did not come: {}", shortened(error, 200)));
        unfinished.map(Entry::Unfinished).into_iter().chain(error.map(Entry::Aside)).collect()
    }

    fn ended(&mut self, at: At, ended: TurnEnded) -> Vec<Entry> {
        let mut entries = self.given_up(None);
        let turn = self.turn.take();
        let took_ms =
            turn.as_ref().and_then(|turn| u64::try_from(at.0.saturating_sub(turn.at.0)).ok()).unwrap_or(0);
        let (steps, spent) = turn.map(|turn| (turn.steps, turn.spent)).unwrap_or_default();
        entries.push(Entry::Ended { outcome: ended.outcome, error: ended.error, took_ms, steps, spent });
        entries
    }

    /// What happens beside what is said and answered.
    fn beside(&mut self, fact: SessionRecord) -> Vec<Entry> {
        let kind = match fact {
            SessionRecord::EpochStarted(started) if started.reason == EpochReason::Changed => {
                return vec![Entry::Aside("the system prompt or the tools have changed".to_owned())];
            }
            SessionRecord::SystemMessage(message) => {
                let words: Vec<String> = message.content.into_iter().map(|part| part.text).collect();
                return vec![Entry::Summary(words.join("\n"))];
            }
            SessionRecord::Stubbed(stubbed) => {
                let many = count(stubbed.calls.len() as u64, "old result");
                return vec![Entry::Aside(format!("{many} shortened to a line each, to make room"))];
            }
            SessionRecord::Answered(answered) => {
                return vec![Entry::Aside(format!("answer: {}", shortened(&answered.answer, 200)))];
            }
            SessionRecord::ToolStarted(call) => EventKind::ToolStarted {
                call_id: call.call,
                name: call.name,
                arguments: call.arguments,
                effect: call.effect,
            },
            SessionRecord::ToolFinished(call) => EventKind::ToolFinished {
                call_id: call.call,
                name: call.name,
                is_error: call.is_error,
                content: call.content,
            },
            SessionRecord::TaskStarted(task) => {
                EventKind::TaskStarted { task_id: task.task_id, description: task.description }
            }
            SessionRecord::TaskEnded(end) => {
                EventKind::TaskEnded { task_id: end.task_id, status: end.status, exit_code: end.exit_code }
            }
            SessionRecord::Notification(told) => EventKind::Notification { task_id: told.task_id },
            SessionRecord::Note(note) => EventKind::Note { text: note.text },
            SessionRecord::Question(question) => EventKind::Question { id: question.id, text: question.text },
            SessionRecord::CompactStart(start) => EventKind::CompactStart { reason: start.reason },
            SessionRecord::CompactDone(done) => EventKind::CompactDone {
                epoch: done.epoch,
                by: done.by,
                before: done.before,
                after: done.after,
            },
            SessionRecord::CompactFailed(failed) => EventKind::CompactFailed { reason: failed.reason },
            SessionRecord::ModelChanged(changed) => {
                self.model = Some(changed.to.clone());
                EventKind::ModelChanged { from: changed.from, to: changed.to, reason: changed.reason }
            }
            SessionRecord::Warning(warning) => EventKind::Warning { code: warning.code, text: warning.text },
            _ => return vec![],
        };
        aside(&kind).or_else(|| aside_in_detail(&kind)).map(Entry::Aside).into_iter().collect()
    }
}

/// The blocks of an answer that were kept, as what they say. Calls are told when they run.
fn told(blocks: Vec<Item>, kept: u32) -> Vec<Entry> {
    let kept = usize::try_from(kept).unwrap_or(usize::MAX);
    let entries = blocks.into_iter().take(kept).filter_map(|block| match block {
        Item::Text { role: Role::Assistant, text } => Some(Entry::Answer(text)),
        Item::Reasoning { text, .. } => Some(Entry::Thought(text)),
        _ => None,
    });
    entries
        .filter(
            |entry| !matches!(entry, Entry::Answer(text) | Entry::Thought(text) if text.trim().is_empty()),
        )
        .collect()
}

/// What somebody wanted of the session. Answers and compactions are told for themselves.
fn in_words(order: &OrderKind) -> Option<String> {
    Some(match order {
        OrderKind::Cancel => "· somebody cancelled the turn".to_owned(),
        OrderKind::Retry => "· somebody asked to try again".to_owned(),
        OrderKind::Continue => "· somebody asked to go on with the answer".to_owned(),
        OrderKind::Kill { task } => format!("· somebody ended task {}", crate::short_id::short(*task)),
        OrderKind::Compact { .. } | OrderKind::Answer { .. } | OrderKind::Unknown => return None,
    })
}

#[cfg(test)]
#[path = "story_tests.rs"]
mod tests;
