//! Checks the settings of a server without starting it.

use std::path::Path;

use crate::http_connection::{check_url, http_headers};
use crate::launch::find_program;
use crate::{Error, Result, ServerSettings, TransportKind, check_server_name};

/// Checks the name, the command or address, and the variables that headers need.
pub fn check_settings(name: &str, settings: &ServerSettings, work_dir: &Path) -> Result<()> {
    check_server_name(name).map_err(Error::Settings)?;
    match settings.transport().map_err(|problem| Error::Settings(problem.to_owned()))? {
        TransportKind::Stdio => {
            let path = std::env::var("PATH").ok();
            find_program(&settings.command, path.as_deref(), work_dir).map(drop)
        }
        TransportKind::Http => {
            check_url(&settings.clone().with_expanded_url())?;
            http_headers(settings).map(drop)
        }
    }
}
