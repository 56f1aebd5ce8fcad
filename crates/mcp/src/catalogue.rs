//! The tools of a server, under the names by which a model calls them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use longhaul_protocol::{Effect, ToolSchema};
use longhaul_redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::connection::MAX_LISTED_TOOLS;
use crate::listing::Listing;
use crate::output_filter::MAX_MESSAGE_BYTES;

/// The longest name that every provider takes.
const MAX_NAME_BYTES: usize = 64;
/// The longest name of a server's own.
const MAX_REMOTE_NAME_BYTES: usize = 1_024;
/// Bytes of such a name to show.
const MAX_SHOWN_NAME_BYTES: usize = 100;
/// Bytes of a description to send. Longer ones are cut.
const MAX_DESCRIPTION_BYTES: usize = 4_000;
/// The largest schema of one tool, as JSON.
const MAX_SCHEMA_BYTES: usize = 64 << 10;
/// Hex digits that make two names different.
const SUFFIX_DIGITS: usize = 6;

/// The tools of one server, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Catalogue {
    pub(crate) tools: Vec<CatalogueTool>,
    /// Tools that can't be offered, and why; names that were changed.
    #[serde(default)]
    pub(crate) warnings: Vec<String>,
    /// The server ends at the first message of the stateless protocol.
    #[serde(default)]
    pub(crate) needs_handshake: bool,
}

/// One tool of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CatalogueTool {
    /// `server__tool`.
    pub(crate) name: String,
    /// The server's own name for it.
    pub(crate) remote_name: String,
    pub(crate) description: String,
    pub(crate) schema: Value,
    pub(crate) effect: Effect,
}

impl CatalogueTool {
    pub(crate) fn to_schema(&self) -> ToolSchema {
        let (name, description) = (self.name.clone(), self.description.clone());
        ToolSchema { name, description, parameters: self.schema.clone() }
    }
}

impl Catalogue {
    /// The catalogue of what a server listed, which may not be all.
    pub(crate) fn of_listing(server: &str, wanted: &[String], listing: Listing<rmcp::model::Tool>) -> Self {
        let is_cut = listing.is_cut;
        let mut catalogue = Self::new(server, wanted, listing.entries);
        if is_cut {
            let limit = MAX_MESSAGE_BYTES >> 20;
            catalogue.warnings.push(format!("its tools have more than {limit} MiB; the rest is left out"));
        }
        catalogue
    }

    /// The catalogue of what a server lists. `wanted` are the tools to offer; all, if empty.
    pub(crate) fn new(server: &str, wanted: &[String], listed: Vec<rmcp::model::Tool>) -> Self {
        let mut listed: Vec<_> = listed
            .into_iter()
            .filter(|tool| wanted.is_empty() || wanted.iter().any(|name| *name == tool.name))
            .collect();
        let mut catalogue = Self::default();
        if listed.len() > MAX_LISTED_TOOLS {
            listed.truncate(MAX_LISTED_TOOLS);
            catalogue
                .warnings
                .push(format!("it lists more than {MAX_LISTED_TOOLS} tools; the rest is left out"));
        }
        // A stable sort, so that the first of two tools with one name stays the first.
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        for missing in wanted.iter().filter(|name| !listed.iter().any(|tool| tool.name == **name)) {
            catalogue.warnings.push(format!("it has no tool {missing:?}, which `tools` names"));
        }
        let names = ToolNames::new(server, listed.iter().map(|tool| tool.name.as_ref()));
        let (mut previous, mut used) = (None, BTreeSet::new());
        for tool in listed {
            let shown = shown_name(&tool.name);
            if tool.name.len() > MAX_REMOTE_NAME_BYTES {
                catalogue.warnings.push(format!(
                    "the name of its tool `{shown}` is over {MAX_REMOTE_NAME_BYTES} bytes; it is left out"
                ));
                continue;
            }
            if previous.replace(tool.name.clone()).is_some_and(|previous| previous == tool.name) {
                catalogue.warnings.push(format!("it has two tools named `{shown}`; the second is left out"));
                continue;
            }
            let schema = clean_schema((*tool.input_schema).clone());
            if schema.to_string().len() > MAX_SCHEMA_BYTES {
                let limit = MAX_SCHEMA_BYTES >> 10;
                catalogue
                    .warnings
                    .push(format!("the schema of its tool `{shown}` is over {limit} KiB; it is left out"));
                continue;
            }
            let name = names.name_of(&tool.name).filter(|name| used.insert(name.clone()));
            let Some(name) = name else {
                catalogue.warnings.push(format!(
                    "its tool `{shown}` is left out: another one has the name by which models would call it"
                ));
                continue;
            };
            if name != format!("{server}__{}", tool.name) {
                catalogue.warnings.push(format!(
                    "its tool `{shown}` is offered as `{name}`, because models can't call it by its own name"
                ));
            }
            catalogue.tools.push(CatalogueTool {
                name,
                description: description_of(&tool),
                effect: effect_of(&tool),
                schema,
                remote_name: tool.name.into_owned(),
            });
        }
        catalogue.tools.sort_by(|one, other| one.name.cmp(&other.name));
        catalogue
    }

