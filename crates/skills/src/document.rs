//! SKILL.md: its front matter, and the text for the model.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::SkillError;

const MAX_NAME_CHARS: usize = 64;
const MAX_DESCRIPTION_CHARS: usize = 1_024;
const MAX_COMPATIBILITY_CHARS: usize = 500;
const FENCE: &str = "---";
/// Characters of a YAML error to quote.
const MAX_QUOTED_CHARS: usize = 200;

/// A SKILL.md that can be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillDocument {
    /// The name, which is also that of its folder.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    pub license: Option<String>,
    /// What it needs of the system, in its own words.
    pub compatibility: Option<String>,
    /// The tools that it says it needs. They are only shown: naming a tool allows nothing.
    pub allowed_tools: Vec<String>,
    pub metadata: BTreeMap<String, String>,
    /// The text after the front matter.
    pub body: String,
    /// Mistakes that other programs would refuse and that Longhaul accepts.
    pub warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct FrontMatter {
    name: Option<Value>,
    description: Option<Value>,
    license: Option<Value>,
    compatibility: Option<Value>,
    #[serde(rename = "allowed-tools")]
    allowed_tools: Option<Value>,
    metadata: Option<Value>,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

/// Parses a SKILL.md that lies in a folder of this name. The error has everything that is wrong with it.
pub fn parse_document(text: &str, folder_name: &str) -> Result<SkillDocument, SkillError> {
    let (yaml, body) = split_front_matter(text)?;
    let (front_matter, mut warnings) = parse_yaml::<FrontMatter>(yaml)?;
    let mut reasons = Vec::new();
    let name = front_matter.name.as_ref().and_then(scalar_text).unwrap_or_default().trim().to_owned();
    match &front_matter.name {
        None => reasons.push("the front matter has no name".to_owned()),
        Some(_) => reasons.extend(name_errors(&name, folder_name)),
    }
    let description = front_matter.description.as_ref().and_then(scalar_text).unwrap_or_default();
    let description = description.trim().to_owned();
    match &front_matter.description {
        None => reasons.push("the front matter has no description".to_owned()),
        Some(_) if description.is_empty() => {
            reasons.push("its description is empty or not a text".to_owned());
        }
        Some(_) => reasons.extend(too_long("description", &description, MAX_DESCRIPTION_CHARS)),
    }
    let compatibility = front_matter.compatibility.as_ref().map(|value| scalar_text(value).ok_or(()));
    let compatibility = match compatibility {
        None => None,
        Some(Ok(text)) => {
            reasons.extend(too_long("compatibility", &text, MAX_COMPATIBILITY_CHARS));
            Some(text)
        }
        Some(Err(())) => {
            reasons.push("its compatibility is not a text".to_owned());
            None
        }
    };
    if !reasons.is_empty() {
        return Err(SkillError::Invalid { reasons });
    }
    let unknown = front_matter.unknown.keys().map(|key| format!("the field {key:?} is unknown and ignored"));
    warnings.extend(unknown);
    Ok(SkillDocument {
        name,
        description,
        license: front_matter.license.as_ref().and_then(scalar_text),
        compatibility,
        allowed_tools: front_matter.allowed_tools.map(tool_names).unwrap_or_default(),
        metadata: front_matter.metadata.map(metadata_texts).unwrap_or_default(),
        body: body.trim().to_owned(),
        warnings,
    })
}

/// The YAML between the fences, and the text after them.
pub(crate) fn split_front_matter(text: &str) -> Result<(&str, &str), SkillError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let missing = || SkillError::invalid("it does not begin with a front matter (a line ---)");
    let (first, rest) = text.split_once('\n').ok_or_else(missing)?;
    if first.trim_end() != FENCE {
        return Err(missing());
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == FENCE {
            return Ok((&rest[..end], &rest[end + line.len()..]));
        }
        end += line.len();
    }
    Err(SkillError::invalid("its front matter has no end (a second line ---)"))
}

