//! How we behave towards a server that fails now and then, in the eyes of somebody who judges clients for it.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::desk::{Desk, Printing};
use crate::installed::peer;
use crate::servers::Server;

/// Turns in `scripts/test`; `LONGHAUL_MANNERS_TURNS` sets another number.
const TURNS: usize = 100;
/// So many of them in a process of their own each; the others in one that serves.
const ONE_SHOTS: usize = 10;
/// Side by side in the one that serves.
const SESSIONS: usize = 8;
/// The first wait before a retry. Half of it is the shortest wait that the judge takes for one.
const BASE_MS: f64 = 120.0;

/// M1, M2, M3, M5, M7, M8: whatever a server does, we wait as it asks or longer each time, ask again only where that can help,
/// and take no half answer for a whole one.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_judge_of_manners_finds_nothing() {
    let turns = std::env::var("LONGHAUL_MANNERS_TURNS").map_or(TURNS, |turns| turns.parse().unwrap());
    let judge = Server::judge();
    let desk = Desk::new(&config(&judge));

    let mut ends = serve(&desk, turns.saturating_sub(ONE_SHOTS));
    ends.extend((0..turns.min(ONE_SHOTS)).map(|number| {
        let ran = desk.run(&format!("Please say something, number {number}."));
        let end = ran.end().clone();
        assert_eq!(ran.code == Some(0), end["outcome"] == "completed", "{end}");
        end
    }));

    assert_eq!(ends.len(), turns);
    for end in &ends {
        let stated = end["outcome"] == "failed" && end["code"].is_string() && end["error"].is_string();
        assert!(end["outcome"] == "completed" || stated, "{end}");
    }
    let verdict = judge.json("/_llmock/verdict");
    assert!(verdict["faults_injected"].as_u64().unwrap() > turns as u64 / 20, "nothing was tried: {verdict}");
    let report = report(&judge);
    assert!(report.0 || only_chance(&judge, &verdict), "{}", report.1);
    println!("{}{:?}", report.1, faults(&judge));
}

/// How often we met each kind of fault.
fn faults(judge: &Server) -> BTreeMap<String, usize> {
    let requests = judge.json("/_llmock/requests");
    let mut counts = BTreeMap::new();
    for fault in requests["requests"].as_array().unwrap().iter().filter_map(|r| r["fault"].as_str()) {
        *counts.entry(fault.split('@').next().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

/// The window is given: asking a server for it is not tried again, which the judge would hold against us.
fn config(judge: &Server) -> String {
    format!(
        "[model]\nname = 'judge/m'\nprotocol = 'openai-chat'\nbase_url = '{}/v1'\napi_key_env = 'PEERS_KEY'\n\
         context_window = 100000\nsilence_timeout_s = 1\n\
         [retry]\nmax_retries = 8\nbase_ms = {BASE_MS}\n",
        judge.url()
    )
}

/// So many turns in several sessions at once, each session saying the next thing when it has an answer. Returns their ends.
fn serve(desk: &Desk, turns: usize) -> Vec<Value> {
    let serving = Printing::start(desk.command(&["serve", "--no-http", "--json"]));
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    let mut say = |session: &str| {
        let count = said.entry(session.to_owned()).or_default();
        *count += 1;
        let text = format!("Please say something, number {count} of {session}.");
        let sent = desk.command(&["send", "-s", session, &text]).output().unwrap();
        assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    };
    let begun = turns.min(SESSIONS);
    (0..begun).for_each(|number| say(&format!("manners:{number}")));
    let mut ends = Vec::new();
    for left in (0..turns).rev() {
        let end = serving.wait_for("turn_ended");
        if left >= begun {
            say(end["session"].as_str().unwrap());
        }
        ends.push(end);
    }
    ends
}

/// Whether the judge finds nothing, not even something to warn of; and its words.
fn report(judge: &Server) -> (bool, String) {
    let output = Command::new(peer("python/bin/llmock"))
        .args(["report", "--strict", "--url", &judge.url()])
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether all that was found is two waits of which the second is hardly longer than the first. Our waits are random, between a
/// half and the whole of what doubles (M2), so that one pair in a hundred looks to the judge as if nothing grew. Each of them must
/// be as long as the shortest that it may be.
fn only_chance(judge: &Server, verdict: &Value) -> bool {
    let requests = judge.json("/_llmock/requests");
    let request = |seq: &Value| requests["requests"].as_array().unwrap().iter().find(|r| r["seq"] == *seq);
    let waits = |finding: &Value| -> Vec<f64> {
        let attempts: Vec<&Value> =
            finding["requests"].as_array().unwrap().iter().filter_map(request).collect();
        let without_wish = attempts.windows(2).filter(|pair| pair[0]["retry_after"].is_null());
        without_wish.map(|pair| seconds(pair[1], "started_at") - seconds(pair[0], "ended_at")).collect()
    };
    verdict["findings"].as_array().unwrap().iter().all(|finding| {
        let is_about_growth =
            finding["title"].as_str().is_some_and(|title| title.contains("constant interval"));
        let waits = waits(finding);
        let shortest = [BASE_MS / 2e3, BASE_MS / 1e3];
        is_about_growth && waits.len() == 2 && waits.iter().zip(shortest).all(|(wait, least)| *wait >= least)
    })
}

fn seconds(request: &Value, moment: &str) -> f64 {
    request[moment].as_f64().unwrap()
}
