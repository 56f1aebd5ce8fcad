use std::path::PathBuf;

/// What can go wrong with a model call, by what the caller can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The stream ended without its end mark.
    #[error("the answer broke off: {reason}")]
    Broken {
        /// What was seen of it.
        reason: String,
    },
    /// The model said no, for a reason that another try doesn't change.
    #[error("the model failed: {reason}")]
    Failed {
        /// In its own words.
        reason: String,
    },
    /// A script has no answer left.
    #[error(
        "{model} has {answers} answers, and was asked for number {asked}: add one to the script and start again"
    )]
    UsedUp {
        /// The model.
        model: String,
        /// How many answers there are.
        answers: usize,
        /// Which one was asked for, from 1.
        asked: usize,
    },
    /// A script can't be read.
    #[error("{} is not a script: {reason}", path.display())]
    BadScript {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A name that stands for no model.
    #[error("there is no model {name:?}: {hint}")]
    NoSuchModel {
        /// The name.
        name: String,
        /// What would be one.
        hint: String,
    },
}

/// What a model call comes to.
pub type Result<T> = std::result::Result<T, Error>;
