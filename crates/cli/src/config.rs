//! The config of a command, from files, environment and flags.

use std::path::{Path, PathBuf};

use longhaul_agent::model_list::NO_MODEL_NAME;
use longhaul_agent::{Config, RetryMode, instruction_files};
use longhaul_journal::Journal as _;
use longhaul_model::Models;
use longhaul_protocol::PrintablePath;

use crate::args::GlobalArgs;
use crate::output::note;
use crate::questions::{confirm, has_terminal};
use crate::session_lookup::key_or_new;
use crate::{bad_usage, first_run};

/// Loads the config from files, environment and flags, and prints its warnings.
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

/// The line that names the files whose instructions a session in this folder is told, if there are any.
pub(crate) fn instructions_line(config: &Config, work_dir: &Path) -> Option<String> {
    let files = instruction_files(config, work_dir);
    (!files.is_empty()).then(|| format!("instructions: {}", files.join(", ")))
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
    // An existing session has its own work folder; a new one gets that of the config.
    if let Some(name) = session
        && let Some(journal) = globals.open_journal().await?
        && let Some(entry) = journal.session(&key_or_new(&journal, name).await?).await?
        && let Some(created) = longhaul_agent::session::load(&journal, &entry.key, entry.id).await?.created
        && let Some(folder) = created.work_dir
    {
        config.work_dir = PathBuf::from(folder);
    }
    let Some(warning) = config.exposed_home() else { return Ok(true) };
    note(warning);
    Ok(confirm("Continue here?")?)
}

/// Loads the config of a command that runs turns. Where no model is named, finds one and says which.
pub(crate) async fn with_model(globals: &GlobalArgs, retry_mode: RetryMode) -> anyhow::Result<Config> {
    let mut config = Config { retry_mode, ..load(globals)? };
    if let Some(announcement) = config.announcement() {
        note(announcement);
    }
    let model = &mut config.settings.model;
    if model.name.is_empty() {
        if model.base_url.is_some() {
            return Err(bad_usage(NO_MODEL_NAME));
        }
        let found = match Models::at(&config.home)?.find().await {
            Err(longhaul_model::Error::NoModel { variables }) => {
                return Err(bad_usage(first_run::guidance(&variables, None, &user_file(globals)?)));
            }
            Err(longhaul_model::Error::SharedKey { variable, model, variables }) => {
                let found = Some((variable.as_str(), model.as_str()));
                return Err(bad_usage(first_run::guidance(&variables, found, &user_file(globals)?)));
            }
            found => found?,
        };
        note(format!("using {}, because {}", found.name, found.reason));
        model.name = found.name;
    }
    Ok(config)
}

/// The user's config file, whether it exists or not.
pub(crate) fn user_file(globals: &GlobalArgs) -> anyhow::Result<PathBuf> {
    let home = globals.home_dir()?;
    let files = Config::files(&home, &globals.sources()?)?;
    let own = files.into_iter().find(|file| !file.is_project).map(|file| file.path);
    Ok(own.unwrap_or_else(|| home.join("config.toml")))
}
