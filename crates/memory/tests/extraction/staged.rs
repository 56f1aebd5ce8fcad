//! A session whose records are written as a test says, and everything that is needed to go through it.

use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Append, Journal, Page};
use longhaul_memory::{BackgroundModel, Error, Extraction, Result, extract};
use longhaul_model::{Capabilities, Model, RetryPolicy};
use longhaul_protocol::{
    At, AttemptEnded, AttemptId, AttemptStarted, Block, CallId, ExtractRecord, Extracted, Input, InputId,
    InputTaken, Item, JoinMode, NewRecord, Outcome, Record, Role, Sender, Seq, SessionId, SessionRecord,
    StepStarted, StreamName, ToolFinished, TurnEnded, TurnStarted, Usage,
};
use longhaul_testkit::TestHome;
use serde_json::value::RawValue;

pub(crate) const SCOPE: &str = "agent-test";

/// A session in a journal of its own.
pub(crate) struct Stage {
    pub(crate) place: TestHome,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) session: SessionId,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let place = TestHome::in_memory();
        let journal = place.journal().await;
        Self { place, journal, session: SessionId::generate() }
    }

    pub(crate) fn stream(&self) -> StreamName {
        StreamName::session(self.session)
    }

    /// Appends to the session; returns the last place.
    pub(crate) async fn append(&self, facts: impl IntoIterator<Item = SessionRecord>) -> Seq {
        self.append_raw(facts.into_iter().map(|fact| fact.encode())).await
    }

    pub(crate) async fn append_raw(&self, records: impl IntoIterator<Item = NewRecord>) -> Seq {
        let append = records.into_iter().fold(Append::to(&self.stream()), Append::record);
        self.journal.append(append).await.unwrap().last().unwrap().seq
    }

    /// Appends records with these keys to the extracts, of a kind that says nothing unless it is erased.
    pub(crate) async fn append_extracts(&self, keys: impl IntoIterator<Item = String>) {
        let body = RawValue::from_string("{}".to_owned()).unwrap();
        let record = |key: String| {
            NewRecord { kind: "extracted".to_owned(), body: body.clone(), key: None }.with_key(&key)
        };
        let append =
            keys.into_iter().map(record).fold(Append::to(&StreamName::extract(self.session)), Append::record);
        self.journal.append(append).await.unwrap();
    }

    /// A turn in which somebody says something and gets an answer; returns its last record.
    pub(crate) async fn talk(&self, asked: &str, answered: &str) -> Seq {
        let answer = answer([says(answered)]);
        self.append([input(asked), started()].into_iter().chain(answer).chain([ended()])).await
    }

    pub(crate) async fn extract(&self, calling: &BackgroundModel) -> Result<Extraction> {
        self.extract_with(calling, &mut vec![]).await
    }

    /// What was cut just before may still hold the lease for a moment.
    pub(crate) async fn extract_with(
        &self,
        calling: &BackgroundModel,
        usages: &mut Vec<Usage>,
    ) -> Result<Extraction> {
        loop {
            match extract(&self.journal, self.session, SCOPE, calling, usages).await {
                Err(Error::Held { .. }) => tokio::time::sleep(Duration::from_millis(1)).await,
                done => return done,
            }
        }
    }

    /// What stands in the extracts.
    pub(crate) async fn extracted(&self) -> Vec<Extracted> {
        let stream = StreamName::extract(self.session);
        let records = self.journal.read(&stream, 1, Page { records: 10_000, bytes: 1 << 30 }).await.unwrap();
        let extracted = |record: &Record| match ExtractRecord::decode(record) {
            Ok(ExtractRecord::Extracted(extracted)) => Some(extracted),
            _ => None,
        };
        records.iter().filter_map(extracted).collect()
    }

    /// From where to where each extract goes.
    pub(crate) async fn ranges(&self) -> Vec<(Seq, Seq)> {
        self.extracted().await.iter().map(|extracted| (extracted.from, extracted.through)).collect()
    }
}

