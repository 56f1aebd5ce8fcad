//! Parses a model's answer into items. Each item is validated on its own, so that one bad item does not discard the
//! others.

use std::collections::BTreeMap;

use longhaul_protocol::{ExtractedItem, ExtractedKind, Seq, Speaker};
use serde_json::Value;

use super::parts::Part;
use crate::provenance::{SpeakerEvidence, Vocabulary, attribute_speaker, kind_for_speaker, less_trusted};
use crate::quotation::find_quotation;
use crate::text::{one_line, truncate_line};
use crate::{RedactFn, Utterance};

const MAX_ITEMS: usize = 100;
const MAX_ITEM_BYTES: usize = 2_000;
/// The most bytes of a refused item to quote.
const MAX_QUOTED_BYTES: usize = 60;

/// The items of a part.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct JudgedItems {
    pub(super) items: Vec<ExtractedItem>,
    /// Items that were refused, with the reasons.
    pub(super) refused: Vec<String>,
}

/// Accepts the valid items, each with its real speaker, and refuses the others with reasons.
pub(super) fn judge(values: Vec<Value>, part: &Part, redact: &RedactFn) -> JudgedItems {
    let judge = ItemJudge::new(part, redact);
    let (mut found, all) = (JudgedItems::default(), values.len());
    for (index, value) in values.into_iter().enumerate().take(MAX_ITEMS) {
        match judge.item(&value) {
            Ok(item) if found.items.iter().any(|before| is_duplicate(before, &item)) => {}
            Ok(item) => found.items.push(item),
            Err(reason) => {
                let named = value
                    .get("text")
                    .and_then(Value::as_str)
                    .map(|text| truncate_line(text, MAX_QUOTED_BYTES));
                let named = named.unwrap_or_else(|| truncate_line(&value.to_string(), MAX_QUOTED_BYTES));
                found.refused.push(one_line(&redact(&format!("item {} ({named}): {reason}", index + 1))));
            }
        }
    }
    if all > MAX_ITEMS {
        let first = MAX_ITEMS + 1;
        found.refused.push(format!("items {first} to {all}: a part has at most {MAX_ITEMS} items"));
    }
    found
}

fn is_duplicate(one: &ExtractedItem, other: &ExtractedItem) -> bool {
    one.kind == other.kind && one.text == other.text
}

/// The words of each untrusted text, including the parts that a prompt leaves out and text that the user pasted.
pub(super) fn vocabularies<'a>(
    said: impl Iterator<Item = &'a Utterance>,
) -> impl Iterator<Item = Vocabulary> {
    said.filter_map(|said| match said.speaker {
        Speaker::Untrusted => Some(Vocabulary::of([said.whole()])),
        Speaker::User => said.pasted().map(|pasted| Vocabulary::of([pasted.as_str()])),
        Speaker::Assistant => None,
    })
}

struct ItemJudge<'a> {
    said: BTreeMap<Seq, &'a Utterance>,
    assistant: Vocabulary,
    untrusted: Vec<Vocabulary>,
    redact: &'a RedactFn,
}

impl<'a> ItemJudge<'a> {
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
        let claimed_speaker = claimed_speaker(&value["speaker"])?;
        let cited = || sources.iter().filter_map(|seq| self.said.get(seq).copied());
        let grounds = SpeakerEvidence {
            weakest: cited().fold(claimed_speaker, |weakest, said| less_trusted(weakest, said.speaker)),
            said: &own_words(cited()),
            assistant: &self.assistant,
            untrusted: &self.untrusted,
        };
        let speaker = attribute_speaker(&text, &grounds);
        let said = cited().filter(|said| said.speaker == Speaker::User).map(Utterance::whole);
        let quote = find_quotation(&text, said).filter(|_| speaker == Speaker::User);
        let quote = quote.map(|quote| (self.redact)(&quote));
        Ok(ExtractedItem { kind: kind_for_speaker(kind, speaker), text, sources, speaker, quote })
    }

    fn kind(&self, value: &Value) -> Result<ExtractedKind, String> {
        let word = value.as_str().ok_or("it has no kind")?;
        let known = serde_json::from_value(Value::from(word.trim().to_lowercase()));
        known.map_err(|_| format!("unknown kind {:?}", truncate_line(word, MAX_QUOTED_BYTES)))
    }

    fn text(&self, value: &Value) -> Result<String, String> {
        let text = value.as_str().ok_or("it has no text")?;
        if text.len() > MAX_ITEM_BYTES {
            return Err(format!("its text has {} bytes; the limit is {MAX_ITEM_BYTES}", text.len()));
        }
        // Redacted before, for secrets with several lines, and after, for secrets that contained invisible
        // characters.
        let text = (self.redact)(&one_line(&(self.redact)(text)));
        if text.is_empty() { Err("its text is empty".to_owned()) } else { Ok(text) }
    }

    fn sources(&self, value: &Value) -> Result<Vec<Seq>, String> {
        let values = match value {
            Value::Null => return Err("it has no sources".to_owned()),
            Value::Array(values) if values.is_empty() => return Err("it has no sources".to_owned()),
            Value::Array(values) => values,
            _ => return Err("its sources are not a list".to_owned()),
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

fn own_words<'a>(said: impl Iterator<Item = &'a Utterance>) -> Vocabulary {
    let own = said.filter(|said| said.speaker == Speaker::User).map(Utterance::own);
    Vocabulary::of(own.collect::<Vec<_>>().iter().map(String::as_str))
}

/// The speaker that the model claims. It can only make an item less trusted.
fn claimed_speaker(value: &Value) -> Result<Speaker, String> {
    match value {
        Value::Null => Ok(Speaker::User),
        Value::String(word) => serde_json::from_value(Value::from(word.trim().to_lowercase()))
            .map_err(|_| format!("unknown speaker {:?}", truncate_line(word, MAX_QUOTED_BYTES))),
        _ => Err("its speaker is not a word".to_owned()),
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
