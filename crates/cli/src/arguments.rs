//! The command line: every flag is documented where it is defined.

use std::path::PathBuf;

use anyhow::Context;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use longhaul_journal::{Home, SqliteJournal};

use crate::BadUsage;

/// An agent runtime for the long haul.
///
/// It keeps an agent's conversation, commands, memory and spend alive through crashes, restarts, full context windows
/// and failing models. So far the journal is built, in which all of that will live.
#[derive(Parser)]
#[command(name = "longhaul", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Where everything lives.
#[derive(Args)]
pub(crate) struct Place {
    /// The folder that everything lives in [default: $LONGHAUL_HOME, else ~/.longhaul].
    #[arg(long = "home", value_name = "DIR", global = true)]
    folder: Option<PathBuf>,
}

impl Place {
    pub(crate) fn folder(&self) -> anyhow::Result<PathBuf> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let default = || variable("HOME").map(|user| user.join(".longhaul"));
        let folder = self.folder.clone().or_else(|| variable("LONGHAUL_HOME")).or_else(default);
        match folder {
            Some(folder) if !folder.as_os_str().is_empty() => Ok(folder),
            _ => Err(BadUsage("no home: name a folder with --home, or set LONGHAUL_HOME or HOME".to_owned())
                .into()),
        }
    }

    /// The home, if a journal was ever made there. Looking changes nothing.
    pub(crate) fn existing(&self) -> anyhow::Result<Option<Home>> {
        let folder = self.folder()?;
        if !folder.try_exists().with_context(|| format!("{} can't be looked at", folder.display()))? {
            return Ok(None);
        }
        let home = Home::existing(&folder)?;
        Ok(if home.has_journal()? { Some(home) } else { None })
    }

    /// The journal, if there is one.
    pub(crate) async fn journal(&self) -> anyhow::Result<Option<SqliteJournal>> {
        match self.existing()? {
            Some(home) => Ok(Some(SqliteJournal::open(&home).await?)),
            None => Ok(None),
        }
    }

    /// The journal, made if there is none.
    pub(crate) async fn journal_or_new(&self) -> anyhow::Result<SqliteJournal> {
        Ok(SqliteJournal::open(&Home::create(&self.folder()?)?).await?)
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show what is built so far: a writer that is killed, and a journal that has lost nothing. No key, no network.
    Demo(DemoOptions),
    /// List, show, export and import sessions. Alone, it lists them.
    #[command(args_conflicts_with_subcommands = true)]
    Sessions {
        #[command(subcommand)]
        command: Option<SessionsCommand>,
        /// Print one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Read everything and say what is not as it was committed. Exits with 1 if anything is not.
    Verify(VerifyOptions),
    /// Write a consistent copy of everything to a new file, while everything runs.
    Backup(BackupOptions),
    /// Replace the journal by a backup, after reading all of it. The old one is kept in the trash.
    Restore(RestoreOptions),
    /// Remove the words of one record for good. A stub says when and why.
    Erase(EraseOptions),
    #[command(hide = true)]
    DemoWriter,
}

#[derive(Args)]
pub(crate) struct DemoOptions {
    /// Leave the demo's home behind, to look around in it.
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions.
    List {
        /// Print one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show a session's records.
    Show(ShowOptions),
    /// Write a session to one file of JSON lines that can be verified and imported.
    Export {
        /// The session.
        key: String,
        /// Where to; a file there is replaced whole. Without it, or with -, standard output.
        file: Option<PathBuf>,
        /// Print what was exported as JSON. Needs FILE.
        #[arg(long, requires = "file")]
        json: bool,
    },
    /// Bring a session back from an export, after verifying all of it.
    Import {
        /// The export.
        file: PathBuf,
        /// The key to give it, if its own is taken.
        #[arg(long = "as", value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
        key: Option<String>,
        /// Print what was imported as JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
pub(crate) struct ShowOptions {
    /// The session.
    pub(crate) key: String,
    /// The first record to show; without it, the newest epoch is shown.
    #[arg(long, value_name = "SEQ")]
    pub(crate) from: Option<u64>,
    /// How many records to show at most.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) limit: u64,
    /// Which of the session's streams.
    #[arg(long, value_enum, default_value_t = Family::Session)]
    pub(crate) stream: Family,
    /// Print the session with its records as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The streams that a session has.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Family {
    /// What happened.
    Session,
    /// What was accepted.
    Inbox,
    /// What was worth remembering.
    Extract,
}

#[derive(Args)]
pub(crate) struct VerifyOptions {
    /// Write what can be read to a new journal in this file; the original is left alone.
    #[arg(long, value_name = "FILE")]
    pub(crate) salvage: Option<PathBuf>,
    /// Print what was found as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct BackupOptions {
    /// The new file.
    pub(crate) file: PathBuf,
    /// Print what was written as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RestoreOptions {
    /// The backup.
    pub(crate) file: PathBuf,
    /// Print what was done as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct EraseOptions {
    /// The session.
    pub(crate) key: String,
    /// The record, as `sessions show` numbers it.
    pub(crate) seq: u64,
    /// Why; it stands in the stub.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: String,
    /// Which of the session's streams.
    #[arg(long, value_enum, default_value_t = Family::Session)]
    pub(crate) stream: Family,
    /// Print what was erased as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
