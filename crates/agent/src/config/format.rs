//! The format of `config.toml` and `longhaul.toml`, and the checks that their schema can't express.

use std::path::Path;
use std::sync::LazyLock;

use longhaul_config::{
    ConfigFormat, Layer, LayerEntry, Layers, Origin, Origins, ResolvedSetting, hide_url_password,
    resolved_settings,
};
use longhaul_mcp::ServerSettings;
use serde_json::Value as Json;
use toml::Value;

use super::config_error;
use super::settings::{Settings, is_used};
use crate::Result;

/// A project's list is added to the user's.
const DENY: &str = "scope.deny";

/// Keys for a share of the window, each with the key for a number of tokens that replaces it.
const ALTERNATIVES: &[(&str, &str)] = &[
    ("context.compact_at", "context.compact_at_tokens"),
    ("context.compact_now_at", "context.compact_now_at_tokens"),
    ("context.compact_idle_at", "context.compact_idle_at_tokens"),
];

static FORMAT: LazyLock<ConfigFormat<Settings>> = LazyLock::new(|| {
    ConfigFormat::new("The configuration of Longhaul")
        .with_text_check(check_text)
        .with_alternatives(ALTERNATIVES)
});

/// The JSON Schema of `config.toml`. The doc comments of the settings are its descriptions.
pub fn config_schema() -> &'static Json {
    FORMAT.schema()
}

/// The defaults, without any layer.
pub(crate) fn default_layers() -> Layers<'static, Settings> {
    Layers::new(&FORMAT)
}

/// Parses and checks the text of a config file. `file` is its name in messages.
pub(crate) fn parse_layer(text: &str, file: &str) -> Result<Layer> {
    Ok(FORMAT.parse(text, file)?)
}

/// Adds a project's layer on top. Everything that the lower layers deny stays denied.
pub(crate) fn put_project_layer(layers: &mut Layers<'_, Settings>, layer: Layer) {
    layers.put_appending(layer, DENY);
}

/// Every key with its value and its source. Passwords in URLs are hidden, and the tokens in the headers of MCP servers.
pub(crate) fn list_settings(settings: &Settings, origins: &Origins) -> Vec<ResolvedSetting> {
    let hide = |setting: ResolvedSetting| {
        let value = match setting.key.as_str() {
            "mcp.servers" => hide_server_secrets(setting.value),
            key => hide_password(key, setting.value),
        };
        ResolvedSetting { value, ..setting }
    };
    resolved_settings(settings, origins, is_used).into_iter().map(hide).collect()
}

/// The value without the password that a URL may contain.
pub(crate) fn hide_password(key: &str, value: Json) -> Json {
    match (key, &value) {
        ("model.base_url" | "journal.url" | "web.proxy" | "web.search", Json::String(address)) => {
            hide_url_password(address).into()
        }
        _ => value,
    }
}

fn hide_server_secrets(mut servers: Json) -> Json {
    for server in servers.as_object_mut().into_iter().flat_map(|servers| servers.values_mut()) {
        if let Some(Json::String(address)) = server.get_mut("url") {
            *address = hide_url_password(address);
        }
        let headers = server.get_mut("headers").and_then(Json::as_object_mut);
        for (name, value) in headers.into_iter().flatten() {
            // A value that names a variable has no secret.
            let is_written = value.as_str().is_some_and(|value| !value.contains("${"));
            if is_written && ServerSettings::is_secret_header(name) {
                *value = "…".into();
            }
        }
    }
    servers
}

/// Resolves the paths of the files that a config file names against its own folder.
pub(crate) fn resolve_file_paths(mut layer: Layer, folder: &Path) -> Result<Layer> {
    for key in ["agent.instructions_file", "server.tls_cert", "server.tls_key"] {
        if let Some(entry) = layer.0.get_mut(key) {
            resolve_path(&mut entry.value, folder, &entry.origin)?;
        }
    }
    if let Some(LayerEntry { value: Value::Array(schedules), origin }) = layer.0.get_mut("schedule") {
        for path in schedules.iter_mut().filter_map(|schedule| schedule.get_mut("work_dir")) {
            resolve_path(path, folder, origin)?;
        }
    }
    if let Some(LayerEntry { value: Value::Array(paths), origin }) = layer.0.get_mut("skills.paths") {
        for path in paths.iter_mut().filter(|path| !is_in_user_home(path)) {
            resolve_path(path, folder, origin)?;
        }
    }
    Ok(layer)
}

/// Whether a path begins with the user's home folder, which is not known here.
fn is_in_user_home(path: &Value) -> bool {
    path.as_str().is_some_and(|text| text == "~" || text.starts_with("~/"))
}

/// Resolves all paths in a project's file against the folder of that file, even if the work folder is deeper.
pub(crate) fn resolve_project_paths(layer: Layer, folder: &Path) -> Result<Layer> {
    let mut layer = resolve_file_paths(layer, folder)?;
    for key in ["scope.allow", DENY] {
        let Some(LayerEntry { value: Value::Array(rules), origin }) = layer.0.get_mut(key) else { continue };
        let targets = rules.iter_mut().filter_map(|rule| rule.get_mut("target"));
        for target in targets.filter(|target| !is_in_user_home(target)) {
            resolve_path(target, folder, origin)?;
        }
    }
    Ok(layer)
}

fn resolve_path(value: &mut Value, folder: &Path, origin: &Origin) -> Result<()> {
    let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { return Ok(()) };
    let path = folder.join(text);
    let path = path
        .to_str()
        .ok_or_else(|| config_error(&origin.to_string(), "the folder's name is not valid UTF-8"))?;
    *value = Value::String(path.to_owned());
    Ok(())
}

/// Why a text is not a valid value of this key. The message never repeats the text, because it may be a misplaced
/// secret.
fn check_text(path: &str, text: &str) -> Option<String> {
    match path {
        "model.base_url" if !text.is_empty() && !is_web_address(text) => {
            Some("must be an address that starts with http:// or https://".to_owned())
        }
        "model.api_key_env" | "server.token_env" if !text.is_empty() && !is_variable_name(text) => {
            Some("must be the name of an environment variable, not its value".to_owned())
        }
        // A pattern that matches nothing would allow what the user wanted to deny.
        "scope.allow.target" | "scope.deny.target" if text.contains(['*', '?', '[']) => {
            Some(format!("must be a folder or a file; {text:?} is a pattern"))
        }
        "scope.allow.target" | "scope.deny.target" if text.is_empty() => {
            Some("must be a folder or a file, not empty".to_owned())
        }
        _ => None,
    }
}

fn is_web_address(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    rest.is_some_and(|rest| {
        !rest.is_empty() && !rest.starts_with(['/', ':', '?']) && !rest.contains(char::is_whitespace)
    })
}

fn is_variable_name(text: &str) -> bool {
    let in_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    text.chars().all(in_name) && !text.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
#[path = "display_tests.rs"]
mod display_tests;
#[cfg(test)]
#[path = "layers_tests.rs"]
mod layers_tests;
#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
