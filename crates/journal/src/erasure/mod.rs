//! Erases a record of a session, and every other record that repeats its text.
//!
//! Some records repeat others word for word: the inbox contains the inputs that were taken from it, the end of a turn
//! contains its last answer, a checkpoint contains a part of an answer, and an epoch contains what it keeps of the
//! previous context. Three other forms are found too: a text that the runtime truncated in the middle, the first
//! words of the pinned first request, and a line that a summary quotes. A paraphrase in a summary is not found. An
//! extract names its source records and is erased with them.
//!
//! An erasure can't be undone, so nothing else may be erased. Only the words of people, models and tools are
//! compared, never the runtime's headings or its lists of files and ids. With a summary, only summaries with the same
//! lines are erased.
//!
//! The call that started a subagent has the subagent's prompt, which also stands at the beginning of the subagent's session and in the
//! list of its tree: there it is erased with the call. What the subagent said, and its parent saw as a result, is erased apart in each
//! of the two sessions.

mod quoted_texts;

use std::collections::BTreeSet;

use longhaul_protocol::{
    Block, CallId, Checkpoint, ExtractRecord, InboxRecord, Item, OrderKind, Record, SHORTENED_MARK, Sender,
    Seq, SessionId, SessionRecord, StreamName, TreeRecord,
};
use serde_json::Value;

use crate::{Error, Journal, Result, record_at, records};
use quoted_texts::{QuotedTexts, normalise};

/// A shorter text may be repeated by chance, and is no secret.
const MIN_TEXT_BYTES: usize = 8;
/// A shorter line of a summary, todo or command may have another origin.
const MIN_QUOTE_BYTES: usize = 16;
/// How much must remain of the beginning of a truncated text.
const MIN_HEAD_BYTES: usize = 24;
/// Shorter tool output is compared only with other results, because such output is often equal by chance.
const MIN_OUTPUT_BYTES: usize = 32;
/// The marks of a truncation.
const OMISSION_MARKS: [&str; 2] = ["…", SHORTENED_MARK];

/// Erases a record of a session for good, with every record of the session, its inbox and its extracts that repeats
/// it, and with the call that started a subagent the subagent's prompt. Returns the positions of all erased records. If these include an epoch, loading the session reads its whole
/// past.
pub async fn erase_record(
    journal: &dyn Journal,
    session: SessionId,
    seq: Seq,
    reason: &str,
) -> Result<Vec<(StreamName, Seq)>> {
    let places = erased_places(journal, session, seq).await?;
    journal.erase(&places, reason).await?;
    Ok(places)
}

/// The positions of a record and of those that go with it.
async fn erased_places(
    journal: &dyn Journal,
    session: SessionId,
    seq: Seq,
) -> Result<Vec<(StreamName, Seq)>> {
    let stream = StreamName::session(session);
    let record = record_at(journal, &stream, seq.max(1)).await?;
    if record.as_ref().is_some_and(|record| record.seq == seq && record.kind == "imported") {
        return Err(Error::MarksImport { stream, seq });
    }
    let mut places = vec![(stream.clone(), seq)];
    if let Some(record) = &record {
        places.extend(place_in_inbox(journal, session, record).await?);
        for copy in copies(journal, &stream, record).await? {
            places.push((stream.clone(), copy.seq));
            places.extend(place_in_inbox(journal, session, &copy).await?);
        }
        let gone: BTreeSet<Seq> =
            places.iter().filter(|(place, _)| *place == stream).map(|(_, seq)| *seq).collect();
        places.extend(extracts_about(journal, session, &gone).await?);
        if let Some(call) = prompting_call(record) {
            places.extend(Box::pin(prompt_places(journal, &stream, call)).await?);
        }
    }
    let mut seen = BTreeSet::new();
    places.retain(|place| seen.insert(place.clone()));
    Ok(places)
}

/// The call whose arguments a record has, in whole or in part.
fn prompting_call(record: &Record) -> Option<CallId> {
    match SessionRecord::decode(record).ok()? {
        SessionRecord::Block(Block { item: Item::ToolCall { call, .. }, .. }) => Some(call),
        SessionRecord::ToolStarted(started) => Some(started.call),
        SessionRecord::TaskStarted(task) => Some(task.task_id.call()),
        _ => None,
    }
}

