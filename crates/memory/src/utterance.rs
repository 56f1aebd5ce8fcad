//! Who said what, by the records of a session.
//!
//! Every utterance belongs to exactly one record, and can be told from that record and what comes after it. So whoever begins to listen
//! after a record, any record, hears everything that stands behind it, and nothing twice.

use std::borrow::Cow;

use longhaul_context::UserText;
use longhaul_protocol::{
    AttemptId, Block, Body, Image, Item, Record, Role, Seq, SessionRecord, Speaker, ToolFinished,
};

use crate::grounding::Vocabulary;
use crate::text::{one_line, without_middle};

/// So much is shown of what a program printed.
const LONGEST_OUTPUT: usize = 2_000;
/// So much is shown of the arguments of a call: the model has written them, and what came of it says more.
const LONGEST_ARGUMENTS: usize = 300;
/// So much is shown of a question to a person.
const LONGEST_QUESTION: usize = 500;
/// So long may the name of a tool be.
const LONGEST_NAME: usize = 64;
/// What these tools say and are told was said before, or stands in memory already.
const REPEATING: [&str; 2] = ["history_", "memory_"];

/// Something that was said or shown in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance {
    /// The record that holds it.
    pub seq: Seq,
    /// Whose words they are.
    pub speaker: Speaker,
    /// The same for people and models: `user`, `assistant`, `output of exec`.
    pub who: String,
    /// The words, as far as they are shown.
    pub text: String,
    /// All of them, where that is more.
    pub whole: Option<String>,
}

impl Utterance {
    /// All of the words.
    pub fn whole(&self) -> &str {
        self.whole.as_deref().unwrap_or(&self.text)
    }

    /// The words without what was pasted into them.
    pub fn own(&self) -> String {
        UserText::of(self.whole()).own
    }

    /// What was pasted into it, if anything was: not the speaker's words.
    pub fn pasted(&self) -> Option<String> {
        Some(UserText::of(self.whole()).pasted).filter(|pasted| !pasted.is_empty())
    }
}

/// Listens to the records of a session, one after the other. What a model wrote counts only once its attempt has ended and kept it.
#[derive(Debug, Default)]
pub struct UtteranceReader {
    /// The user's words up to this record are somebody else's: the session was imported.
    foreign_through: Seq,
    has_turn: bool,
    /// What an attempt wrote that is not over: its place in the answer, and what it is.
    written: Vec<(u32, Utterance)>,
    attempt: Option<AttemptId>,
}

impl UtteranceReader {
    /// Listens to a session in which the user's words up to this record are somebody else's. 0: none are.
    pub fn to_session(foreign_through: Seq) -> Self {
        Self { foreign_through, ..Self::default() }
    }

    /// What is certain to have been said with this record. Several, where an attempt ends.
    pub fn push(&mut self, record: &Record) -> Vec<Utterance> {
        self.follow(&record.kind);
        let seq = record.seq;
        let Ok(fact) = SessionRecord::decode(record) else {
            // How much of it counted is unknown; all of it was complete, and calls of it may have run.
            let is_end = record.kind == "attempt_ended" && matches!(record.body, Body::Gone(_));
            return if is_end { self.keep(u32::MAX) } else { vec![] };
        };
        let said = match fact {
            SessionRecord::InputTaken(input) => self.user(seq, with_pictures(input.text, &input.images)),
            SessionRecord::Answered(answered) => self.user(seq, answered.answer),
            SessionRecord::Question(question) => {
                let text = format!("(asks the user) {}", shortened(&question.text, LONGEST_QUESTION));
                assistant(seq, text)
            }
            SessionRecord::ToolFinished(finished) if !repeats(&finished.name) => output(seq, &finished),
            SessionRecord::Notification(told) => untrusted(seq, "output of a task".to_owned(), &told.text),
            SessionRecord::Block(block) => {
                self.write(seq, block);
                return vec![];
            }
            SessionRecord::AttemptEnded(ended) => {
                let is_it = self.attempt.is_none_or(|attempt| attempt == ended.attempt);
                return self.keep(if is_it { ended.kept } else { 0 });
            }
            // Either it keeps the books, or it repeats or sums up what another record holds.
            _ => return vec![],
        };
        if said.text.trim().is_empty() { vec![] } else { vec![said] }
    }

