//! Where a journal is: the `journal.db` of a home, or the database that the config names.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_journal::{Home, Journal, NodeReport, SqliteJournal, all_sessions};
use longhaul_protocol::PrintablePath;

use crate::config::{JournalSettings, NodeSettings, Sources};
use crate::{Error, Result};

#[cfg(feature = "postgres")]
use std::{borrow::Cow, time::Duration};

#[cfg(feature = "postgres")]
use longhaul_postgres::{DatabaseAddress, NodeLink, NodeOptions, PostgresJournal, PostgresOptions};

#[cfg(feature = "postgres")]
use crate::{ClusterToken, HttpNodeLink};

/// Where a journal is.
#[derive(Debug, Clone)]
pub enum JournalPlace {
    /// The file in the home.
    Home,
    /// A PostgreSQL database.
    #[cfg(feature = "postgres")]
    Database(Box<DatabaseAddress>, NodeSettings),
}

impl JournalPlace {
    /// The place that these settings name.
    pub fn from_settings(journal: &JournalSettings, node: &NodeSettings) -> Result<Self> {
        match configured_url(journal)? {
            Some(url) => Self::of_node(&url, node),
            None => Ok(Self::Home),
        }
    }

    /// The place of a home's journal. Only the user's own config says it, so nothing else is loaded.
    pub fn of_home(home: &Path, sources: &Sources) -> Result<Self> {
        match crate::config::journal_settings(home, sources)? {
            Some((journal, node)) => Self::from_settings(&journal, &node),
            None => Ok(Self::Home),
        }
    }

    /// A database, from its URL.
    pub fn from_url(url: &str) -> Result<Self> {
        Self::of_node(url, &NodeSettings::default())
    }

    #[cfg(feature = "postgres")]
    fn of_node(url: &str, node: &NodeSettings) -> Result<Self> {
        Ok(Self::Database(Box::new(DatabaseAddress::parse(url)?), node.clone()))
    }

    #[cfg(not(feature = "postgres"))]
    fn of_node(_: &str, _: &NodeSettings) -> Result<Self> {
        Err(Error::Config {
            origin: "journal.url".to_owned(),
            reason: "this longhaul was built without PostgreSQL; build it with the feature postgres"
                .to_owned(),
        })
    }

    /// The password of the database, as its server gets it.
    pub(crate) fn password(&self) -> Option<String> {
        match self {
            Self::Home => None,
            #[cfg(feature = "postgres")]
            Self::Database(address, _) => address.password().map(Cow::into_owned),
        }
    }

    /// What the config says of this node.
    pub fn node_settings(&self) -> NodeSettings {
        match self {
            Self::Home => NodeSettings::default(),
            #[cfg(feature = "postgres")]
            Self::Database(_, node) => node.clone(),
        }
    }

    /// Whether it is the file of a home, which may not be there yet.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::Home)
    }

    /// Opens the journal. The home has the sockets, the search index and the tasks of this machine in any case.
    pub async fn open(&self, home: &Home) -> Result<Arc<dyn Journal>> {
        match self {
            Self::Home => Ok(Arc::new(SqliteJournal::open(home).await?)),
            #[cfg(feature = "postgres")]
            Self::Database(address, node) => Ok(Arc::new(open_database(address, node, home).await?)),
        }
    }

    /// Opens the journal, looks at it and closes it.
    pub async fn check(&self, home: &Home) -> Result<DatabaseCheck> {
        let (journal, delivers_wakes, clock_ahead_ms): (Arc<dyn Journal>, bool, i64) = match self {
            Self::Home => (self.open(home).await?, true, 0),
            #[cfg(feature = "postgres")]
            Self::Database(address, node) => {
                let journal = open_database(address, node, home).await?;
                let delivers_wakes = journal.delivers_wakes().await?;
                let clock_ahead_ms = journal.clock_ahead_ms();
                (Arc::new(journal), delivers_wakes, clock_ahead_ms)
            }
        };
        let sessions = all_sessions(&*journal).collect().await;
        let nodes = match journal.cluster() {
            Some(cluster) => cluster.nodes().await?,
            None => vec![],
        };
        journal.close().await;
        let (address, sessions) = (self.shown(home).to_string(), sessions?.len() as u64);
        Ok(DatabaseCheck { address, sessions, delivers_wakes, clock_ahead_ms, nodes })
    }

    /// What people call the journal of this home: its file, or the address of the database without the password.
    pub fn shown(&self, home: &Home) -> impl fmt::Display {
        match self {
            Self::Home => home.journal_file().printable().to_string(),
            #[cfg(feature = "postgres")]
            Self::Database(address, _) => address.to_string(),
        }
    }
}

