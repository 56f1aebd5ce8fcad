//! The HTTP server.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::none_if_empty;

/// The HTTP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSettings {
    /// Address and port to listen on.
    pub listen: String,
    /// Environment variable with an admin token; hidden from commands.
    #[serde(deserialize_with = "none_if_empty")]
    pub token_env: Option<String>,
    /// Most bytes of a request body.
    #[schemars(range(min = 1024))]
    pub max_body_bytes: u64,
    /// Names by which clients reach the server, beside localhost and the address it listens on.
    pub allowed_hosts: Vec<String>,
    /// Web pages of other origins that may call the API, such as `https://example.org`.
    pub allowed_origins: Vec<String>,
    /// PEM file with the certificate chain for TLS, relative to the config file.
    #[serde(deserialize_with = "none_if_empty")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file with the private key for TLS, relative to the config file.
    #[serde(deserialize_with = "none_if_empty")]
    pub tls_key: Option<PathBuf>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:7171".to_owned(),
            token_env: Some("LONGHAUL_TOKEN".to_owned()),
            max_body_bytes: 32 << 20,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            tls_cert: None,
            tls_key: None,
        }
    }
}
