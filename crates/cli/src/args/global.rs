//! The flags of every command: the home, the config, the model, the work folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use longhaul_agent::JournalPlace;
use longhaul_agent::config::Sources;
use longhaul_journal::{Home, Journal};
use longhaul_protocol::{PermissionMode, PrintablePath};

use crate::bad_usage;

#[derive(Args, Clone)]
pub(crate) struct GlobalArgs {
    /// Folder for sessions, memory and config [default: $LONGHAUL_HOME or ~/.longhaul].
    #[arg(long, value_name = "DIR", global = true)]
    home: Option<PathBuf>,
    /// Config file to use instead of config.toml in the home.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Model to use, as provider/model [default: $LONGHAUL_MODEL or model.name].
    #[arg(long, value_name = "NAME", global = true)]
    model: Option<String>,
    /// What the agent may do without asking: ask, auto-edit, auto or plan [default: approval.mode].
    #[arg(long, value_name = "MODE", global = true)]
    pub(crate) permission: Option<PermissionMode>,
    /// Folder that new sessions work in [default: the current folder].
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) work_dir: Option<PathBuf>,
    /// Session, by its key or id [default: the one last used in this folder].
    #[arg(short, long, value_name = "KEY", global = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Print more; repeat for more still.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

impl GlobalArgs {
    /// `--home` with its absolute path, if the user gave it. A suggested command repeats it.
    pub(crate) fn home_flag(&self) -> Option<(&'static str, String)> {
        self.home.as_ref().map(|folder| ("--home", absolute(folder)))
    }

    /// The flags that a command about the same session has to repeat, with their values.
    pub(crate) fn flags(&self) -> Vec<(&'static str, String)> {
        let config = self.config.as_ref().map(|file| ("--config", absolute(file)));
        let model = self.model.clone().map(|model| ("--model", model));
        self.home_flag().into_iter().chain(config).chain(model).collect()
    }

    /// What the config is made from besides the home.
    pub(crate) fn sources(&self) -> anyhow::Result<Sources> {
        if let (None, Err(error)) = (&self.work_dir, std::env::current_dir()) {
            return Err(bad_usage(format!(
                "can't use the current folder: {error}; change to another, or name one with --work-dir"
            )));
        }
        Ok(Sources {
            work_dir: self.work_dir()?,
            config_file: self.config.clone(),
            model_variable: std::env::var("LONGHAUL_MODEL").ok(),
            model_flag: self.model.clone(),
        })
    }

    /// The canonical path of `--work-dir`, which must be a folder.
    pub(crate) fn work_dir(&self) -> anyhow::Result<Option<PathBuf>> {
        let Some(folder) = &self.work_dir else { return Ok(None) };
        match folder.canonicalize() {
            Ok(found) if found.to_str().is_none() => {
                Err(bad_usage(format!("can't work in {}: its name is not valid UTF-8", folder.printable())))
            }
            Ok(found) if found.is_dir() => Ok(Some(found)),
            Ok(_) => Err(bad_usage(format!("{} is not a folder", folder.printable()))),
            Err(error) => Err(bad_usage(format!("--work-dir {}: {error}", folder.printable()))),
        }
    }

    /// The folder whose sessions are meant: `--work-dir`, or the current one.
    pub(crate) fn folder(&self) -> anyhow::Result<PathBuf> {
        Ok(self.sources()?.work_dir.map_or_else(std::env::current_dir, Ok)?)
    }

    pub(crate) fn home_dir(&self) -> anyhow::Result<PathBuf> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let default = || variable("HOME").map(|user| user.join(".longhaul"));
        let folder = self.home.clone().or_else(|| variable("LONGHAUL_HOME")).or_else(default);
        match folder {
            Some(folder) if !folder.as_os_str().is_empty() => Ok(folder),
            _ => Err(bad_usage(
                "can't find a home folder: HOME is not set; use --home DIR or set LONGHAUL_HOME",
            )),
        }
    }

    /// Where the journal of the home is.
    pub(crate) fn journal_place(&self) -> anyhow::Result<JournalPlace> {
        let sources = Sources { config_file: self.config.clone(), ..Sources::default() };
        Ok(JournalPlace::of_home(&self.home_dir()?, &sources)?)
    }

    /// The home, if it has a journal: a file, or a database. Creates no journal.
    pub(crate) fn existing_home(&self) -> anyhow::Result<Option<Home>> {
        let folder = self.home_dir()?;
        if !self.journal_place()?.is_file() {
            return Ok(Some(Home::create(&folder)?));
        }
        if !folder.try_exists().with_context(|| format!("can't access {}", folder.printable()))? {
            return Ok(None);
        }
        let home = Home::existing(&folder)?;
        Ok(if home.has_journal()? { Some(home) } else { None })
    }

    /// The journal of the home, if there is one. Creates nothing.
    pub(crate) async fn open_journal(&self) -> anyhow::Result<Option<Arc<dyn Journal>>> {
        match self.existing_home()? {
            Some(home) => Ok(Some(self.journal_place()?.open(&home).await?)),
            None => Ok(None),
        }
    }

    pub(crate) async fn open_or_create_journal(&self) -> anyhow::Result<Arc<dyn Journal>> {
        Ok(self.journal_place()?.open(&Home::create(&self.home_dir()?)?).await?)
    }
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
