//! Who said what, according to the records of a session.
//!
//! Every utterance belongs to exactly one record, and only that record and later ones determine it. So a reader that
//! begins after any record gets every later utterance exactly once.

use std::borrow::Cow;

use longhaul_context::UserText;
use longhaul_protocol::{
    Answered, AnsweredBy, AttemptId, Block, Body, Item, Record, Role, Seq, SessionRecord, Speaker,
    ToolFinished, is_recall_tool, with_picture_note,
};

use crate::provenance::Vocabulary;
use crate::text::{one_line, truncate_middle_lines};

/// Bytes of a tool output in a prompt.
const MAX_OUTPUT_BYTES: usize = 2_000;
/// Bytes of a call's arguments in a prompt. The result of the call says more.
const MAX_ARGUMENT_BYTES: usize = 300;
const MAX_QUESTION_BYTES: usize = 500;
const MAX_NAME_CHARS: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance {
    /// The record that contains it.
    pub seq: Seq,
    pub speaker: Speaker,
    /// For people and models: `user`, `assistant`, `output of exec`.
    pub who: String,
    /// The text, perhaps truncated.
    pub text: String,
    /// The whole text, if `text` is truncated.
    pub whole: Option<String>,
}

impl Utterance {
    pub fn whole(&self) -> &str {
        self.whole.as_deref().unwrap_or(&self.text)
    }

    /// The speaker's own words, without pasted text.
    pub fn own(&self) -> String {
        UserText::of(self.whole()).own
    }

    /// The pasted text, which is not the speaker's own.
    pub fn pasted(&self) -> Option<String> {
        Some(UserText::of(self.whole()).pasted).filter(|pasted| !pasted.is_empty())
    }
}

/// Reads the utterances from a session's records, in their order. What a model wrote counts only after its attempt
/// has ended and kept it.
#[derive(Debug, Default)]
pub struct UtteranceReader {
    /// Inputs up to this record came with an import. They are not the words of this home's user.
    foreign_through: Seq,
    has_turn: bool,
    /// Blocks of the open attempt: their index and their utterance.
    open_blocks: Vec<(u32, Utterance)>,
    attempt: Option<AttemptId>,
}

impl UtteranceReader {
    /// A reader for a session that was imported up to this record. 0 if it was not imported.
    pub fn to_session(foreign_through: Seq) -> Self {
        Self { foreign_through, ..Self::default() }
    }

    /// The utterances that this record completes. The end of an attempt may complete several.
    pub fn push(&mut self, record: &Record) -> Vec<Utterance> {
        self.track_turn(&record.kind);
        let seq = record.seq;
        let Ok(fact) = SessionRecord::decode(record) else {
            // The record of the end is erased, so the number of kept blocks is unknown. All blocks were complete, and
            // their calls may have run.
            let is_end = record.kind == "attempt_ended" && matches!(record.body, Body::Gone(_));
            return if is_end { self.keep_blocks(u32::MAX) } else { vec![] };
        };
        let said = match fact {
            SessionRecord::InputTaken(input) => {
                let text = with_picture_note(input.text, &input.images);
                match input.sender.is_persons_word() {
                    true => self.user_utterance(seq, text),
                    false => untrusted_utterance(seq, input.sender.to_string(), &text),
                }
            }
            SessionRecord::Answered(Answered { answer, by: Some(AnsweredBy::Agent), .. }) => {
                untrusted_utterance(seq, "another agent".to_owned(), &answer)
            }
            // Nobody said it: the runtime took the question back.
            SessionRecord::Answered(Answered { by: Some(AnsweredBy::Runtime), .. }) => return vec![],
            SessionRecord::Answered(answered) => self.user_utterance(seq, answered.answer),
            SessionRecord::Question(question) => {
                let text = format!("(asks the user) {}", truncated(&question.text, MAX_QUESTION_BYTES));
                assistant_utterance(seq, text)
            }
            SessionRecord::ToolFinished(finished) if !is_recall_tool(&finished.name) => {
                output_utterance(seq, &finished)
            }
            SessionRecord::Notification(told) => {
                untrusted_utterance(seq, "output of a task".to_owned(), &told.text)
            }
            SessionRecord::Block(block) => {
                self.add_block(seq, block);
                return vec![];
            }
            SessionRecord::AttemptEnded(ended) => {
                let is_it = self.attempt.is_none_or(|attempt| attempt == ended.attempt);
                return self.keep_blocks(if is_it { ended.kept } else { 0 });
            }
            // Bookkeeping, or a repetition of another record.
            _ => return vec![],
        };
        if said.text.trim().is_empty() { vec![] } else { vec![said] }
    }

