//! Layers of config, one on top of the other. The upper one wins, key by key.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use crate::ConfigError;
use crate::format::ConfigFormat;
use crate::origin::{Origin, Origins};
use crate::validate::{ConfigMistake, find_mistakes, line_at, mistakes_error};

/// The entries of one file, by `section.key`. Every value has its type. A section that is a list of tables is one entry, by `section`.
#[derive(Debug, Clone, Default)]
pub struct Layer(pub BTreeMap<String, LayerEntry>);

#[derive(Debug, Clone)]
pub struct LayerEntry {
    pub value: Value,
    pub origin: Origin,
}

impl Layer {
    /// A layer with one text value, for a variable or a flag.
    pub fn from_text_value(key: &str, value: &str, origin: Origin) -> Self {
        let entry = LayerEntry { value: Value::String(value.to_owned()), origin };
        Self(BTreeMap::from([(key.to_owned(), entry)]))
    }
}

impl<S> ConfigFormat<S> {
    /// Parses and checks the text of a file. `file` is its name in messages.
    pub fn parse(&self, text: &str, file: &str) -> Result<Layer, ConfigError> {
        let invalid = |error: toml::de::Error| {
            let line = line_at(text, error.span().map_or(0, |span| span.start));
            let reason = format!("this is not TOML: {}", error.message().trim_end().replace('\n', ", "));
            mistakes_error(file, vec![ConfigMistake { line, reason }])
        };
        let spans = DeTable::parse(text).map_err(invalid)?;
        let values: Table = text.parse().map_err(invalid)?;
        let mistakes = find_mistakes(text, spans.get_ref(), self);
        if !mistakes.is_empty() {
            return Err(mistakes_error(file, mistakes));
        }
        let mut entries = BTreeMap::new();
        for (section, keys) in spans.get_ref() {
            if let (DeValue::Array(_), Some(value)) = (keys.get_ref(), values.get(&**section.get_ref())) {
                let line = line_at(text, section.span().start);
                let origin = Origin::File { name: file.to_owned(), line };
                entries.insert(section.get_ref().to_string(), LayerEntry { value: value.clone(), origin });
            }
            for key in keys.get_ref().as_table().into_iter().flat_map(|keys| keys.keys()) {
                let (section, name): (&str, &str) = (section.get_ref(), key.get_ref());
                let Some(value) = values.get(section).and_then(|keys| keys.get(name)) else { continue };
                let origin = Origin::File { name: file.to_owned(), line: line_at(text, key.span().start) };
                entries.insert(format!("{section}.{name}"), LayerEntry { value: value.clone(), origin });
            }
        }
        Ok(Layer(entries))
    }
}

/// The merged layers of one config.
#[derive(Debug)]
pub struct Layers<'a, S> {
    format: &'a ConfigFormat<S>,
    values: Table,
    pub origins: Origins,
}

impl<'a, S: DeserializeOwned> Layers<'a, S> {
    pub fn new(format: &'a ConfigFormat<S>) -> Self {
        Self { format, values: Table::new(), origins: Origins::default() }
    }

    /// Adds a layer on top. Its values replace those below.
    pub fn put(&mut self, layer: Layer) {
        for (key, alternative) in self.format.alternatives {
            if layer.0.contains_key(*key) && !layer.0.contains_key(*alternative) {
                self.reset(alternative);
            }
        }
        for (key, LayerEntry { value, origin }) in layer.0 {
            let Some((keys, name)) = self.section_of(&key) else { continue };
            match (keys.get_mut(name), value) {
                // A map of names: each name is set for itself.
                (Some(Value::Table(below)), Value::Table(above)) => below.extend(above),
                (_, value) => drop(keys.insert(name.to_owned(), value)),
            }
            self.origins.set(&key, origin);
        }
    }

    /// Adds a layer on top. Its list under `appended_key` is appended to the one below instead of replacing it.
    pub fn put_appending(&mut self, mut layer: Layer, appended_key: &str) {
        let appended = layer.0.remove(appended_key);
        self.put(layer);
        let Some(LayerEntry { value: Value::Array(more), origin }) = appended else { return };
        let Some((keys, name)) = self.section_of(appended_key) else { return };
        if let Value::Array(list) = keys.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
            list.extend(more);
            self.origins.add(appended_key, origin);
        }
    }

    /// The settings, with the defaults of all keys that no layer sets.
    pub fn settings(&self) -> Result<S, ConfigError> {
        // Each layer was already checked alone, so an error here is rare. It can't name a line.
        S::deserialize(self.values.clone())
            .map_err(|error: toml::de::Error| ConfigError::new("the config", error.message()))
    }

    /// The table of a key's section, and the key's name in it.
    fn section_of<'k>(&mut self, key: &'k str) -> Option<(&mut Table, &'k str)> {
        let Some((section, name)) = key.split_once('.') else { return Some((&mut self.values, key)) };
        let keys = self.values.entry(section).or_insert_with(|| Value::Table(Table::new()));
        Some((keys.as_table_mut()?, name))
    }

    fn reset(&mut self, key: &str) {
        if let Some((keys, name)) = self.section_of(key) {
            keys.remove(name);
            self.origins.remove(key);
        }
    }
}
