//! From what a model answered to items. They are judged one by one: what is wrong with one is no reason to lose another.

use std::collections::BTreeMap;

use longhaul_protocol::{ExtractedItem, ExtractedKind, Seq, Speaker};
use serde_json::Value;

use super::parts::Part;
use crate::grounding::{SpeakerEvidence, Vocabulary, attribute_speaker, kind_by, weaker};
use crate::quote::find_quotation;
use crate::text::{brief, one_line};
use crate::{RedactFn, Utterance};

/// A part has at most so many items.
const MOST_ITEMS: usize = 100;
/// An item is at most so long.
const LONGEST: usize = 2_000;
/// So much of an item is repeated where it is refused.
const LONGEST_NAME: usize = 60;

/// What was found in a part.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct JudgedItems {
    pub(super) items: Vec<ExtractedItem>,
    /// What was not taken, with the reasons.
    pub(super) refused: Vec<String>,
}

/// The items that are as they should be, by whoever said them, and what is wrong with the others.
pub(super) fn judge(values: Vec<Value>, part: &Part, redact: &RedactFn) -> JudgedItems {
    let judge = Judge::new(part, redact);
    let (mut found, all) = (JudgedItems::default(), values.len());
    for (index, value) in values.into_iter().enumerate().take(MOST_ITEMS) {
        match judge.item(&value) {
            Ok(item) if found.items.iter().any(|before| is_the_same(before, &item)) => {}
            Ok(item) => found.items.push(item),
            Err(reason) => {
                let named = value.get("text").and_then(Value::as_str).map(|text| brief(text, LONGEST_NAME));
                let named = named.unwrap_or_else(|| brief(&value.to_string(), LONGEST_NAME));
                found.refused.push(one_line(&redact(&format!("item {} ({named}): {reason}", index + 1))));
            }
        }
    }
    if all > MOST_ITEMS {
        let first = MOST_ITEMS + 1;
        found.refused.push(format!("items {first} to {all}: a part has at most {MOST_ITEMS} items"));
    }
    found
}

fn is_the_same(one: &ExtractedItem, other: &ExtractedItem) -> bool {
    one.kind == other.kind && one.text == other.text
}

/// The words of each thing among these that nobody can vouch for, also those that are not shown, and of what the user pasted.
pub(super) fn vocabularies<'a>(
    said: impl Iterator<Item = &'a Utterance>,
) -> impl Iterator<Item = Vocabulary> {
    said.filter_map(|said| match said.speaker {
        Speaker::Untrusted => Some(Vocabulary::of([said.whole()])),
        Speaker::User => said.pasted().map(|pasted| Vocabulary::of([pasted.as_str()])),
        Speaker::Assistant => None,
    })
}

struct Judge<'a> {
    said: BTreeMap<Seq, &'a Utterance>,
    assistant: Vocabulary,
    untrusted: Vec<Vocabulary>,
    redact: &'a RedactFn,
}

impl<'a> Judge<'a> {
    fn new(part: &'a Part, redact: &'a RedactFn) -> Self {
        let said: BTreeMap<Seq, &Utterance> =
            part.said.iter().map(|said| (said.utterance.seq, &said.utterance)).collect();
        let by_assistant = said.values().filter(|said| said.speaker == Speaker::Assistant);
        let assistant = Vocabulary::of(by_assistant.map(|said| said.text.as_str()));
        let untrusted = part.before.iter().cloned().chain(vocabularies(said.values().copied())).collect();
        Self { said, assistant, untrusted, redact }
    }

    fn item(&self, value: &Value) -> Result<ExtractedItem, String> {
        if !value.is_object() {
            return Err("it is not an object".to_owned());
        }
        let kind = self.kind(&value["kind"])?;
        let text = self.text(&value["text"])?;
        let sources = self.sources(&value["sources"])?;
        let claimed = claimed(&value["speaker"])?;
        let cited = || sources.iter().filter_map(|seq| self.said.get(seq).copied());
        let grounds = SpeakerEvidence {
            weakest: cited().fold(claimed, |weakest, said| weaker(weakest, said.speaker)),
            said: &own_words(cited()),
            assistant: &self.assistant,
            untrusted: &self.untrusted,
        };
        let speaker = attribute_speaker(&text, &grounds);
        let said = cited().filter(|said| said.speaker == Speaker::User).map(Utterance::whole);
        let quote = find_quotation(&text, said).filter(|_| speaker == Speaker::User);
        let quote = quote.map(|quote| (self.redact)(&quote));
        Ok(ExtractedItem { kind: kind_by(kind, speaker), text, sources, speaker, quote })
    }

    fn kind(&self, value: &Value) -> Result<ExtractedKind, String> {
        let word = value.as_str().ok_or("it has no kind")?;
        let known = serde_json::from_value(Value::from(word.trim().to_lowercase()));
        known.map_err(|_| format!("there is no kind {:?}", brief(word, LONGEST_NAME)))
    }

    fn text(&self, value: &Value) -> Result<String, String> {
        let text = value.as_str().ok_or("it has no text")?;
        if text.len() > LONGEST {
            return Err(format!("its text has {} bytes, and may have {LONGEST}", text.len()));
        }
        // Once before, for secrets of several lines, and once after, for those that something unseen stood in.
        let text = (self.redact)(&one_line(&(self.redact)(text)));
        if text.is_empty() { Err("its text is empty".to_owned()) } else { Ok(text) }
    }

    fn sources(&self, value: &Value) -> Result<Vec<Seq>, String> {
        let values = match value {
            Value::Null => return Err("it has no sources".to_owned()),
            Value::Array(values) if values.is_empty() => return Err("it has no sources".to_owned()),
            Value::Array(values) => values,
            _ => return Err("its sources are no list".to_owned()),
        };
        let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
        let source = |value: &Value| match number(value) {
            Some(seq) if self.said.contains_key(&seq) => Ok(seq),
            Some(seq) => Err(format!("nothing was said in record {seq} of this part")),
            None => Err("its sources are not all numbers of records".to_owned()),
        };
        let mut sources = values.iter().map(source).collect::<Result<Vec<Seq>, String>>()?;
        sources.sort_unstable();
        sources.dedup();
        Ok(sources)
    }
}

/// The words of the user among these, without what was pasted.
fn own_words<'a>(said: impl Iterator<Item = &'a Utterance>) -> Vocabulary {
    let own = said.filter(|said| said.speaker == Speaker::User).map(Utterance::own);
    Vocabulary::of(own.collect::<Vec<_>>().iter().map(String::as_str))
}

/// Whose words the model says they are. That can only make an item less trusted.
fn claimed(value: &Value) -> Result<Speaker, String> {
    match value {
        Value::Null => Ok(Speaker::User),
        Value::String(word) => serde_json::from_value(Value::from(word.trim().to_lowercase()))
            .map_err(|_| format!("there is no speaker {:?}", brief(word, LONGEST_NAME))),
        _ => Err("its speaker is no word".to_owned()),
    }
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
