//! This machine among several that share a journal.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::none_if_empty;

/// This machine among several that share a journal in a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NodeSettings {
    /// Id of this node; empty: made once and kept in the home.
    #[serde(deserialize_with = "none_if_empty")]
    pub id: Option<String>,
    /// Address at which the other nodes reach this one's HTTP server, such as `http://10.0.0.3:7171`; empty: they wake it through the
    /// database.
    #[serde(deserialize_with = "none_if_empty")]
    pub address: Option<String>,
    /// Environment variable with the token that the nodes share; hidden from commands.
    #[serde(deserialize_with = "none_if_empty")]
    pub token_env: Option<String>,
    /// Seconds of silence after which a node counts as dead and others go on with its sessions.
    #[schemars(range(min = 3))]
    pub dead_after_s: u64,
    /// Seconds of silence after which the commands of a node count as lost; 0: not before `longhaul nodes remove`.
    pub gone_after_s: u64,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            id: None,
            address: None,
            token_env: Some("LONGHAUL_CLUSTER_TOKEN".to_owned()),
            dead_after_s: 10,
            gone_after_s: 0,
        }
    }
}

impl NodeSettings {
    /// How long a node may be silent.
    pub fn dead_after(&self) -> Duration {
        Duration::from_secs(self.dead_after_s)
    }
}
