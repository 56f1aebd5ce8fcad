//! The config of a command, from files, environment and flags.

use std::path::PathBuf;

use longhaul_agent::{Config, Patience};
use longhaul_journal::Journal as _;
use longhaul_model::Models;
use longhaul_protocol::PrintablePath;

use crate::args::GlobalArgs;
use crate::output::note;
use crate::questions::{confirm, has_terminal};
use crate::session_lookup::key_or_new;
use crate::{BadUsage, first_run};

/// A server is named, and none of its models.
pub(crate) const NO_NAME: &str =
    "model.base_url is set, but no model: name one with --model, LONGHAUL_MODEL or model.name";

/// The config as files, environment and flags say. What a person should know about it is said.
pub(crate) fn load(globals: &GlobalArgs) -> anyhow::Result<Config> {
    let (home, sources) = (globals.home_dir()?, globals.sources()?);
    if globals.verbose > 0 {
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
    globals: &GlobalArgs,
    session: Option<&str>,
    mut config: Config,
) -> anyhow::Result<bool> {
    if !has_terminal() {
        return Ok(true);
    }
    // A session that is not there yet will work in the folder of the config.
    if let Some(name) = session
        && let Some(journal) = globals.open_journal().await?
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
pub(crate) async fn with_model(globals: &GlobalArgs, patience: Patience) -> anyhow::Result<Config> {
    let mut config = Config { patience, ..load(globals)? };
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
                return Err(BadUsage(first_run::guidance(&variables, &own_file(globals)?)).into());
            }
            found => found?,
        };
        note(format!("using {}, because {}", found.name, found.reason));
        model.name = found.name;
    }
    Ok(config)
}

/// The file that is a person's own, whether it is there or not.
fn own_file(globals: &GlobalArgs) -> anyhow::Result<PathBuf> {
    let home = globals.home_dir()?;
    let files = Config::files(&home, &globals.sources()?)?;
    let own = files.into_iter().find(|file| !file.is_project).map(|file| file.path);
    Ok(own.unwrap_or_else(|| home.join("config.toml")))
}
