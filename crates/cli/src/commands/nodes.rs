//! `longhaul nodes`: the machines that share a journal.

use longhaul_journal::{Cluster, Journal, NodeReport, NodeState};
use serde_json::json;

use crate::args::{GlobalArgs, NodesCommand};
use crate::output::{format_count, json as print_json, line, note, print, truncate};
use crate::{bad_usage, exit};

/// A clock that differs by more than this is shown.
const CLOCK_SKEW_MS: u64 = 2_000;

pub(crate) async fn run(
    globals: &GlobalArgs,
    command: Option<NodesCommand>,
    as_json: bool,
) -> anyhow::Result<u8> {
    let journal = globals.open_or_create_journal().await?;
    let done = match journal.cluster() {
        Some(cluster) => run_in(cluster, command, as_json).await,
        None => one_machine(command.as_ref(), as_json),
    };
    journal.close().await;
    done
}

/// What the command says about a journal that is a file.
fn one_machine(command: Option<&NodesCommand>, as_json: bool) -> anyhow::Result<u8> {
    match command {
        None | Some(NodesCommand::List { .. }) => {
            let is_json = as_json || matches!(command, Some(NodesCommand::List { json: true }));
            if is_json {
                print_json(&Vec::<NodeReport>::new())?;
            } else {
                line(
                    "No nodes: the journal is a file in this home. To share one between machines, set `journal.url`.",
                )?;
            }
            Ok(exit::DONE)
        }
        Some(NodesCommand::Drain { .. } | NodesCommand::Remove { .. }) => Err(bad_usage(
            "there are no nodes: the journal is a file in this home; to share one between machines, set `journal.url`",
        )),
    }
}

async fn run_in(cluster: &dyn Cluster, command: Option<NodesCommand>, as_json: bool) -> anyhow::Result<u8> {
    match command.unwrap_or(NodesCommand::List { json: as_json }) {
        NodesCommand::List { json } => {
            let nodes = cluster.nodes().await?;
            let none = || vec!["no nodes yet: `longhaul serve` makes this machine one".to_owned()];
            let lines = || if nodes.is_empty() { none() } else { nodes.iter().map(describe).collect() };
            print(json || as_json, || &nodes, lines)?;
        }
        NodesCommand::Drain { id, undo, json } => {
            cluster.set_draining(&id, !undo).await?;
            let node = cluster.nodes().await?.into_iter().find(|node| node.id == id);
            print(
                json,
                || json!({"id": id, "draining": !undo, "node": node}),
                || vec![format!("{}: {id}", if undo { "Takes sessions again" } else { "Draining" })],
            )?;
            let running = node.as_ref().map_or(0, |node| node.running);
            if !undo && running > 0 {
                let many = format_count(running, "session");
                note(format!("it runs {many}; `longhaul nodes` says when it is empty"));
            }
        }
        NodesCommand::Remove { id, json } => {
            cluster.give_up(&id).await?;
            print(json, || json!({"id": id, "gone": true}), || vec![format!("Removed: {id}")])?;
        }
    }
    Ok(exit::DONE)
}

/// One node as a line.
fn describe(node: &NodeReport) -> String {
    let NodeReport { id, state, running, bound, .. } = node;
    let mut facts = vec![match state {
        NodeState::Live => "live".to_owned(),
        NodeState::Draining if *running == 0 => "drained".to_owned(),
        NodeState::Draining => "draining".to_owned(),
        NodeState::Stopped => format!("stopped, {}", node.last_seen()),
        NodeState::Dead => format!("dead, {}", node.last_seen()),
        NodeState::Gone => format!("removed, {}", node.last_seen()),
    }];
    let is_there = matches!(state, NodeState::Live | NodeState::Draining);
    if is_there || *running > 0 {
        facts.push(format!("{} running", format_count(*running, "session")));
    }
    if *bound > 0 {
        facts.push(format!("{bound} bound to it"));
    }
    if is_there && !node.hears_wakes {
        facts.push("polling".to_owned());
    }
    if is_there && node.clock_ahead_ms.unsigned_abs() > CLOCK_SKEW_MS {
        let seconds = node.clock_ahead_ms.abs() / 1_000;
        let direction = if node.clock_ahead_ms > 0 { "ahead" } else { "behind" };
        facts.push(format!("its clock is {seconds} s {direction}"));
    }
    facts.extend(node.address.as_ref().map(|address| truncate(address, 80)));
    let this = if node.is_this { " (this node)" } else { "" };
    format!(
        "{}{this}  {}, longhaul {}: {}",
        truncate(id, 64),
        truncate(&node.host, 64),
        node.version,
        facts.join(", ")
    )
}
