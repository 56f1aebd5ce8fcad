//! The JSON Schema of a tool's arguments, as every provider takes it: plain objects without references.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The JSON Schema of a type of arguments. The doc comments of its fields are the descriptions that the model reads.
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    simplify(&mut schema);
    // The tool's description says what the whole is about.
    if let Value::Object(schema) = &mut schema {
        schema.remove("description");
        schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

/// Removes what is useless to a model or refused by some provider: titles, number formats, "or null",
/// `additionalProperties`. The schema is sent with every request.
fn simplify(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    for noise in ["$schema", "title", "format", "default", "additionalProperties", "maxLength"] {
        schema.remove(noise);
    }
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            schema.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            for (key, value) in only {
                schema.entry(key).or_insert(value);
            }
        }
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        fields.values_mut().for_each(simplify);
    }
    if let Some(items) = schema.get_mut("items") {
        simplify(items);
    }
}