/// Everywhere else that the prompt of a subagent stands. Nothing, if the call started none.
async fn prompt_places(
    journal: &dyn Journal,
    parent: &StreamName,
    call: CallId,
) -> Result<Vec<(StreamName, Seq)>> {
    let (mut places, mut child, mut root) = (Vec::new(), None, parent.session_id());
    let mut cursor = records(journal, parent, 1);
    while let Some(record) = cursor.next_undamaged().await? {
        if prompting_call(&record) == Some(call) {
            places.push((parent.clone(), record.seq));
        }
        match SessionRecord::decode(&record) {
            Ok(SessionRecord::SessionCreated(created)) => {
                root = created.parent.map_or(root, |link| Some(link.root()));
            }
            Ok(SessionRecord::ToolStarted(started)) if started.call == call => {
                child = started.child.map(|child| child.session).or(child);
            }
            Ok(SessionRecord::TaskStarted(task)) if task.task_id.call() == call => {
                child = task.session.or(child);
            }
            _ => {}
        }
    }
    let Some(child) = child else { return Ok(vec![]) };
    if let Some(root) = root {
        let tree = StreamName::tree(root);
        let mut cursor = records(journal, &tree, 1);
        while let Some(record) = cursor.next_undamaged().await? {
            if matches!(TreeRecord::decode(&record), Ok(TreeRecord::Admitted(admitted)) if admitted.session == child)
            {
                places.push((tree.clone(), record.seq));
            }
        }
    }
    let is_prompt = |sender: &Sender| matches!(sender, Sender::Parent { call: of, .. } if *of == call);
    let inbox = StreamName::inbox(child);
    let mut cursor = records(journal, &inbox, 1);
    while let Some(record) = cursor.next_undamaged().await? {
        if matches!(InboxRecord::decode(&record), Ok(InboxRecord::Input(input)) if is_prompt(&input.sender)) {
            places.push((inbox.clone(), record.seq));
        }
    }
    let of_child = StreamName::session(child);
    let mut cursor = records(journal, &of_child, 1);
    while let Some(record) = cursor.next_undamaged().await? {
        if matches!(SessionRecord::decode(&record), Ok(SessionRecord::InputTaken(taken)) if is_prompt(&taken.sender))
        {
            places.extend(erased_places(journal, child, record.seq).await?);
            break;
        }
    }
    Ok(places)
}

/// The extracts from these records. Other items in the same extracts are erased too, but their source records remain.
async fn extracts_about(
    journal: &dyn Journal,
    session: SessionId,
    gone: &BTreeSet<Seq>,
) -> Result<Vec<(StreamName, Seq)>> {
    let stream = StreamName::extract(session);
    let is_about = |record: &Record| match ExtractRecord::decode(record) {
        Ok(ExtractRecord::Extracted(extracted)) => {
            extracted.items.iter().flat_map(|item| &item.sources).any(|source| gone.contains(source))
        }
        _ => false,
    };
    let (mut found, mut extracts) = (Vec::new(), records(journal, &stream, 1));
    while let Some(record) = extracts.next_undamaged().await? {
        if is_about(&record) {
            found.push((stream.clone(), record.seq));
        }
    }
    Ok(found)
}

/// The inbox position of the input or order that this record took. In an imported session, that position may have
/// another record.
async fn place_in_inbox(
    journal: &dyn Journal,
    session: SessionId,
    record: &Record,
) -> Result<Option<(StreamName, Seq)>> {
    let taken = SessionRecord::decode(record);
    let through = match &taken {
        Ok(SessionRecord::InputTaken(taken)) => taken.inbox_through,
        Ok(SessionRecord::OrderTaken(taken)) => taken.inbox_through,
        _ => return Ok(None),
    };
    let inbox = StreamName::inbox(session);
    let stands_there = match record_at(journal, &inbox, through.max(1)).await {
        Err(Error::Damaged { .. }) => return Ok(Some((inbox, through))),
        record => record?,
    };
    let is_same = |there: &Record| match (InboxRecord::decode(there), &taken) {
        (Ok(InboxRecord::Input(input)), Ok(SessionRecord::InputTaken(taken))) => input.id == taken.id,
        (Ok(InboxRecord::Order(order)), Ok(SessionRecord::OrderTaken(taken))) => order.id == taken.order.id,
        // It was already erased. Erasing it again removes leftover bytes.
        (Err(_), _) => true,
        _ => false,
    };
    let there = stands_there.filter(|there| there.seq == through && is_same(there));
    Ok(there.map(|there| (inbox, there.seq)))
}

