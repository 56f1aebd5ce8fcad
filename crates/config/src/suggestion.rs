//! The nearest known name to an unknown key or section.

use serde_json::Value;
use toml::de::DeValue;

use crate::validate::property_names;

/// A name of the same section is suggested if it is at least this similar (of 1).
const MIN_SIMILARITY: f64 = 0.5;
/// The same for a name of another section, which the user is less likely to mean.
const MIN_SIMILARITY_ELSEWHERE: f64 = 0.7;

/// The message that `key` is unknown, with the name that the user probably meant. `path` is the section, or empty
/// outside all sections. `known` are its keys.
pub(crate) fn describe_unknown_key(
    schema: &Value,
    path: &str,
    key: &str,
    value: &DeValue<'_>,
    known: &[&str],
) -> String {
    if path.is_empty() && (value.is_table() || value.is_array()) {
        let hint = match nearest_name(key, known.iter().copied(), MIN_SIMILARITY) {
            Some(section) => format!("did you mean [{section}]?"),
            None => format!("the sections are {}", known.join(", ")),
        };
        return format!("unknown section [{}]; {hint}", key.escape_debug());
    }
    let place = if path.is_empty() { "outside all sections".to_owned() } else { format!("in [{path}]") };
    format!("unknown key {key:?} {place}; {}", suggest_key(schema, path, key, known))
}

fn suggest_key(schema: &Value, path: &str, key: &str, known: &[&str]) -> String {
    let is_elsewhere = |section: &&str| keys_of(schema, section).any(|name| name == key);
    let right_sections: Vec<String> =
        sections(schema).filter(is_elsewhere).map(|section| format!("[{section}]")).collect();
    if !right_sections.is_empty() {
        return format!("`{key}` belongs in {}", right_sections.join(" or "));
    }
    // Outside all sections there are only sections.
    let here = if path.is_empty() { None } else { nearest_name(key, known.iter().copied(), MIN_SIMILARITY) };
    if let Some(name) = here {
        return format!("did you mean {name:?}?");
    }
    let everywhere =
        sections(schema).flat_map(|section| keys_of(schema, section).map(move |name| (section, name)));
    let elsewhere = nearest_name(key, everywhere.clone().map(|(_, name)| name), MIN_SIMILARITY_ELSEWHERE);
    match elsewhere.and_then(|found| everywhere.clone().find(|(_, name)| *name == found)) {
        Some((section, name)) => format!("did you mean {name:?} in [{section}]?"),
        None if path.is_empty() => format!("the sections are {}", known.join(", ")),
        None => format!("known are {}", known.join(", ")),
    }
}

fn sections(schema: &Value) -> impl Iterator<Item = &str> + Clone {
    property_names(&schema["properties"]).collect::<Vec<_>>().into_iter()
}

fn keys_of<'a>(schema: &'a Value, section: &str) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
    property_names(&schema["properties"][section]["properties"]).collect::<Vec<_>>().into_iter()
}

fn nearest_name<'a>(
    word: &str,
    known: impl Iterator<Item = &'a str>,
    min_similarity: f64,
) -> Option<&'a str> {
    let similarity = |name: &str| strsim::normalized_damerau_levenshtein(word, name);
    let best = known.map(|name| (similarity(name), name)).max_by(|one, other| one.0.total_cmp(&other.0))?;
    (best.0 > min_similarity).then_some(best.1)
}
