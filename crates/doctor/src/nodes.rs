//! Checks the nodes that share the journal: are they there, do their clocks agree, can they be reached?

use std::time::Duration;

use longhaul_agent::config::NodeSettings;
use longhaul_agent::try_node_address;
use longhaul_journal::{NodeReport, NodeState};
use longhaul_transcript::{format_count, format_duration, truncate};
use tokio::net::TcpStream;

use super::Finding;

/// How far the clock of a node may be from the database's. Nothing but schedules follows it.
const MAX_CLOCK_SKEW_MS: u64 = 60_000;
/// How long a node may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Checks the clock of this machine.
pub(super) fn check_clock(ahead_ms: i64) -> Option<Finding> {
    skew(ahead_ms).map(|skew| {
        let found = format!("the clock of this machine is {skew} the database's");
        Finding::wrong("clock", found, "set the clock: schedules follow it (leases follow the database's)")
    })
}

/// `1 h ahead of`, if the difference matters.
fn skew(ahead_ms: i64) -> Option<String> {
    let direction = if ahead_ms > 0 { "ahead of" } else { "behind" };
    let by = ahead_ms.unsigned_abs();
    (by > MAX_CLOCK_SKEW_MS).then(|| format!("{} {direction}", format_duration(by)))
}

/// Checks the nodes, from one with these settings.
pub(super) async fn check(nodes: &[NodeReport], settings: &NodeSettings) -> Vec<Finding> {
    let mut findings = vec![count(nodes)];
    for node in nodes {
        let name = truncate(&node.id, 64);
        if node.state == NodeState::Dead {
            let bound = match node.bound {
                0 => String::new(),
                bound => format!("; {} wait for it", format_count(bound, "session")),
            };
            findings.push(Finding::wrong(
                "node",
                format!("{name} is dead, {}{bound}", node.last_seen()),
                format!("start it again, or give it up: `longhaul nodes remove {name}`"),
            ));
        }
        if !matches!(node.state, NodeState::Live | NodeState::Draining) {
            continue;
        }
        if !node.hears_wakes {
            let found =
                format!("{name} hears no notifications of the database, and looks for work each second");
            findings.push(Finding::fine("node", found));
        }
        if let Some(skew) = skew(node.clock_ahead_ms).filter(|_| !node.is_this) {
            let found = format!("the clock of {name} is {skew} the database's");
            findings.push(Finding::wrong("clock", found, "set the clock of that machine"));
        }
        if let Some(address) = &node.address
            && let Err(reason) = reach(address, settings).await
        {
            findings.push(Finding::wrong(
                "node",
                format!("{name} can't be reached at {} from here: {reason}", truncate(address, 80)),
                "set its node.address to one that the other nodes reach, and the same cluster token on all nodes; until then the database wakes it",
            ));
        }
    }
    findings
}

fn count(nodes: &[NodeReport]) -> Finding {
    let live =
        nodes.iter().filter(|node| matches!(node.state, NodeState::Live | NodeState::Draining)).count();
    let all = match nodes.len() {
        0 => "none yet: `longhaul serve` makes this machine one".to_owned(),
        all => format!("{}, {live} of them live", format_count(all as u64, "node")),
    };
    Finding::fine("nodes", all)
}

/// Tries the address as this node would use it; without the token of the cluster, only whether something listens there.
async fn reach(address: &str, settings: &NodeSettings) -> Result<(), String> {
    match try_node_address(address, settings).await {
        Some(tried) => tried,
        None => connect(address).await,
    }
}

/// Connects to the host and port of a URL.
async fn connect(address: &str) -> Result<(), String> {
    let (scheme, rest) = address.split_once("://").unwrap_or(("http", address));
    let place = rest.split('/').next().unwrap_or(rest);
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let place = match has_port {
        true => place.to_owned(),
        false => format!("{place}:{}", if scheme == "https" { 443 } else { 80 }),
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(place)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer".to_owned()),
    }
}
