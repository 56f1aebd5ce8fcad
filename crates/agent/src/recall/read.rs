use async_trait::async_trait;
use longhaul_memory::{PageSet, RecallScope};
use longhaul_protocol::{ChangedBy, Effect, RECALL_READ, SessionId};
use longhaul_tools::{
    OutputLimit, PreparedCall, Tool, ToolDefinition, ToolInvocation, ToolOutcome, parse_arguments, schema_of,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::reference::Reference;
use crate::Result;
use crate::history::{minute, read_records};
use crate::memory::{MemoryAccess, NO_MEMORY};

/// How many records before a record of another session, and after it, are shown with it.
const AROUND: u64 = 10;
/// How many similar names to suggest for an unknown name.
const MAX_SUGGESTIONS: usize = 5;

/// What recall_read takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// `#12` or `#12-20` for this session, `KEY#12` for another, or a memory page.
    #[serde(rename = "ref")]
    reference: String,
}

pub(super) struct RecallRead {
    definition: ToolDefinition,
    access: MemoryAccess,
}

impl RecallRead {
    pub(super) fn new(access: MemoryAccess) -> Self {
        Self { definition: definition(), access }
    }
}

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: RECALL_READ.into(),
        description: "Read in full what recall found, or a page of memory.".into(),
        effect: Effect::Read,
        schema: schema_of::<Arguments>(),
        limits: &[
            "At most 200 records at once, and as many as an output may have; the last line says how to go on.",
            "A single record of another session is shown with the ten before it and the ten after it.",
            "Only sessions and pages of the same memory can be read (`memory.scope`).",
            "Bookkeeping records, such as what an answer cost, are left out.",
        ],
        example: r##"{"ref": "#12-20"}"##,
    }
}

#[async_trait]
impl Tool for RecallRead {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, call: &ToolInvocation) -> std::result::Result<PreparedCall, ToolOutcome> {
        let Arguments { reference } = parse_arguments(&self.definition, &call.arguments)?;
        let reference = Reference::parse(&reference);
        if let Reference::Records { from, to: Some(to), .. } = reference
            && to < from
        {
            return Err(ToolOutcome::error(format!("`ref` ends with {to}, which is before {from}")));
        }
        let (access, session, cap) = (self.access.clone(), call.session, call.output_limit);
        Ok(PreparedCall::new(move |_stop| async move {
            let read = match reference {
                Reference::Records { key: None, from, to } => {
                    let read = read_records(&access.journal, session, None, from..=to.unwrap_or(from), cap);
                    read.await.map_err(Into::into)
                }
                reference => read_memory(&access, session, reference, cap).await,
            };
            read.unwrap_or_else(|error| ToolOutcome::error(format!("it can't be read: {error}")))
        }))
    }
}

/// A page of memory, or records of another session of the scope.
async fn read_memory(
    access: &MemoryAccess,
    session: SessionId,
    reference: Reference,
    cap: OutputLimit,
) -> Result<ToolOutcome> {
    let Some(places) = access.places(session).await? else { return Ok(ToolOutcome::error(NO_MEMORY)) };
    match reference {
        Reference::Page(name) => Ok(match page(&places.book, &name) {
            Some(page) => ToolOutcome::ok(page),
            None => ToolOutcome::error(unknown_page(&places.book, &name)),
        }),
        Reference::Records { key, from, to } => {
            let key = key.unwrap_or_default();
            let Some(session) = session_with_key(&places, &key) else {
                let key: String = key.chars().take(80).collect();
                return Ok(ToolOutcome::error(format!(
                    "there is no session {key:?} in this memory; recall finds what was said"
                )));
            };
            let range = match to {
                Some(to) => from..=to,
                None => from.saturating_sub(AROUND).max(1)..=from.saturating_add(AROUND),
            };
            Ok(read_records(&access.journal, session, Some(&key), range, cap).await?)
        }
    }
}

fn page(page_set: &PageSet, name: &str) -> Option<String> {
    let page = page_set.pages.get(name)?;
    let last = page.versions.last()?;
    let by = match last.by {
        ChangedBy::Consolidation => "from what was said",
        ChangedBy::Person => "by a person",
        ChangedBy::Note => "because a user asked for it",
        ChangedBy::Undo => "by taking a change back",
    };
    Some(format!("{}\n[changed {} {by}]", page.text.trim_end(), minute(last.at)))
}

fn session_with_key(places: &RecallScope, key: &str) -> Option<SessionId> {
    places.sessions.iter().find(|(_, known)| known == key).map(|(session, _)| *session)
}

fn unknown_page(page_set: &PageSet, name: &str) -> String {
    let name: String = name.chars().take(80).collect();
    let mut names: Vec<&str> = page_set.pages.keys().map(String::as_str).collect();
    if names.is_empty() {
        return format!(
            "there is no page {name:?}, and no other yet; a record is `#` and its number, and recall finds what was said"
        );
    }
    let likeness = |known: &&str| strsim::normalized_damerau_levenshtein(&name, known);
    names.sort_by(|one, other| likeness(other).total_cmp(&likeness(one)));
    names.truncate(MAX_SUGGESTIONS);
    format!("there is no page {name:?}; the nearest are {}", names.join(", "))
}
