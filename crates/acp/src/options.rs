//! What a user chooses for a session in the editor: the permission mode and the model.

use longhaul_agent::model_list::model_choices;
use longhaul_agent::{Config, Runtime, Session};
use longhaul_protocol::PermissionMode;

use crate::error::{Error, Result};
use crate::wire::params::SetConfigOptionParams;
use crate::wire::reply::{ConfigChoice, ConfigOption, Mode, ModeState};

const MODE: &str = "mode";
const MODEL: &str = "model";

/// The choices of one session as they are now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionOptions {
    pub(crate) mode: PermissionMode,
    pub(crate) model: String,
    /// Models to choose from, beside the one in use.
    pub(crate) models: Vec<String>,
}

/// A choice that the user made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    Mode(PermissionMode),
    Model(String),
}

impl SessionOptions {
    /// The choices of a session. `known` are models that can be used.
    pub(crate) async fn of(runtime: &Runtime, session: &Session, known: &[String]) -> Result<Self> {
        let state = session.state().await?;
        runtime.restore_model(session.key(), &state);
        let settings = &runtime.config().settings;
        let (model, _) = runtime.model_of(session.key()).await;
        let mode = state.permission.mode.unwrap_or(settings.approval.mode);
        let models = settings.model.fallback.iter().chain(known).cloned().collect();
        Ok(Self { mode, model, models })
    }

    pub(crate) fn modes(&self) -> ModeState {
        let available_modes = PermissionMode::ALL.map(mode_of).to_vec();
        ModeState { current_mode_id: self.mode.name(), available_modes }
    }

    /// The same choices as settings. An editor that knows settings shows these in place of the modes.
    pub(crate) fn config_options(&self) -> Vec<ConfigOption> {
        let modes = PermissionMode::ALL.map(mode_of).map(|mode| ConfigChoice {
            value: mode.id.to_owned(),
            name: mode.name.to_owned(),
            description: Some(mode.description.to_owned()),
        });
        let mut names = vec![self.model.clone()];
        for name in &self.models {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let model = |name: String| ConfigChoice { value: name.clone(), name, description: None };
        let option = |id, name, description, current_value, options| ConfigOption {
            id,
            name,
            description,
            category: id,
            kind: "select",
            current_value,
            options,
        };
        let mode = self.mode.name().to_owned();
        vec![
            option(MODE, "Permission", "What is done without asking", mode, modes.to_vec()),
            option(
                MODEL,
                "Model",
                "The model of this session",
                self.model.clone(),
                names.into_iter().map(model).collect(),
            ),
        ]
    }
}

fn mode_of(mode: PermissionMode) -> Mode {
    let (name, description) = match mode {
        PermissionMode::Ask => ("Ask", "Reads are free; edits and commands ask"),
        PermissionMode::AutoEdit => ("Auto-edit", "Reads and edits are free; commands ask"),
        PermissionMode::Auto => ("Auto", "Everything is free, apart from what a rule says"),
        PermissionMode::Plan => ("Plan", "Reads only, until you accept a plan"),
    };
    Mode { id: mode.name(), name, description }
}

/// The mode with this name.
pub(crate) fn parse_mode(method: &str, name: &str) -> Result<PermissionMode> {
    name.parse().map_err(|error| Error::params(method, error))
}

/// The choice that `session/set_config_option` makes.
pub(crate) fn parse_choice(method: &str, params: &SetConfigOptionParams) -> Result<Choice> {
    let value = params.value.as_str().ok_or_else(|| Error::params(method, "`value` must be a string"))?;
    match params.config_id.as_str() {
        MODE => Ok(Choice::Mode(parse_mode(method, value)?)),
        MODEL => Ok(Choice::Model(value.to_owned())),
        other => {
            Err(Error::params(method, format!("there is no option {other:?}; there are mode and model")))
        }
    }
}

/// The models that can be used now. Asks model servers, so it may take seconds.
pub(crate) async fn known_models(config: &Config) -> Vec<String> {
    let choices = model_choices(config).await.unwrap_or_default();
    choices.into_iter().map(|choice| choice.name).collect()
}