/// The records that repeat this one. Damaged records are skipped.
async fn copies(journal: &dyn Journal, stream: &StreamName, original: &Record) -> Result<Vec<Record>> {
    let erased = erased_texts(original);
    let mut copies = Vec::new();
    if erased.is_empty() {
        return Ok(copies);
    }
    let mut cursor = records(journal, stream, 1);
    while let Some(record) = cursor.next_undamaged().await? {
        if record.seq != original.seq && repeats(&record, &erased) {
            copies.push(record);
        }
    }
    Ok(copies)
}

/// The texts of a record that others may repeat.
fn erased_texts(record: &Record) -> Vec<ErasedText> {
    let Ok(fact) = SessionRecord::decode(record) else { return vec![] };
    let erased = match fact {
        SessionRecord::InputTaken(input) => vec![ErasedText::words(&input.text)],
        SessionRecord::OrderTaken(_) | SessionRecord::CompactStart(_) | SessionRecord::Answered(_) => {
            words_of_person(record).iter().map(|text| ErasedText::words(text)).collect()
        }
        SessionRecord::Question(question) => {
            let refused = question.refused.map(|refused| ErasedText::result(&refused.content));
            [ErasedText::words(&question.text)].into_iter().chain(refused).collect()
        }
        SessionRecord::Block(Block { item, .. }) => match item {
            Item::Text { text, .. } | Item::Reasoning { text, .. } => vec![ErasedText::words(&text)],
            Item::ToolCall { arguments, .. } => {
                let fields = serde_json::from_str::<Value>(&arguments).unwrap_or_default();
                let named = quoted_texts::leaves(&fields).into_iter().map(ErasedText::named);
                named.chain([ErasedText::composed(&arguments)]).collect()
            }
            Item::ToolResult { content, .. } => vec![ErasedText::result(&content)],
            Item::Note { text } => vec![ErasedText::composed(&text)],
            Item::Image(_) => vec![],
        },
        SessionRecord::ToolFinished(finished) => vec![ErasedText::result(&finished.content)],
        SessionRecord::TaskStarted(task) => {
            vec![ErasedText::named(&task.command), ErasedText::named(&task.description)]
        }
        SessionRecord::TaskEnded(ended) => vec![ErasedText::output(&ended.tail)],
        SessionRecord::Notification(notification) => vec![ErasedText::composed(&notification.text)],
        SessionRecord::Note(note) => vec![ErasedText::composed(&note.text)],
        SessionRecord::Warning(warning) => vec![ErasedText::composed(&warning.text)],
        SessionRecord::SystemMessage(message) => {
            vec![Some(ErasedText::Summary(quoted_texts::lines_in(&message)))]
        }
        SessionRecord::EpochStarted(epoch) => epoch
            .summary
            .iter()
            .map(|summary| Some(ErasedText::Summary(quoted_texts::lines_of(summary))))
            .collect(),
        _ => vec![],
    };
    erased.into_iter().flatten().collect()
}

/// The words of a person in an order, a compaction or an answer. The rest of such a record is the same in many
/// records, so only these words are compared.
fn words_of_person(record: &Record) -> Option<String> {
    match SessionRecord::decode(record).ok()? {
        SessionRecord::OrderTaken(taken) => match taken.order.kind {
            OrderKind::Compact { focus } => focus,
            OrderKind::Answer { answer, .. } => Some(answer),
            OrderKind::AddContext { text } => Some(text),
            OrderKind::Remember { text, .. } => text,
            _ => None,
        },
        SessionRecord::CompactStart(start) => start.focus,
        SessionRecord::Answered(answered) => Some(answered.answer),
        _ => None,
    }
}

/// Whether a record repeats one of these texts.
fn repeats(record: &Record, erased: &[ErasedText]) -> bool {
    let texts = || erased.iter().filter_map(ErasedText::text);
    match record.kind.as_str() {
        "checkpoint" => {
            let part = record.decode::<Checkpoint>().map(|checkpoint| normalise(&checkpoint.text));
            let part = part.unwrap_or_default();
            part.len() >= MIN_TEXT_BYTES && texts().any(|text| text.plain.contains(&part))
        }
        "order_taken" | "compact_start" | "answered" => {
            words_of_person(record).is_some_and(|there| texts().any(|text| text.is_in(&normalise(&there))))
        }
        "epoch_started" | "system_message" | "turn_ended" | "notification" | "note" => {
            QuotedTexts::from_record(record)
                .is_some_and(|quoted| erased.iter().any(|erased| erased.is_in(&quoted)))
        }
        _ => false,
    }
}

