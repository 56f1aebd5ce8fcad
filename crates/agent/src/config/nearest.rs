//! What to say about a key that nobody knows: the one that was probably meant.

use serde_json::Value;
use toml::de::DeValue;

use super::check::names;
use super::schema::config_schema;

/// How like two words must be, of 1, to be taken for each other in the same section.
const LIKE: f64 = 0.5;
/// The same for a word of another section, which is less likely to be meant.
const LIKE_ELSEWHERE: f64 = 0.7;

/// What is wrong with a key that is not among those that are known at a place (`path`; empty outside all sections).
pub(crate) fn unknown(path: &str, key: &str, value: &DeValue<'_>, known: &[&str]) -> String {
    if path.is_empty() && (value.is_table() || value.is_array()) {
        let hint = match nearest(key, known.iter().copied(), LIKE) {
            Some(section) => format!("did you mean [{section}]?"),
            None => format!("the sections are {}", known.join(", ")),
        };
        return format!("unknown section [{}]; {hint}", shown(key));
    }
    let place = if path.is_empty() { "outside all sections".to_owned() } else { format!("in [{path}]") };
    format!("unknown key {key:?} {place}; {}", hint(path, key, known))
}

fn hint(path: &str, key: &str, known: &[&str]) -> String {
    let is_elsewhere = |section: &&str| keys_of(section).any(|name| name == key);
    let homes: Vec<String> = sections().filter(is_elsewhere).map(|section| format!("[{section}]")).collect();
    if !homes.is_empty() {
        return format!("`{key}` belongs in {}", homes.join(" or "));
    }
    // Outside all sections there are only sections.
    let here = if path.is_empty() { None } else { nearest(key, known.iter().copied(), LIKE) };
    if let Some(name) = here {
        return format!("did you mean {name:?}?");
    }
    let everywhere = sections().flat_map(|section| keys_of(section).map(move |name| (section, name)));
    let elsewhere = nearest(key, everywhere.clone().map(|(_, name)| name), LIKE_ELSEWHERE);
    match elsewhere.and_then(|found| everywhere.clone().find(|(_, name)| *name == found)) {
        Some((section, name)) => format!("did you mean {name:?} in [{section}]?"),
        None if path.is_empty() => format!("the sections are {}", known.join(", ")),
        None => format!("known are {}", known.join(", ")),
    }
}

fn sections() -> impl Iterator<Item = &'static str> + Clone {
    let names: Vec<&str> = names(&config_schema()["properties"]).collect();
    names.into_iter()
}

fn keys_of(section: &str) -> impl Iterator<Item = &'static str> + Clone + use<> {
    let properties: &'static Value = &config_schema()["properties"][section]["properties"];
    names(properties).collect::<Vec<_>>().into_iter()
}

fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>, like: f64) -> Option<&'a str> {
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(word, name);
    let best = known.map(|name| (likeness(name), name)).max_by(|one, other| one.0.total_cmp(&other.0))?;
    (best.0 > like).then_some(best.1)
}

/// A word from a file, safe to show in a terminal.
fn shown(word: &str) -> String {
    word.escape_debug().to_string()
}
