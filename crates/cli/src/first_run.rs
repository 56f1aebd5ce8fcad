//! The message for a first run without a model: what was looked for, and how to get one.

use std::path::Path;

use longhaul_model::LOCAL_SERVER_PORTS;
use longhaul_protocol::PrintablePath;

const HELP_COLUMNS: usize = 80;
/// The column at which the second column starts.
const INDENT: usize = 12;

/// The error where no model is named, no key is set and no server answers. `found` is a key that does not choose a model, and the model that
/// it is good for.
pub(crate) fn guidance(variables: &str, found: Option<(&str, &str)>, config: &Path) -> String {
    let names: Vec<&str> = variables.split(", ").collect();
    let key = names.first().copied().unwrap_or("ANTHROPIC_API_KEY");
    let ports: Vec<String> =
        LOCAL_SERVER_PORTS.iter().map(|(name, port)| format!("{name} ({port})")).collect();
    let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
    let looked_for = [
        listed("a name", &["--model", "LONGHAUL_MODEL", "model.name in the config"]),
        listed("a key", &names),
        listed("a server", &ports),
    ];
    let found = found.map(|(variable, model)| {
        format!(
            "{variable} is set, but may be there for another purpose, so it is not used\n\
             unless you name its provider:\n  longhaul --model {model}\n\n"
        )
    });
    format!(
        "no model to talk to yet

Looked for:
{}

{}Three ways to get one:
  1. Set the API key of a provider (`longhaul models` lists them):
       export {key}=…
  2. Start a local server, or name one in{}:
       [model]
       name = \"qwen3\"
       base_url = \"http://127.0.0.1:8080/v1\"
  3. Or try longhaul without a model, key or network:
       longhaul demo

Run `longhaul doctor` to check your setup.",
        looked_for.join("\n"),
        found.unwrap_or_default(),
        indented(config),
    )
}

/// The path after a space, or on a line of its own if it is long.
fn indented(config: &Path) -> String {
    let path = config.printable().to_string();
    if path.chars().count() > 30 { format!("\n     {path}") } else { format!(" {path}") }
}

/// A name and its values, wrapped at [`HELP_COLUMNS`].
fn listed(name: &str, values: &[&str]) -> String {
    let mut text = format!("  {name:<width$}", width = INDENT - 2);
    let mut column = INDENT;
    for (index, value) in values.iter().enumerate() {
        let is_last = index + 1 == values.len();
        let needed = value.len() + usize::from(!is_last);
        if column + needed > HELP_COLUMNS && column > INDENT {
            text.truncate(text.trim_end().len());
            text.push_str(&format!("\n{:INDENT$}", ""));
            column = INDENT;
        }
        text.push_str(value);
        if !is_last {
            text.push_str(", ");
        }
        column += needed + 1;
    }
    text
}

#[cfg(test)]
#[path = "first_run_tests.rs"]
mod tests;
