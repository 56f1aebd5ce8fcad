//! What config files may contain: the schema of the settings type, and the checks that a schema can't express.

use std::marker::PhantomData;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The format of the config files that become `S`. Its sections are the fields of `S`, and its keys are the fields of
/// those.
#[derive(Debug)]
pub struct ConfigFormat<S> {
    schema: Value,
    pub(crate) check_text: TextCheck,
    pub(crate) alternatives: &'static [(&'static str, &'static str)],
    settings: PhantomData<fn() -> S>,
}

/// What is wrong with a text value, given the path of its key: `should be …`.
pub(crate) type TextCheck = fn(path: &str, text: &str) -> Option<String>;

impl<S: JsonSchema> ConfigFormat<S> {
    /// The doc comments of the settings become the descriptions of the schema.
    pub fn new(title: &str) -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let mut schema = settings.into_generator().into_root_schema_for::<S>().to_value();
        adapt_to_toml(&mut schema);
        schema["title"] = title.into();
        Self { schema, check_text: |_, _| None, alternatives: &[], settings: PhantomData }
    }

    /// Adds a check of text values. Its messages should not repeat the text, because it may be a misplaced secret.
    #[must_use]
    pub fn with_text_check(self, check_text: TextCheck) -> Self {
        Self { check_text, ..self }
    }

    /// Pairs of keys that set the same thing in two ways. A layer that sets only the first key resets the second.
    #[must_use]
    pub fn with_alternatives(self, alternatives: &'static [(&'static str, &'static str)]) -> Self {
        Self { alternatives, ..self }
    }
}

impl<S> ConfigFormat<S> {
    /// The JSON Schema of the file.
    pub fn schema(&self) -> &Value {
        &self.schema
    }
}

/// The words that a value may be. `None` if any text is allowed.
pub fn choices(schema: &Value) -> Option<Vec<&str>> {
    if let Some(words) = schema["enum"].as_array() {
        return Some(words.iter().filter_map(Value::as_str).collect());
    }
    let choices = schema["oneOf"].as_array()?;
    Some(choices.iter().filter_map(|choice| choice["const"].as_str()).collect())
}

/// Removes "or null", which TOML does not have: a key that is not set is left out.
fn adapt_to_toml(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            object.insert("type".to_owned(), kind);
        }
    }
    // A section needs no default, because its keys have theirs.
    if object.get("default").is_some_and(|default| default.is_null() || default.is_object()) {
        object.remove("default");
    }
    if let Some(Value::String(description)) = object.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    if let Some(Value::Object(fields)) = object.get_mut("properties") {
        fields.values_mut().for_each(adapt_to_toml);
    }
    object.get_mut("items").map(adapt_to_toml);
    object.get_mut("additionalProperties").map(adapt_to_toml);
}