/// Opens a journal in a database, which reaches other nodes directly if this one has the cluster's token.
#[cfg(feature = "postgres")]
async fn open_database(
    address: &DatabaseAddress,
    node: &NodeSettings,
    home: &Home,
) -> Result<PostgresJournal> {
    let token = ClusterToken::from_variable(node.token_env.as_deref())?;
    let link = token.map(|token| Arc::new(HttpNodeLink::new(token)) as Arc<dyn NodeLink>);
    let options = PostgresOptions::of_node(NodeOptions {
        id: node.id.clone(),
        address: node.address.clone(),
        dead_after: node.dead_after(),
        gone_after: Duration::from_secs(node.gone_after_s),
    });
    Ok(PostgresJournal::open_with(address, home, PostgresOptions { link, ..options }).await?)
}

/// Whether a node answers at its address and accepts the token that this one would send. `None` without a token: then nodes don't use
/// addresses.
#[cfg(feature = "postgres")]
pub async fn try_node_address(address: &str, node: &NodeSettings) -> Option<std::result::Result<(), String>> {
    match ClusterToken::from_variable(node.token_env.as_deref()) {
        Ok(token) => Some(HttpNodeLink::new(token?).try_address(address).await),
        Err(error) => Some(Err(error.to_string())),
    }
}

/// Without PostgreSQL there are no other nodes.
#[cfg(not(feature = "postgres"))]
pub async fn try_node_address(_: &str, _: &NodeSettings) -> Option<std::result::Result<(), String>> {
    None
}

/// What a check of a journal found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseCheck {
    /// Its file, or the address of its database without the password.
    pub address: String,
    /// How many sessions it has.
    pub sessions: u64,
    /// Whether wakes of other machines reach this one.
    pub delivers_wakes: bool,
    /// How far the clock of this machine is ahead of the journal's, in milliseconds.
    pub clock_ahead_ms: i64,
    /// The nodes that share it.
    pub nodes: Vec<NodeReport>,
}

/// The URL that settings name, directly or by a variable.
pub(crate) fn configured_url(settings: &JournalSettings) -> Result<Option<String>> {
    let Some(variable) = &settings.url_env else { return Ok(settings.url.clone()) };
    match std::env::var(variable).ok().filter(|url| !url.is_empty()) {
        Some(url) => Ok(Some(url)),
        None => Err(Error::Config {
            origin: "journal.url_env".to_owned(),
            reason: format!("the variable {variable} is not set; put the URL of the database into it"),
        }),
    }
}

/// The password file of PostgreSQL that a variable names, if the journal is in a database. The one in the user's folder is protected anyway.
pub(crate) fn password_file(settings: &JournalSettings, variable: Option<OsString>) -> Option<PathBuf> {
    let is_database = settings.url.is_some() || settings.url_env.is_some();
    variable.filter(|file| is_database && !file.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P3: a command that could read it could write to every session.
    #[test]
    fn the_password_file_of_the_journals_database_is_known_and_that_of_other_databases_is_not() {
        let of_database =
            JournalSettings { url: Some("postgres://db/x".to_owned()), ..JournalSettings::default() };
        let named = || Some(OsString::from("/etc/pgpass"));

        assert_eq!(password_file(&of_database, named()), Some(PathBuf::from("/etc/pgpass")));
        assert_eq!(password_file(&of_database, Some(OsString::new())), None);
        assert_eq!(password_file(&JournalSettings::default(), named()), None);
    }
}
