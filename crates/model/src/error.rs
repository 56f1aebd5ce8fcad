use std::path::PathBuf;

/// What can go wrong before a model can be asked, by what the caller can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A script can't be read.
    #[error("{} is not a script: {reason}", path.display())]
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
        "no model: none is named by --model, LONGHAUL_MODEL or model.name in the config; none of these variables is set: \
         {variables}; and no server answers on the usual ports of Ollama (11434), llama.cpp (8080), LM Studio (1234) and \
         vLLM (8000).\nThe quickest ways to one:\n  export ANTHROPIC_API_KEY=…            a key of any provider; `longhaul models` lists them\n  \
         ollama run qwen3                      a model on this machine\n  longhaul run --model scripted/FILE.json …    a script, to try things out\n\
         `longhaul demo` shows what it does without any model."
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
    #[error("{}: {place}: {reason}", path.display())]
    BadProviders {
        /// The file.
        path: PathBuf,
        /// Where in it, as `provider.key`.
        place: String,
        /// What is wrong there.
        reason: String,
    },
}

/// What opening a model comes to.
pub type Result<T> = std::result::Result<T, Error>;
