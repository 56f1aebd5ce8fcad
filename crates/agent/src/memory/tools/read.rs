use async_trait::async_trait;
use longhaul_memory::{PageSet, RecallScope};
use longhaul_protocol::{ChangedBy, Effect, MEMORY_READ, Seq, SessionId};
use longhaul_tools::{
    OutputLimit, PreparedCall, Tool, ToolDefinition, ToolInvocation, ToolOutcome, parse_arguments, schema_of,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{MemoryAccess, NO_MEMORY};
use crate::Result;
use crate::history::{minute, read_records};

/// How many records before a record, and after it, are shown with it.
const AROUND: u64 = 10;
/// How many similar names to suggest for an unknown name.
const NEAREST: usize = 5;

/// What memory_read takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A page's name, or what memory_search shows in brackets.
    page: String,
}

pub(super) struct MemoryRead {
    definition: ToolDefinition,
    access: MemoryAccess,
}

impl MemoryRead {
    pub(super) fn new(access: MemoryAccess) -> Self {
        Self { definition: definition(), access }
    }
}

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: MEMORY_READ,
        description: "Shows a page of memory, or a record of any session with what stood around it.",
        effect: Effect::Read,
        schema: schema_of::<Arguments>(),
        limits: &[
            "Only sessions of the same memory can be read (`memory.scope`).",
            "A record is shown with the ten before it and the ten after it, as far as an output may go.",
        ],
        example: r#"{"page": "core"}"#,
    }
}

#[async_trait]
impl Tool for MemoryRead {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, call: &ToolInvocation) -> std::result::Result<PreparedCall, ToolOutcome> {
        let Arguments { page } = parse_arguments(&self.definition, &call.arguments)?;
        let (access, session, cap) = (self.access.clone(), call.session, call.output_limit);
        Ok(PreparedCall::new(move |_stop| async move {
            match read(&access, session, page.trim(), cap).await {
                Ok(finished) => finished,
                Err(error) => ToolOutcome::error(format!("memory can't be read: {error}")),
            }
        }))
    }
}

async fn read(
    access: &MemoryAccess,
    session: SessionId,
    name: &str,
    cap: OutputLimit,
) -> Result<ToolOutcome> {
    let Some(places) = access.places(session).await? else { return Ok(ToolOutcome::error(NO_MEMORY)) };
    if let Some(page) = page(&places.book, name) {
        return Ok(ToolOutcome::ok(page));
    }
    let Some((session, seq)) = record(&places, name) else {
        return Ok(ToolOutcome::error(unknown(&places.book, name)));
    };
    let (from, to) = (seq.saturating_sub(AROUND).max(1), seq.saturating_add(AROUND));
    Ok(read_records(&access.journal, session, from, to, cap).await?)
}

fn page(page_set: &PageSet, name: &str) -> Option<String> {
    let page = page_set.pages.get(name)?;
    let last = page.versions.last()?;
    let by = match last.by {
        ChangedBy::Consolidation => "from what was said",
        ChangedBy::Person => "by a person",
        ChangedBy::Note => "because the user asked for it",
        ChangedBy::Undo => "by taking a change back",
    };
    Some(format!("{}\n[changed {} {by}]", page.text.trim_end(), minute(last.at)))
}

/// The record that a reference such as `cli:web-1a2b3c4d#123` names, if its session is one of these.
fn record(places: &RecallScope, reference: &str) -> Option<(SessionId, Seq)> {
    let (key, seq) = reference.rsplit_once('#')?;
    let (session, _) = places.sessions.iter().find(|(_, known)| known == key)?;
    Some((*session, seq.parse().ok().filter(|seq| *seq > 0)?))
}

fn unknown(page_set: &PageSet, name: &str) -> String {
    let name: String = name.chars().take(80).collect();
    let mut names: Vec<&str> = page_set.pages.keys().map(String::as_str).collect();
    if names.is_empty() {
        return format!("there is no page {name:?}, and no other yet; memory_search finds what was said");
    }
    let likeness = |known: &&str| strsim::normalized_damerau_levenshtein(&name, known);
    names.sort_by(|one, other| likeness(other).total_cmp(&likeness(one)));
    names.truncate(NEAREST);
    format!("there is no page {name:?}; the nearest are {}", names.join(", "))
}