    /// What a person said: the user, or the one that the session had before it was imported.
    fn user(&self, seq: Seq, text: String) -> Utterance {
        let (speaker, who) = match seq <= self.foreign_through {
            true => (Speaker::Untrusted, "user of the imported session"),
            false => (Speaker::User, "user"),
        };
        Utterance { seq, speaker, who: who.to_owned(), text, whole: None }
    }

    /// Whether everything that has begun has ended: no turn is open. Only there may a span end.
    pub fn is_at_rest(&self) -> bool {
        !self.has_turn
    }

    /// Whether something was written of which nobody knows yet whether it counts.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.written.is_empty()
    }

    /// The kind of a record is there even if its body is gone.
    fn follow(&mut self, kind: &str) {
        match kind {
            "turn_started" => self.has_turn = true,
            "turn_ended" => self.has_turn = false,
            // What was open in the other home never goes on.
            "imported" => self.has_turn = false,
            "step_started" | "attempt_started" => {}
            _ => return,
        }
        // What was written before, and is not over, never will be: that record is lost.
        self.written.clear();
        self.attempt = None;
    }

    fn write(&mut self, seq: Seq, block: Block) {
        if self.attempt.replace(block.attempt).is_some_and(|before| before != block.attempt) {
            self.written.clear();
        }
        let said = match block.item {
            Item::Text { role: Role::Assistant, text } => assistant(seq, text),
            Item::ToolCall { name, arguments, .. } if !repeats(&name) => {
                let arguments = one_line(&arguments);
                let text = format!("(calls {}) {}", plain(&name), shortened(&arguments, LONGEST_ARGUMENTS));
                assistant(seq, text)
            }
            _ => return,
        };
        if !said.text.trim().is_empty() {
            self.written.push((block.index, said));
        }
    }

    /// The attempt is over, and its first so many blocks count.
    fn keep(&mut self, kept: u32) -> Vec<Utterance> {
        self.attempt = None;
        let written = std::mem::take(&mut self.written).into_iter();
        written.filter(|(index, _)| *index < kept).map(|(_, said)| said).collect()
    }
}

/// What tools of memory say of what nobody vouches for: on a page, and of a record.
const MARKS: [&str; 2] = ["[untrusted]", "nobody vouches for"];

/// The words of each thing that a record shows again and that was marked: repeating it does not make it anybody's.
pub fn untrusted_recalls(record: &Record) -> Vec<Vocabulary> {
    let Ok(SessionRecord::ToolFinished(finished)) = SessionRecord::decode(record) else { return vec![] };
    if !repeats(&finished.name) {
        return vec![];
    }
    let mut things: Vec<String> = Vec::new();
    for line in finished.content.lines() {
        match things.last_mut() {
            // What is set in belongs to what stands before it.
            Some(thing) if line.starts_with("  ") => *thing += line,
            _ => things.push(line.to_owned()),
        }
    }
    let is_marked = |thing: &&String| MARKS.iter().any(|mark| thing.contains(mark));
    things.iter().filter(is_marked).map(|thing| Vocabulary::of([thing.as_str()])).collect()
}

fn assistant(seq: Seq, text: String) -> Utterance {
    Utterance { seq, speaker: Speaker::Assistant, who: "assistant".to_owned(), text, whole: None }
}

fn output(seq: Seq, finished: &ToolFinished) -> Utterance {
    let failed = if finished.is_error { ", which failed" } else { "" };
    let who = format!("output of {}{failed}", plain(&finished.name));
    untrusted(seq, who, &finished.content)
}

/// What is not shown of it still is what nobody can vouch for.
fn untrusted(seq: Seq, who: String, all: &str) -> Utterance {
    let text = shortened(all, LONGEST_OUTPUT).into_owned();
    let whole = (text.len() != all.len()).then(|| all.to_owned());
    Utterance { seq, speaker: Speaker::Untrusted, who, text, whole }
}

fn repeats(tool: &str) -> bool {
    REPEATING.iter().any(|family| tool.starts_with(family))
}

fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    without_middle(text, most, "")
}

fn with_pictures(text: String, pictures: &[Image]) -> String {
    match pictures.len() {
        0 => text,
        1 => format!("{text}\n[a picture]"),
        many => format!("{text}\n[{many} pictures]"),
    }
}

/// A model can call a tool whatever it likes; nothing of that may look like something else.
fn plain(name: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.') { letter } else { '?' }
    };
    name.chars().take(LONGEST_NAME).map(plain).collect()
}

#[cfg(test)]
#[path = "utterance_tests.rs"]
mod tests;
