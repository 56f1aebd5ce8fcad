use std::path::PathBuf;

use crate::discovery::LOCAL_SERVER_PORTS;
use longhaul_protocol::PrintablePath;

/// What can go wrong before a model can be called, by what the caller can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A script can't be read.
    #[error("{} is not a script: {reason}", path.printable())]
    BadScript { path: PathBuf, reason: String },
    /// The environment has no API key.
    #[error("{name} needs an API key; set {variables} (named by {by})")]
    NoKey {
        name: String,
        /// The variables that may hold the key.
        variables: String,
        /// Who names these variables: a provider or a setting.
        by: String,
    },
    /// The value of a variable can't be an API key.
    #[error("the value of {variable} is not an API key: it contains a line break or a control character")]
    BadKey { variable: String },
    /// The user named no model, and none was found.
    #[error(
        "no model is set (--model, LONGHAUL_MODEL, or model.name in the config), no API key was found ({variables}), and no \
         local server is running ({})",
        usual_ports()
    )]
    NoModel {
        /// The variables that were checked for a key.
        variables: String,
    },
    /// The only key that is set may be there for another purpose, and the user named no model.
    #[error(
        "{variable} is set, but may be there for another purpose, so it does not choose a model: to use it, name one: --model \
         {model}, or model.name in the config"
    )]
    SharedKey {
        /// The variable that holds the key.
        variable: String,
        /// The model that the key is good for.
        model: String,
        /// The variables that were checked for a key.
        variables: String,
    },
    /// A key is set, but the user named no model, and the provider has no default.
    #[error(
        "{variable} is set, but no model is named, and {hint}, or name one: --model {provider}/NAME, or model.name in the config"
    )]
    NoModelName {
        provider: String,
        /// The variable that holds the key.
        variable: String,
        /// Why none was chosen, and what to do about it.
        hint: String,
    },
    /// The name matches no model.
    #[error("no model {name:?}: {hint}")]
    NoSuchModel {
        name: String,
        /// What the user may have meant.
        hint: String,
    },
    /// A file of providers and models can't be read.
    #[error("{}: {place}: {reason}", path.printable())]
    BadProviders {
        path: PathBuf,
        /// The place in the file, as `provider.key`.
        place: String,
        reason: String,
    },
}

/// Lists the ports where the runtime looks for local servers, for a message.
fn usual_ports() -> String {
    let ports = LOCAL_SERVER_PORTS.map(|(provider, port)| format!("{provider} {port}"));
    ports.join(", ")
}

pub type Result<T> = std::result::Result<T, Error>;
