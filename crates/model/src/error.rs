use std::path::PathBuf;

use crate::discovery::LOCAL_SERVER_PORTS;
use longhaul_protocol::PrintablePath;

/// What can go wrong before a model can be asked, by what the caller can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A script can't be read.
    #[error("{} is not a script: {reason}", path.printable())]
    BadScript {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A key is not there.
    #[error("{name} needs a key: set {variables} (named by {by})")]
    NoKey {
        /// The model.
        name: String,
        /// The variables that may hold it.
        variables: String,
        /// Who names them.
        by: String,
    },
    /// What a variable holds can't be a key.
    #[error("the value of {variable} can't be a key: it has a line break or a control character in it")]
    BadKey {
        /// The variable.
        variable: String,
    },
    /// No model was named, and none was found.
    #[error(
        "no model: none is named (--model, LONGHAUL_MODEL, or model.name in the config), no key is set ({variables}), and no \
         server answers on the usual ports of this machine ({})",
        usual_ports()
    )]
    NoModel {
        /// The variables that were looked for.
        variables: String,
    },
    /// A name that stands for no model.
    #[error("there is no model {name:?}: {hint}")]
    NoSuchModel {
        /// The name.
        name: String,
        /// What would be one.
        hint: String,
    },
    /// A file of providers and models can't be read.
    #[error("{}: {place}: {reason}", path.printable())]
    BadProviders {
        /// The file.
        path: PathBuf,
        /// Where in it, as `provider.key`.
        place: String,
        /// What is wrong there.
        reason: String,
    },
}

/// Where servers on this machine were looked for, in words.
fn usual_ports() -> String {
    let ports = LOCAL_SERVER_PORTS.map(|(provider, port)| format!("{provider} {port}"));
    ports.join(", ")
}

/// What opening a model comes to.
pub type Result<T> = std::result::Result<T, Error>;