/// A text to erase. The variant says in which forms other records may repeat it.
#[derive(Debug)]
enum ErasedText {
    /// By a person or a model. Others repeat it whole, truncated, or as a single line.
    Words(TextPattern),
    /// With text of the runtime around it. Others repeat it only whole.
    Composed(TextPattern),
    /// By a tool. Like words, unless it is short.
    Output(TextPattern),
    /// A value in the arguments of a call. Others repeat it alone, as a todo or a command.
    Named(String),
    /// The lines of a summary.
    Summary(BTreeSet<String>),
}

impl ErasedText {
    fn words(text: &str) -> Option<Self> {
        TextPattern::new(text).map(Self::Words)
    }

    fn composed(text: &str) -> Option<Self> {
        TextPattern::new(text).map(Self::Composed)
    }

    fn output(text: &str) -> Option<Self> {
        TextPattern::new(text).map(Self::Output)
    }

    fn named(text: &str) -> Option<Self> {
        let text = normalise(text);
        (text.len() >= MIN_QUOTE_BYTES).then_some(Self::Named(text))
    }

    /// If a result is a JSON object, only its field `output` has the tool's own words.
    fn result(content: &str) -> Option<Self> {
        let fields = quoted_texts::fields(content);
        match fields.as_ref().and_then(|fields| fields.get("output")?.as_str()) {
            Some(output) => Self::output(output),
            None if fields.is_some() => Self::composed(content),
            None => Self::output(content),
        }
    }

    fn text(&self) -> Option<&TextPattern> {
        match self {
            Self::Words(text) | Self::Composed(text) => Some(text),
            Self::Output(text) => (text.plain.len() >= MIN_OUTPUT_BYTES).then_some(text),
            Self::Named(_) | Self::Summary(_) => None,
        }
    }

    fn is_in(&self, quoted: &QuotedTexts) -> bool {
        match self {
            Self::Words(text) => text.is_whole_in(quoted) || text.is_partly_in(quoted),
            Self::Composed(text) => text.is_whole_in(quoted),
            Self::Output(text) if text.plain.len() < MIN_OUTPUT_BYTES => {
                [&quoted.outputs, &quoted.words].into_iter().flatten().any(|there| *there == text.plain)
            }
            Self::Output(text) => text.is_whole_in(quoted) || text.is_partly_in(quoted),
            Self::Named(text) => quoted.named.contains(text),
            // A message may show fewer lines than the epoch has.
            Self::Summary(lines) => {
                let (one, other) = (lines, &quoted.summary);
                !one.is_empty() && !other.is_empty() && (one.is_subset(other) || other.is_subset(one))
            }
        }
    }
}

/// A text in the forms to search for.
#[derive(Debug)]
struct TextPattern {
    plain: String,
    /// The text as a part of a JSON string.
    quoted: String,
}

impl TextPattern {
    fn new(text: &str) -> Option<Self> {
        let quoted = Value::from(text.trim()).to_string();
        let quoted = normalise(&quoted[1..quoted.len() - 1]);
        let plain = normalise(text);
        (plain.len() >= MIN_TEXT_BYTES).then_some(Self { plain, quoted })
    }

    fn is_in(&self, there: &str) -> bool {
        there.contains(&self.plain) || there.contains(&self.quoted)
    }

    fn is_whole_in(&self, quoted: &QuotedTexts) -> bool {
        let mut of_others = [&quoted.words, &quoted.outputs, &quoted.named].into_iter().flatten();
        // A short text may be the runtime's own words.
        let is_long = self.plain.len() >= MIN_QUOTE_BYTES;
        of_others.any(|there| self.is_in(there))
            || quoted.composed.iter().any(|there| is_long && self.is_in(there) || *there == self.plain)
    }

    fn is_partly_in(&self, quoted: &QuotedTexts) -> bool {
        let mut of_others = [&quoted.words, &quoted.outputs].into_iter().flatten();
        let is_beginning = |pin: &String| pin.len() >= MIN_HEAD_BYTES && self.plain.starts_with(pin.as_str());
        let is_quote = |line: &String| line.len() >= MIN_QUOTE_BYTES && self.plain.contains(line.as_str());
        of_others.any(|there| self.is_truncated_in(there))
            || quoted.pins.iter().any(is_beginning)
            || quoted.quotes.iter().any(is_quote)
    }

    /// Whether `there` contains this text up to the mark of a truncation.
    fn is_truncated_in(&self, there: &str) -> bool {
        let gaps = OMISSION_MARKS.iter().flat_map(|sign| there.match_indices(sign));
        let mut heads = gaps.map(|(gap, _)| there[..gap].trim_end_matches(['[', ' ']));
        heads.any(|head| head.len() >= MIN_HEAD_BYTES && self.plain.starts_with(head))
    }
}
