//! `longhaul config`: shows the configuration and where it comes from.

use longhaul_agent::Config;
use longhaul_agent::config::{ConfigFile, config_schema};
use longhaul_protocol::PrintablePath;
use serde_json::json;

use crate::args::{ConfigCommand, GlobalArgs};
use crate::config::load;
use crate::exit;
use crate::output::{json, line};

pub(crate) fn run(globals: &GlobalArgs, command: Option<ConfigCommand>, as_json: bool) -> anyhow::Result<u8> {
    match command.unwrap_or(ConfigCommand::Show { json: as_json }) {
        ConfigCommand::Show { json } => show(globals, json)?,
        ConfigCommand::Path { json } => path(globals, json)?,
        ConfigCommand::Schema => line(serde_json::to_string_pretty(config_schema())?)?,
    }
    Ok(exit::DONE)
}

fn show(globals: &GlobalArgs, as_json: bool) -> anyhow::Result<()> {
    let keys = load(globals)?.keys();
    if as_json {
        let keys = keys.iter().map(|shown| {
            json!({"key": shown.key, "value": shown.value, "source": shown.source, "used": shown.used})
        });
        return json(&keys.collect::<Vec<_>>());
    }
    keys.iter().try_for_each(line)
}

fn path(globals: &GlobalArgs, as_json: bool) -> anyhow::Result<()> {
    let files = Config::files(&globals.home_dir()?, &globals.sources()?)?;
    if as_json {
        let files = files.iter().map(|file| {
            let mut form = json!({"path": file.path, "exists": file.exists, "of_project": file.is_project});
            if let Some(reason) = &file.skipped {
                form["skipped"] = json!(reason);
            }
            form
        });
        return json(&files.collect::<Vec<_>>());
    }
    for file in files {
        let what = match &file {
            ConfigFile { exists: false, .. } => "not there".to_owned(),
            ConfigFile { skipped: Some(reason), .. } => format!("skipped: {reason}"),
            ConfigFile { is_project: false, .. } => "used".to_owned(),
            ConfigFile { is_project: true, .. } => {
                "used, except for keys that need `longhaul trust`".to_owned()
            }
        };
        line(format!("{}  # {what}", file.path.printable()))?;
    }
    Ok(())
}
