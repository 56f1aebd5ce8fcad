//! What the tests of consolidating have in common: extracts, and a model that does what it is asked for.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_journal::{Append, Journal};
use longhaul_memory::{BackgroundModel, Consolidation, PageSet, Result, consolidate};
use longhaul_model::{
    AnswerStream, CallPermit, Capabilities, Model, ModelFailure, Request, RetryPolicy, ScriptedModel,
};
use longhaul_protocol::{
    ExtractRecord, Extracted, ExtractedItem, ExtractedKind, Imported, Item, MemoryRecord, PagesChanged, Seq,
    SessionId, SessionRecord, Speaker, StreamName, Usage,
};
use serde_json::json;

pub(crate) const SCOPE: &str = "agent-x";

/// The scope of a session that was imported under this key.
pub(crate) fn scope_here(key: &str, _: Option<&Path>) -> String {
    format!("here-{key}")
}

/// Adds one extract of a session.
pub(crate) async fn extract(
    journal: &dyn Journal,
    session: SessionId,
    scope: &str,
    items: &[(Speaker, &str)],
) {
    let items = items.iter().map(|(speaker, text)| ExtractedItem {
        kind: ExtractedKind::Fact,
        text: (*text).to_owned(),
        sources: vec![1],
        speaker: *speaker,
        quote: (*speaker == Speaker::User).then(|| (*text).to_owned()),
    });
    let extracted = Extracted {
        scope: scope.to_owned(),
        from: 1,
        through: 9,
        items: items.collect(),
        refused: vec![],
        usage: vec![],
    };
    let record = ExtractRecord::Extracted(extracted).encode();
    journal.append(Append::to(&StreamName::extract(session)).record(record)).await.unwrap();
}

/// Marks a session as imported under this key, with so many extracts of somebody else's.
pub(crate) async fn imported(journal: &dyn Journal, session: SessionId, key: &str, extracts: Seq) {
    let imported =
        Imported { key: key.to_owned(), foreign_extracts_through: extracts, ..Imported::unknown(1) };
    let record = SessionRecord::Imported(imported).encode().with_key("imported/1");
    journal.append(Append::to(&StreamName::session(session)).record(record)).await.unwrap();
}

/// Asks this model without much patience.
pub(crate) fn calling(model: Arc<dyn Model>) -> BackgroundModel {
    BackgroundModel {
        model,
        capabilities: Capabilities::default(),
        retry: RetryPolicy { max_retries: 0, base: Duration::ZERO, ..RetryPolicy::default() },
        window: Some(64_000),
        max_output: None,
        budget: Arc::new(longhaul_memory::Unbudgeted),
        redact: Arc::new(|text| text.replace("s3cret", "[redacted]")),
    }
}

pub(crate) async fn consolidated(
    journal: &Arc<dyn Journal>,
    calling: &BackgroundModel,
) -> Result<Consolidation> {
    consolidate(journal, SCOPE, &scope_here, 1, calling, &mut Vec::<Usage>::new()).await
}

/// A script with one answer, which writes these pages.
pub(crate) fn writing(pages: &serde_json::Value) -> Arc<ScriptedModel> {
    let call = json!({"name": "write_pages", "arguments": {"pages": pages}});
    let usage = json!({"input": 10, "output": 5});
    Arc::new(ScriptedModel::from_json(&json!([{"calls": [call], "usage": usage}]).to_string()).unwrap())
}

/// The changes of the scope, as they were written.
pub(crate) async fn changes(journal: &dyn Journal) -> Vec<PagesChanged> {
    let stream = StreamName::memory(SCOPE).unwrap();
    let records = journal.read(&stream, 1, longhaul_journal::Page::default()).await.unwrap();
    let changed = records.iter().filter_map(|record| match MemoryRecord::decode(record) {
        Ok(MemoryRecord::PagesChanged(changed)) => Some(changed),
        _ => None,
    });
    changed.collect()
}

pub(crate) async fn text_of(journal: &dyn Journal, page: &str) -> Option<String> {
    let book = PageSet::load(journal, SCOPE).await.unwrap();
    book.pages.get(page).map(|page| page.text.clone())
}

/// Copies every item that it is shown to the page `core`, below what stands there. So an item that is read twice stands there twice, and one
/// that is never read does not stand there.
#[derive(Default)]
pub(crate) struct Diligent {
    calls: AtomicUsize,
}

impl Diligent {
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Model for Diligent {
    fn name(&self) -> &str {
        "diligent"
    }

    async fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn ask(
        &self,
        request: Request,
        permit: &CallPermit,
    ) -> std::result::Result<Box<dyn AnswerStream>, ModelFailure> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let Item::Text { text, .. } = &*request.items[0] else { panic!("a text was expected") };
        let below = |mark: &str| {
            let begins = text.find(mark).map(|begins| &text[begins + mark.len()..]).unwrap_or_default();
            begins.split("\n<<").next().unwrap_or_default().trim().to_owned()
        };
        let mut page = below("<<page core>>");
        for item in below("<<items>>").lines() {
            page += &format!("\n- {}", item.split_once(": ").unwrap().1);
        }
        let pages = json!([{"page": "core", "text": page}]);
        let numbered =
            Request { purpose: longhaul_model::Purpose::Consolidate { consolidations_before: 0 }, ..request };
        writing(&pages).ask(numbered, permit).await
    }
}
