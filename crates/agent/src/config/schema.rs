//! The schema of the settings: made from their types, published by `longhaul config schema`, and what the files are checked
//! against. So there is one list of keys.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::settings::Settings;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Settings>().to_value();
    as_toml_has_it(&mut schema);
    schema["title"] = "The configuration of Longhaul".into();
    schema
});

/// The JSON Schema of `config.toml`. The comments of the settings are its descriptions.
pub fn config_schema() -> &'static Value {
    &SCHEMA
}

/// The words that a value may be, if it may not be any text.
pub(crate) fn choices(schema: &Value) -> Option<Vec<&str>> {
    if let Some(words) = schema["enum"].as_array() {
        return Some(words.iter().filter_map(Value::as_str).collect());
    }
    let choices = schema["oneOf"].as_array()?;
    Some(choices.iter().filter_map(|choice| choice["const"].as_str()).collect())
}

/// Takes out "or null", which TOML doesn't have: a key that is not set is left out.
fn as_toml_has_it(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            object.insert("type".to_owned(), kind);
        }
    }
    // The default of a section is that of its keys.
    if object.get("default").is_some_and(|default| default.is_null() || default.is_object()) {
        object.remove("default");
    }
    if let Some(Value::String(description)) = object.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    for inner in ["properties", "items"].map(|name| object.get(name).cloned().map(|inner| (name, inner))) {
        let Some((name, mut inner)) = inner else { continue };
        match (&mut inner, name) {
            (Value::Object(fields), "properties") => fields.values_mut().for_each(as_toml_has_it),
            (items, _) => as_toml_has_it(items),
        }
        object.insert(name.to_owned(), inner);
    }
}