/// This model, with a window that nobody knows.
pub(crate) fn calling(model: Arc<dyn Model>) -> BackgroundModel {
    let base = Duration::from_millis(1);
    BackgroundModel {
        model,
        capabilities: Capabilities::default(),
        retry: RetryPolicy { base, cap: base, ..RetryPolicy::default() },
        window: None,
        max_output: None,
        budget: Arc::new(longhaul_memory::Unbudgeted),
        redact: Arc::new(|text: &str| text.replace("hunter2", "[redacted]")),
    }
}

/// The same, with a context of so many tokens besides a short answer.
pub(crate) fn with_window(calling: BackgroundModel, tokens: u64) -> BackgroundModel {
    BackgroundModel { window: Some(tokens + 100), max_output: Some(100), ..calling }
}

pub(crate) fn input(text: &str) -> SessionRecord {
    let (id, mode) = (InputId::generate(), JoinMode::Join);
    SessionRecord::InputTaken(InputTaken::of(Input::new(id, text, mode), 1))
}

pub(crate) fn started() -> SessionRecord {
    SessionRecord::TurnStarted(TurnStarted::new(1))
}

pub(crate) fn ended() -> SessionRecord {
    SessionRecord::TurnEnded(TurnEnded {
        turn: 1,
        outcome: Outcome::Completed,
        limit: None,
        text: "what was said already".to_owned(),
        error: None,
        code: None,
        inbox_through: None,
    })
}

/// The end of a turn whose input the model could not take.
pub(crate) fn ended_as_too_long() -> SessionRecord {
    let SessionRecord::TurnEnded(ended) = ended() else { unreachable!() };
    let (outcome, code) = (Outcome::Failed, Some("context_too_long".to_owned()));
    SessionRecord::TurnEnded(TurnEnded { outcome, code, ..ended })
}

/// An input of a schedule that is a heartbeat.
pub(crate) fn heartbeat(text: &str) -> SessionRecord {
    let sender = Sender::Schedule {
        id: "builds".to_owned(),
        slot: At(0),
        by_agent: false,
        max_cost_nano: None,
        heartbeat: true,
    };
    let input = Input { sender, ..Input::new(InputId::generate(), text, JoinMode::After) };
    SessionRecord::InputTaken(InputTaken::of(input, 1))
}

pub(crate) fn ended_with_nothing_to_do() -> SessionRecord {
    let SessionRecord::TurnEnded(ended) = ended() else { unreachable!() };
    SessionRecord::TurnEnded(TurnEnded { code: Some(TurnEnded::NOTHING_TO_DO.to_owned()), ..ended })
}

pub(crate) fn says(text: &str) -> Item {
    Item::Text { role: Role::Assistant, text: text.to_owned() }
}

pub(crate) fn calls(name: &str, arguments: &str) -> Item {
    let (call, wire_id, signature) = (CallId::generate(), None, None);
    Item::ToolCall { call, wire_id, name: name.to_owned(), arguments: arguments.to_owned(), signature }
}

pub(crate) fn finished(name: &str, content: &str) -> SessionRecord {
    SessionRecord::ToolFinished(ToolFinished::new(CallId::generate(), name, content))
}

/// A step with an answer of which everything is kept: two records, then one a block, then one.
pub(crate) fn answer(items: impl IntoIterator<Item = Item>) -> Vec<SessionRecord> {
    let items: Vec<Item> = items.into_iter().collect();
    let kept = u32::try_from(items.len()).unwrap();
    answer_keeping(items, kept)
}

pub(crate) fn answer_keeping(items: Vec<Item>, kept: u32) -> Vec<SessionRecord> {
    let attempt = AttemptId::generate();
    let begin = AttemptStarted { attempt, model: "told/model".to_owned() };
    let block = |(index, item)| SessionRecord::Block(Block { attempt, index, item });
    let (stop, error, too_long) = (None, None, None);
    let end = AttemptEnded { attempt, kept, stop, error, goes_on: false, too_long };
    [SessionRecord::StepStarted(StepStarted::new(1)), SessionRecord::AttemptStarted(begin)]
        .into_iter()
        .chain((0..).zip(items).map(block))
        .chain([SessionRecord::AttemptEnded(end)])
        .collect()
}
