//! What epochs and compactions change.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longhaul_context::{TokenCalibration, parse_first_request_pin, parse_rendered_summary, stub_text};
use longhaul_protocol::{
    CallId, CompactDone, CompactFailed, EpochStarted, Item, Place, Record, Role, Seq, Stubbed, SystemMessage,
};

use crate::compaction::plan::Compaction;
use crate::session::state::{Epoch, State};
use crate::session::tasks::SessionTasks;

impl State {
    pub(super) fn fold_epoch(&mut self, record: &Record, epoch: EpochStarted) {
        if epoch.carried.is_some() {
            *self = self.begun(record.seq, epoch);
            return;
        }
        if epoch.folds_from.is_none() {
            // Whoever loads the session from here has none of it either.
            self.items.clear();
            self.places.clear();
            self.preface = 0;
            self.seen = Arc::default();
            self.outputs.clear();
            self.tasks = SessionTasks::carried(epoch.tasks, epoch.ended, vec![]);
            self.questions = epoch.questions;
        }
        // It was counted with another beginning.
        self.reported = None;
        self.epoch = Some(Epoch {
            number: epoch.epoch,
            began: record.seq,
            folds_from: epoch.folds_from.unwrap_or(record.seq),
            system: epoch.system,
            tools: epoch.tools,
        });
        self.turns = epoch.turns;
        self.inbox_through = self.inbox_through.max(epoch.inbox_through);
        self.pins = epoch.pins;
        self.todo = epoch.todo;
    }

    /// What the runtime composed for the beginning of the epoch stands before what the epoch keeps.
    pub(super) fn fold_preface(&mut self, seq: Seq, message: SystemMessage) {
        if self.lacks_its_epoch() {
            self.drop_preface();
        }
        if self.compaction.has_lost_its_epoch {
            self.read_back(&message);
        }
        for part in message.content {
            let item = Arc::new(Item::Text { role: Role::System, text: part.text });
            self.items.insert(self.preface, item);
            self.places.insert(self.preface, Place { seq, turn: 0, step: 0, said: None });
            self.preface += 1;
        }
    }

    /// A compaction is done. Where the record of its epoch is gone, what it covers goes all the same: its range says what that is.
    pub(super) fn fold_compact_done(&mut self, done: &CompactDone) {
        if self.lacks_its_epoch() {
            self.drop_preface();
        }
        if self.compaction.open.take().is_none() {
            return;
        }
        let calibration = TokenCalibration::default();
        let asked = self.outline(&calibration, 0).open_requests(u64::MAX);
        let stays = |index: usize| {
            index < self.preface || self.places[index].seq > done.through || asked.contains(&index)
        };
        let keeps: Vec<bool> = (0..self.items.len()).map(stays).collect();
        let mut kept = keeps.iter();
        self.items.retain(|_| *kept.next().unwrap_or(&true));
        let mut kept = keeps.iter();
        self.places.retain(|_| *kept.next().unwrap_or(&true));
        self.reported = None;
        if let Some(turn) = &mut self.turn {
            turn.refusal = None;
        }
        if let Some(epoch) = &mut self.epoch {
            epoch.number = epoch.number.max(done.epoch);
        }
        self.compaction = Compaction {
            count: self.compaction.count.saturating_add(1),
            since_answer: self.compaction.since_answer.saturating_add(1),
            covered_through: done.through,
            ..Compaction::default()
        };
    }

    pub(super) fn fold_compact_start(&mut self, reason: String) {
        self.compaction.open = Some(reason);
        self.compaction.has_lost_its_epoch = false;
    }

    /// What an epoch that is gone would have carried, as far as what the model reads of it tells.
    fn read_back(&mut self, message: &SystemMessage) {
        for part in &message.content {
            if let Some(summary) = parse_rendered_summary(&part.text) {
                self.summary = Some(summary);
            } else if let Some(pin) = parse_first_request_pin(&part.text) {
                self.pins = vec![pin];
            }
        }
    }

    /// Whether a compaction is being folded whose new epoch is not there: that would have closed it.
    fn lacks_its_epoch(&self) -> bool {
        self.compaction.open.is_some() && !self.compaction.has_lost_its_epoch
    }

    fn drop_preface(&mut self) {
        self.items.drain(..self.preface);
        self.places.drain(..self.preface);
        self.preface = 0;
        self.compaction.has_lost_its_epoch = true;
    }

    pub(super) fn fold_compact_failed(&mut self, failed: &CompactFailed) {
        let compaction = &mut self.compaction;
        (compaction.open, compaction.asked, compaction.has_lost_its_epoch) = (None, None, false);
        if let Some(tokens) = failed.tokens {
            compaction.failures += 1;
            compaction.failed_at = Some(tokens);
            compaction.tried = true;
            compaction.is_hopeless = failed.was_needed;
        }
    }

    /// Old output is a line from here on, and what was counted before does not count any more.
    pub(super) fn fold_stubbed(&mut self, stubbed: &Stubbed) {
        let calls: HashSet<CallId> = stubbed.calls.iter().copied().collect();
        let names: HashMap<CallId, String> = self
            .items
            .iter()
            .filter_map(|item| match &**item {
                Item::ToolCall { call, name, .. } => Some((*call, name.clone())),
                _ => None,
            })
            .collect();
        for (item, place) in self.items.iter_mut().zip(&self.places) {
            let Item::ToolResult { call, content, is_error, .. } = &**item else { continue };
            if calls.contains(call) {
                let tool = names.get(call).map_or("a tool", String::as_str);
                let content = stub_text(tool, content.len(), *place);
                let (call, is_error) = (*call, *is_error);
                *item = Arc::new(Item::ToolResult { call, content, images: vec![], is_error });
            }
        }
        self.reported = None;
    }

    /// Whether there is anything that a compaction could cover, and something has happened since the last one.
    pub(super) fn has_news_to_compact(&self) -> bool {
        let compaction = &self.compaction;
        let is_new = compaction.since_answer == 0 || compaction.answers_since > 0;
        self.items.len() > self.preface && is_new
    }
}
