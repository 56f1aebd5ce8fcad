//! The conformance suite of MCP, unchanged, against our client: `longhaul mcp-probe` does what a session does.

use std::process::Command;

use crate::installed::peer;

/// The scenarios that do not pass, from the page, which says why. The suite itself counts none of these.
fn listed() -> Vec<&'static str> {
    let of_client = include_str!("../../docs/mcp.md").split("## Conformance").nth(1).unwrap();
    let table = of_client.split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let mut listed: Vec<_> =
        rows.flat_map(|row| row.split(" | ").next().unwrap().split('`').skip(1).step_by(2)).collect();
    listed.sort_unstable();
    listed
}

/// What the suite said about each of its scenarios: whether it passed.
fn verdicts(revision: &str) -> (bool, Vec<(String, bool)>, String) {
    let folder = tempfile::tempdir().unwrap();
    let suite = peer("mcp-suite/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let output = Command::new(peer("mcp-suite/node_modules/.bin/node"))
        .arg(suite)
        .args(["client", "--command", &format!("{} mcp-probe", env!("CARGO_BIN_EXE_longhaul"))])
        .args(["--requirements", revision, "--timeout", "120000", "--output-dir"])
        .arg(folder.path())
        .env("TMPDIR", folder.path())
        .env("no_proxy", "localhost,127.0.0.1")
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let summary = text.split("=== SUITE SUMMARY ===").nth(1).unwrap_or_default();
    let summary = summary.split("\nTotal:").next().unwrap_or_default();
    let verdict = |line: &str| {
        let name = |rest: &str| rest.trim().split(": ").next().unwrap().to_owned();
        match (line.strip_prefix('✓'), line.strip_prefix('✗')) {
            (Some(rest), _) => Some((name(rest), true)),
            (_, Some(rest)) => Some((name(rest), false)),
            _ => None,
        }
    };
    (output.status.success(), summary.lines().filter_map(verdict).collect(), text)
}

/// The scenarios that a version of the protocol requires of a client, from the suite's own file.
fn required(revision: &str) -> Vec<String> {
    let folder = peer("mcp-suite/node_modules/@modelcontextprotocol/conformance/requirements");
    let text = std::fs::read_to_string(folder.join(format!("{revision}.yaml"))).unwrap();
    let of_client = text.split("\nclient:\n").nth(1).unwrap();
    of_client.lines().map_while(|line| line.strip_prefix("  - ")).map(str::to_owned).collect()
}

fn check(revision: &str) {
    let (succeeded, verdicts, text) = verdicts(revision);

    let failed: Vec<&str> =
        verdicts.iter().filter(|(_, passed)| !passed).map(|(name, _)| name.as_str()).collect();
    let mut sorted = failed.clone();
    sorted.sort_unstable();
    assert!(succeeded && sorted == listed(), "failed: {failed:?}\n{text}");
    let required = required(revision);
    assert!(required.len() > 15, "{required:?}");
    for scenario in required {
        assert!(verdicts.contains(&(scenario.clone(), true)), "{scenario} did not pass\n{text}");
    }
}

/// E4: every scenario that the stateless protocol requires of a client passes.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_client_passes_the_suite_of_the_stateless_protocol() {
    check("2026-07-28");
}

/// E4: every scenario that the protocol with a handshake requires of a client passes.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_client_passes_the_suite_of_the_protocol_with_a_handshake() {
    check("2025-11-25");
}