    /// An utterance of the user, or of the user whom an imported session had elsewhere.
    fn user_utterance(&self, seq: Seq, text: String) -> Utterance {
        let (speaker, who) = match seq <= self.foreign_through {
            true => (Speaker::Untrusted, "user of the imported session"),
            false => (Speaker::User, "user"),
        };
        Utterance { seq, speaker, who: who.to_owned(), text, whole: None }
    }

    /// Whether no turn is open. A span may end only here.
    pub fn is_at_rest(&self) -> bool {
        !self.has_turn
    }

    /// Whether the open attempt has blocks that may still be discarded.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.open_blocks.is_empty()
    }

    /// Tracks turns by the kinds of records, which remain when a body is erased.
    fn track_turn(&mut self, kind: &str) {
        match kind {
            "turn_started" => self.has_turn = true,
            "turn_ended" => self.has_turn = false,
            // A turn that was open at the export never continues.
            "imported" => self.has_turn = false,
            "step_started" | "attempt_started" => {}
            _ => return,
        }
        // Blocks of an attempt without a recorded end never count.
        self.open_blocks.clear();
        self.attempt = None;
    }

    fn add_block(&mut self, seq: Seq, block: Block) {
        if self.attempt.replace(block.attempt).is_some_and(|before| before != block.attempt) {
            self.open_blocks.clear();
        }
        let said = match block.item {
            Item::Text { role: Role::Assistant, text } => assistant_utterance(seq, text),
            Item::ToolCall { name, arguments, .. } if !is_recall_tool(&name) => {
                let arguments = one_line(&arguments);
                let text =
                    format!("(calls {}) {}", plain_name(&name), truncated(&arguments, MAX_ARGUMENT_BYTES));
                assistant_utterance(seq, text)
            }
            _ => return,
        };
        if !said.text.trim().is_empty() {
            self.open_blocks.push((block.index, said));
        }
    }

    /// The attempt has ended and kept its first `kept` blocks.
    fn keep_blocks(&mut self, kept: u32) -> Vec<Utterance> {
        self.attempt = None;
        let open_blocks = std::mem::take(&mut self.open_blocks).into_iter();
        open_blocks.filter(|(index, _)| *index < kept).map(|(_, said)| said).collect()
    }
}

/// How the recall tools mark untrusted text: on a page, in a record of memory, and in records of a session.
const UNTRUSTED_MARKS: [&str; 4] = ["[untrusted]", "nobody vouches for", "Z result of ", "Z news of task "];

/// The words of each untrusted entry that a memory tool repeated. The repetition does not make them trusted.
pub fn untrusted_recalls(record: &Record) -> Vec<Vocabulary> {
    let Ok(SessionRecord::ToolFinished(finished)) = SessionRecord::decode(record) else { return vec![] };
    if !is_recall_tool(&finished.name) {
        return vec![];
    }
    let mut entries: Vec<String> = Vec::new();
    for line in finished.content.lines() {
        match entries.last_mut() {
            // An indented line belongs to the entry above.
            Some(entry) if line.starts_with("  ") => *entry += line,
            _ => entries.push(line.to_owned()),
        }
    }
    let is_marked = |entry: &&String| UNTRUSTED_MARKS.iter().any(|mark| entry.contains(mark));
    entries.iter().filter(is_marked).map(|entry| Vocabulary::of([entry.as_str()])).collect()
}

fn assistant_utterance(seq: Seq, text: String) -> Utterance {
    Utterance { seq, speaker: Speaker::Assistant, who: "assistant".to_owned(), text, whole: None }
}

fn output_utterance(seq: Seq, finished: &ToolFinished) -> Utterance {
    let failed = if finished.is_error { ", which failed" } else { "" };
    let who = format!("output of {}{failed}", plain_name(&finished.name));
    untrusted_utterance(seq, who, &finished.content)
}

/// An utterance of untrusted text. The whole text is kept for attribution.
fn untrusted_utterance(seq: Seq, who: String, all: &str) -> Utterance {
    let text = truncated(all, MAX_OUTPUT_BYTES).into_owned();
    let whole = (text.len() != all.len()).then(|| all.to_owned());
    Utterance { seq, speaker: Speaker::Untrusted, who, text, whole }
}

fn truncated(text: &str, most: usize) -> Cow<'_, str> {
    truncate_middle_lines(text, most, "")
}

/// A tool name without characters that could look like something else. A model can call a tool anything.
fn plain_name(name: &str) -> String {
    let plain_name = |letter: char| {
        if letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.') { letter } else { '?' }
    };
    name.chars().take(MAX_NAME_CHARS).map(plain_name).collect()
}

#[cfg(test)]
#[path = "utterance_tests.rs"]
mod tests;
