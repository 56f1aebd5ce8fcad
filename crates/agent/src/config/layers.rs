//! Several files, a variable and a flag, one over the other: later wins, key by key.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toml::de::DeTable;
use toml::{Table, Value};

use super::bad;
use super::check::{Mistake, line_at, mistakes, refusal};
use super::settings::Settings;
use super::sources::{Origin, Origins};
use crate::{Error, Result};

/// What a project adds to, where everything else replaces.
const DENY: &str = "scope.deny";

/// Keys that say the same in two ways. Whoever sets the first and not the second takes back a second one that was set before.
const RIVALS: &[(&str, &str)] = &[
    ("context.compact_at", "context.compact_at_tokens"),
    ("context.compact_now_at", "context.compact_now_at_tokens"),
    ("context.compact_idle_at", "context.compact_idle_at_tokens"),
];

/// What one file says, by `section.key`. Everything in it is of the right kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer(pub(crate) BTreeMap<String, Entry>);

/// A value, and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

impl Layer {
    /// What a text says, or all that is wrong with it. `file` is its name in messages.
    pub(crate) fn from_toml(text: &str, file: &str) -> Result<Self> {
        let unreadable = |error: toml::de::Error| {
            let line = line_at(text, error.span().map_or(0, |span| span.start));
            let reason = format!("this is not TOML: {}", error.message().trim_end().replace('\n', ", "));
            refusal(file, vec![Mistake { line, reason }])
        };
        let spans = DeTable::parse(text).map_err(unreadable)?;
        let values: Table = text.parse().map_err(unreadable)?;
        let mistakes = mistakes(text, spans.get_ref());
        if !mistakes.is_empty() {
            return Err(refusal(file, mistakes));
        }
        let mut entries = BTreeMap::new();
        for (section, keys) in spans.get_ref() {
            for key in keys.get_ref().as_table().into_iter().flat_map(|keys| keys.keys()) {
                let (section, name): (&str, &str) = (section.get_ref(), key.get_ref());
                let Some(value) = values.get(section).and_then(|keys| keys.get(name)) else { continue };
                let origin = Origin::File { name: file.to_owned(), line: line_at(text, key.span().start) };
                entries.insert(format!("{section}.{name}"), Entry { value: value.clone(), origin });
            }
        }
        Ok(Self(entries))
    }

    /// What a variable or a flag says.
    pub(crate) fn of_model(name: &str, origin: Origin) -> Self {
        let entry = Entry { value: Value::String(name.to_owned()), origin };
        Self(BTreeMap::from([("model.name".to_owned(), entry)]))
    }

    /// What a file says of `instructions_file` is meant from its own folder on.
    pub(crate) fn with_instructions_from(mut self, folder: &Path) -> Result<Self> {
        if let Some(entry) = self.0.get_mut("agent.instructions_file") {
            from_folder(&mut entry.value, folder, &entry.origin)?;
        }
        Ok(self)
    }

    /// What a project's file says of files is meant from its own folder on, wherever below it the work folder is.
    pub(crate) fn with_all_paths_from(self, folder: &Path) -> Result<Self> {
        let mut layer = self.with_instructions_from(folder)?;
        for key in ["scope.allow", DENY] {
            let Some(Entry { value: Value::Array(rules), origin }) = layer.0.get_mut(key) else { continue };
            let in_own_folder =
                |target: &Value| target.as_str().is_some_and(|text| text == "~" || text.starts_with("~/"));
            let targets = rules.iter_mut().filter_map(|rule| rule.get_mut("target"));
            for target in targets.filter(|target| !in_own_folder(target)) {
                from_folder(target, folder, origin)?;
            }
        }
        Ok(layer)
    }
}

fn from_folder(value: &mut Value, folder: &Path, origin: &Origin) -> Result<()> {
    let Some(text) = value.as_str() else { return Ok(()) };
    if text.is_empty() {
        return Ok(());
    }
    let path = folder.join(text);
    let path = path.to_str().ok_or_else(|| bad(&origin.to_string(), "the folder's name is not UTF-8"))?;
    *value = Value::String(path.to_owned());
    Ok(())
}

/// What all of them come to.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    values: Table,
    pub(crate) origins: Origins,
}

impl Layers {
    /// Puts a layer over what is there.
    pub(crate) fn put(&mut self, layer: Layer) {
        for (key, rival) in RIVALS {
            if layer.0.contains_key(*key) && !layer.0.contains_key(*rival) {
                self.take_back(rival);
            }
        }
        for (key, Entry { value, origin }) in layer.0 {
            let Some((section, name)) = key.split_once('.') else { continue };
            let keys = self.values.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(keys) = keys {
                keys.insert(name.to_owned(), value);
                self.origins.set(&key, origin);
            }
        }
    }

    /// Puts a project's layer over what is there. What was denied stays denied.
    pub(crate) fn put_project(&mut self, mut layer: Layer) {
        let denied = layer.0.remove(DENY);
        self.put(layer);
        let Some(Entry { value: Value::Array(more), origin }) = denied else { return };
        let scope = self.values.entry("scope").or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(scope) = scope else { return };
        if let Value::Array(all) = scope.entry("deny").or_insert_with(|| Value::Array(Vec::new())) {
            all.extend(more);
            self.origins.add(DENY, origin);
        }
    }

    fn take_back(&mut self, key: &str) {
        let Some((section, name)) = key.split_once('.') else { return };
        if let Some(keys) = self.values.get_mut(section).and_then(Value::as_table_mut) {
            keys.remove(name);
            self.origins.forget(key);
        }
    }

    /// The settings, with the defaults of whatever nobody set.
    pub(crate) fn settings(&self) -> Result<Settings> {
        // Each layer was checked by itself; what is still wrong is at least named.
        Settings::deserialize(self.values.clone()).map_err(|error: toml::de::Error| Error::Config {
            origin: "the config".to_owned(),
            reason: error.message().to_owned(),
        })
    }
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