    /// Removes secrets from what the server says about its tools: it goes into each request, and into the record of an epoch (J8).
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        for tool in &mut self.tools {
            tool.description = redactor.redact(&tool.description).into_owned();
            let schema = tool.schema.to_string();
            if let Cow::Owned(redacted) = redactor.redact_json(&schema) {
                // What can't be shown without a secret is not shown.
                tool.schema = serde_json::from_str(&redacted).unwrap_or_else(|_| clean_schema(Map::new()));
            }
        }
        for warning in &mut self.warnings {
            *warning = redactor.redact(warning).into_owned();
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&CatalogueTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// A server's own name for a tool, for people.
fn shown_name(name: &str) -> String {
    let end = name.floor_char_boundary(MAX_SHOWN_NAME_BYTES);
    let cut = if end < name.len() { "…" } else { "" };
    format!("{}{cut}", longhaul_protocol::printable(&name.as_bytes()[..end]))
}

/// The effect that a tool's annotations promise. A tool that promises nothing may do anything.
fn effect_of(tool: &rmcp::model::Tool) -> Effect {
    let hints = tool.annotations.as_ref();
    match hints.map(|hints| (hints.read_only_hint, hints.idempotent_hint)) {
        Some((Some(true), _)) => Effect::Read,
        Some((_, Some(true))) => Effect::Idempotent,
        _ => Effect::Unknown,
    }
}

fn description_of(tool: &rmcp::model::Tool) -> String {
    let title = tool.title.as_deref().or(tool.annotations.as_ref().and_then(|hints| hints.title.as_deref()));
    let text =
        tool.description.as_deref().filter(|text| !text.trim().is_empty()).or(title).unwrap_or_default();
    let end = text.floor_char_boundary(MAX_DESCRIPTION_BYTES);
    match end < text.len() {
        true => format!("{}…", &text[..end]),
        false => text.to_owned(),
    }
}

/// An object schema without what some providers refuse.
fn clean_schema(mut schema: Map<String, Value>) -> Value {
    schema.remove("$schema");
    schema.insert("type".to_owned(), "object".into());
    schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    Value::Object(schema)
}

/// The names by which models call the tools of a server: `server__tool` in the characters that every provider takes.
///
/// Two tools never swap their names, because a model calls a name for as long as an epoch lasts. So a tool that can be called by its own name
/// always is, and one that can't shares no name with another: a hash keeps them apart.
struct ToolNames<'a> {
    server: &'a str,
    /// Names that more than one tool could have, or that one has as its own.
    taken: BTreeSet<String>,
}

impl<'a> ToolNames<'a> {
    fn new<'b>(server: &'a str, tools: impl Iterator<Item = &'b str> + Clone) -> Self {
        let mut taken: BTreeSet<String> = tools
            .clone()
            .filter(|tool| is_callable(server, tool))
            .map(|tool| format!("{server}__{tool}"))
            .collect();
        let mut seen = BTreeSet::new();
        for tool in tools.filter(|tool| !is_callable(server, tool)).collect::<BTreeSet<_>>() {
            let name = replaced_name(server, tool);
            if !seen.insert(name.clone()) {
                taken.insert(name);
            }
        }
        Self { server, taken }
    }

    /// `None` if another tool has the name: providers refuse each request with two tools of one name.
    fn name_of(&self, tool: &str) -> Option<String> {
        let name = replaced_name(self.server, tool);
        let fits = !tool.is_empty() && name.len() <= MAX_NAME_BYTES && !self.taken.contains(&name);
        if fits || is_callable(self.server, tool) {
            return Some(name);
        }
        let hash = blake3::hash(tool.as_bytes()).to_hex();
        let end = name.len().min(MAX_NAME_BYTES - SUFFIX_DIGITS - 1);
        let name = format!("{}_{}", &name[..end], &hash[..SUFFIX_DIGITS]);
        (!self.taken.contains(&name)).then_some(name)
    }
}

fn is_callable(server: &str, tool: &str) -> bool {
    let length = server.len() + "__".len() + tool.len();
    !tool.is_empty() && length <= MAX_NAME_BYTES && tool.chars().all(is_name_character)
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_')
}

/// The name with `_` for each character that a name can't have.
fn replaced_name(server: &str, tool: &str) -> String {
    let plain: String =
        tool.chars().map(|character| if is_name_character(character) { character } else { '_' }).collect();
    format!("{server}__{plain}")
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
