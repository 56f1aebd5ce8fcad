//! `longhaul config`, and the one way by which every command comes to its config.

use std::path::PathBuf;

use longhaul_agent::{Config, ConfigFile, Patience, config_schema};
use longhaul_journal::Journal as _;
use longhaul_model::Models;
use longhaul_protocol::PrintablePath;
use serde_json::json;

use crate::arguments::{Choice, ConfigCommand, Place};
use crate::output::{json, line, note};
use crate::questions::{confirm, somebody_is_there};
use crate::sessions::finding::key_or_new;
use crate::{BadUsage, exit, first_run};

/// A server is named, and none of its models.
pub(crate) const NO_NAME: &str =
    "model.base_url is set, but no model: name one with --model, LONGHAUL_MODEL or model.name";

/// The config as files, environment and flags say. What a person should know about it is said.
pub(crate) fn load(place: &Place, choice: &Choice) -> anyhow::Result<Config> {
    let (home, sources) = (place.folder()?, choice.sources()?);
    if choice.verbose > 0 {
        for file in Config::files(&home, &sources)?.iter().filter(|file| file.is_used()) {
            note(format!("config from {}", file.path.printable()));
        }
    }
    let config = Config::load(home, &sources)?;
    config.warnings.iter().for_each(note);
    Ok(config)
}

/// Asks the user at the terminal before a session works in their home folder. False if the answer is no.
pub(crate) async fn agree_to_exposed_home(
    place: &Place,
    session: Option<&str>,
    mut config: Config,
) -> anyhow::Result<bool> {
    if !somebody_is_there() {
        return Ok(true);
    }
    // A session that is not there yet will work in the folder of the config.
    if let Some(name) = session
        && let Some(journal) = place.journal().await?
        && let Some(entry) = journal.session(&key_or_new(&journal, name).await?).await?
        && let Some(created) = longhaul_agent::load(&journal, &entry.key, entry.id).await?.created
        && let Some(folder) = created.work_dir
    {
        config.work_dir = PathBuf::from(folder);
    }
    let Some(warning) = config.exposed_home() else { return Ok(true) };
    note(warning);
    Ok(confirm("Continue here?")?)
}

/// The config of something that runs turns, with a model: where none is named, one is looked for, and the choice is said.
pub(crate) async fn with_model(place: &Place, choice: &Choice, patience: Patience) -> anyhow::Result<Config> {
    let mut config = Config { patience, ..load(place, choice)? };
    if let Some(announcement) = config.announcement() {
        note(announcement);
    }
    let model = &mut config.settings.model;
    if model.name.is_empty() {
        if model.base_url.is_some() {
            return Err(BadUsage(NO_NAME.to_owned()).into());
        }
        let found = match Models::at(&config.home)?.find().await {
            Err(longhaul_model::Error::NoModel { variables }) => {
                return Err(BadUsage(first_run::guidance(&variables, &own_file(place, choice)?)).into());
            }
            found => found?,
        };
        note(format!("using {}, because {}", found.name, found.reason));
        model.name = found.name;
    }
    Ok(config)
}

/// The file that is a person's own, whether it is there or not.
fn own_file(place: &Place, choice: &Choice) -> anyhow::Result<PathBuf> {
    let home = place.folder()?;
    let files = Config::files(&home, &choice.sources()?)?;
    let own = files.into_iter().find(|file| !file.of_project).map(|file| file.path);
    Ok(own.unwrap_or_else(|| home.join("config.toml")))
}

pub(crate) fn run(
    place: &Place,
    choice: &Choice,
    command: Option<ConfigCommand>,
    as_json: bool,
) -> anyhow::Result<u8> {
    match command.unwrap_or(ConfigCommand::Show { json: as_json }) {
        ConfigCommand::Show { json } => show(place, choice, json)?,
        ConfigCommand::Path { json } => path(place, choice, json)?,
        ConfigCommand::Schema => line(serde_json::to_string_pretty(config_schema())?)?,
    }
    Ok(exit::DONE)
}

fn show(place: &Place, choice: &Choice, as_json: bool) -> anyhow::Result<()> {
    let keys = load(place, choice)?.keys();
    if as_json {
        let keys = keys.iter().map(|shown| {
            json!({"key": shown.key, "value": shown.value, "source": shown.source, "used": shown.used})
        });
        return json(&keys.collect::<Vec<_>>());
    }
    keys.iter().try_for_each(line)
}

fn path(place: &Place, choice: &Choice, as_json: bool) -> anyhow::Result<()> {
    let files = Config::files(&place.folder()?, &choice.sources()?)?;
    if as_json {
        let files = files.iter().map(|file| {
            let mut form = json!({"path": file.path, "exists": file.exists, "of_project": file.of_project});
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
            ConfigFile { of_project: false, .. } => "used".to_owned(),
            ConfigFile { of_project: true, .. } => "used, as far as a project's file may".to_owned(),
        };
        line(format!("{}  # {what}", file.path.printable()))?;
    }
    Ok(())
}