/// Parses the front matter. Many skills have a colon in a value without quotes, which is not YAML. Such values are
/// quoted and parsed again, with a warning.
pub(crate) fn parse_yaml<T: DeserializeOwned>(yaml: &str) -> Result<(T, Vec<String>), SkillError> {
    let error = match serde_saphyr::from_str::<T>(yaml) {
        Ok(front_matter) => return Ok((front_matter, vec![])),
        Err(error) => error,
    };
    let (quoted, keys) = quote_values(yaml);
    if !keys.is_empty()
        && let Ok(front_matter) = serde_saphyr::from_str::<T>(&quoted)
    {
        let warning = |key| format!("the value of {key} needs quotes, because it has a colon or a # in it");
        return Ok((front_matter, keys.into_iter().map(warning).collect()));
    }
    let message = error.without_snippet().to_string();
    let message: String = message.lines().next().unwrap_or_default().chars().take(MAX_QUOTED_CHARS).collect();
    Err(SkillError::invalid(format!("its front matter is not valid YAML: {message}")))
}

/// The YAML with quotes around the plain values of top-level keys that have a colon or a `#` in them, and those keys.
fn quote_values(yaml: &str) -> (String, Vec<String>) {
    let mut keys = Vec::new();
    let line = |line: &str| {
        let plain =
            line.split_once(':').filter(|(key, _)| is_plain_key(key)).map(|(key, value)| (key, value.trim()));
        match plain {
            Some((key, value)) if is_plain_value(value) && value.contains([':', '#']) => {
                keys.push(key.to_owned());
                // A JSON string is a YAML string in double quotes.
                format!("{key}: {}\n", Value::from(value))
            }
            _ => format!("{line}\n"),
        }
    };
    let quoted = yaml.lines().map(line).collect();
    (quoted, keys)
}

fn is_plain_key(key: &str) -> bool {
    !key.is_empty()
        && key.chars().all(|character| character.is_ascii_alphanumeric() || "-_".contains(character))
}

fn is_plain_value(value: &str) -> bool {
    !value.is_empty() && !value.starts_with(['"', '\'', '|', '>', '[', '{', '&', '*', '!'])
}

/// Everything that is wrong with a name.
fn name_errors(name: &str, folder_name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["its name is empty or not a text".to_owned()];
    }
    let mut errors: Vec<String> = too_long("name", name, MAX_NAME_CHARS).into_iter().collect();
    let is_allowed = |character: char| character.is_alphanumeric() || character == '-';
    if name != name.to_lowercase() || !name.chars().all(is_allowed) {
        errors.push(format!("its name {name:?} may have only lower-case letters, digits and hyphens"));
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        errors.push(format!("its name {name:?} has a hyphen at an end, or two in a row"));
    }
    if name != folder_name {
        errors.push(format!(
            "its name is {name:?}, but its folder is called {folder_name:?}; they must be the same"
        ));
    }
    errors
}

pub(crate) fn too_long(field: &str, text: &str, max_chars: usize) -> Option<String> {
    let chars = text.chars().count();
    (chars > max_chars).then(|| format!("its {field} has {chars} characters; {max_chars} are allowed"))
}

/// The text of a scalar: `1.0` and `true` are texts here.
pub(crate) fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_true) => Some(is_true.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The names in a list, or in a text that separates them by commas or spaces. A name may have arguments in brackets:
/// `Bash(git log:*)`.
pub(crate) fn tool_names(value: Value) -> Vec<String> {
    let text = match value {
        Value::Array(values) => return values.iter().filter_map(scalar_text).collect(),
        value => scalar_text(&value).unwrap_or_default(),
    };
    let mut depth = 0_usize;
    let separates = |character: char| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (character == ',' || character.is_whitespace())
    };
    text.split(separates).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn metadata_texts(value: Value) -> BTreeMap<String, String> {
    let Value::Object(fields) = value else { return BTreeMap::new() };
    let text = |value: &Value| scalar_text(value).unwrap_or_else(|| value.to_string());
    fields.iter().map(|(key, value)| (key.clone(), text(value))).collect()
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
