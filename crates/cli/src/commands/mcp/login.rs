//! `longhaul mcp login` and `logout`: the user's login at an HTTP server.

use std::io::BufRead;
use std::time::Duration;

use super::unknown_server;
use crate::args::GlobalArgs;
use crate::output::{line, note};
use crate::{bad_usage, config, exit};

/// How long the user may take in the browser.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(600);

pub(super) async fn log_in(globals: &GlobalArgs, name: &str, paste: bool) -> anyhow::Result<u8> {
    let config = config::load(globals)?;
    let servers = longhaul_agent::configured_servers(&config)?;
    let begun = servers.login(name).await.ok_or_else(|| unknown_server(&config, name))?;
    let login =
        begun.map_err(|error| bad_usage(format!("can't log in at the MCP server {name}: {error}")))?;
    note("open this address in a browser, and agree there:");
    line(login.url())?;
    let finished = if paste {
        note("then paste the address that the browser ends at, even if it shows an error:");
        let mut address = String::new();
        std::io::stdin().lock().read_line(&mut address)?;
        login.finish(&address).await
    } else {
        tokio::time::timeout(BROWSER_TIMEOUT, login.wait()).await.map_err(|_| {
            bad_usage("no login within 10 minutes; if the browser is on another machine, use --paste")
        })?
    };
    finished.map_err(|error| bad_usage(format!("not logged in at the MCP server {name}: {error}")))?;
    note(format!("logged in at {name}; try it with `longhaul mcp check {name}`"));
    Ok(exit::DONE)
}

pub(super) fn log_out(globals: &GlobalArgs, name: &str) -> anyhow::Result<u8> {
    let config = config::load(globals)?;
    let servers = longhaul_agent::configured_servers(&config)?;
    let removed = servers.logout(name).ok_or_else(|| unknown_server(&config, name))?;
    match removed.map_err(|error| bad_usage(format!("can't log out at the MCP server {name}: {error}")))? {
        true => note(format!("logged out at {name}; revoke the access at the server too, if it lists one")),
        false => note(format!("you were not logged in at {name}")),
    }
    Ok(exit::DONE)
}
