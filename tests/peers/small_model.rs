//! A real model at the other end: small, slow and not clever, but its server, its tokens and its window are real.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::desk::{Desk, Printing, Ran};
use crate::servers::{Server, TEST_TIMEOUT};

/// As `small_model.py` gives it.
const WINDOW: &str = "2,048";

/// With a prompt of its own: a model of this size answers a page of advice with nonsense, and its window is small.
fn desk(server: &Server) -> Desk {
    let desk = Desk::new(&format!("[model]\nname = 'llamacpp/smollm2'\nbase_url = '{}/v1'\n", server.url()));
    std::fs::write(
        desk.home().join("system_prompt.md"),
        "You are {{name}}, an agent that works with tools.\n",
    )
    .unwrap();
    desk
}

/// M15: the answer comes as it is made, and what it cost is what the server counted.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn a_real_model_answers_word_by_word_and_its_tokens_are_counted() {
    let server = Server::small_model();

    let ran = desk(&server).run("Say hello.");

    // A model of this size may not find an end; then the answer ends at its length limit.
    assert!(matches!(ran.code, Some(0 | 6)), "{}", ran.errors);
    let answer = ran.end()["text"].as_str().unwrap();
    let deltas = ran.events("text_delta");
    let text: String = deltas.iter().map(|delta| delta["text"].as_str().unwrap()).collect();
    assert!(deltas.len() > 1 && !answer.trim().is_empty(), "{deltas:?}");
    assert_eq!(text, answer);
    let usage = ran.events("usage");
    let count = |name: &str| usage.iter().map(|usage| usage[name].as_u64().unwrap()).sum::<u64>();
    assert!(count("input") > 20 && count("output") >= deltas.len() as u64, "{usage:?}");
}

/// M14: the server says how large its window is, and that is shown with who said so.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_window_of_a_real_model_is_asked_of_its_server() {
    let server = Server::small_model();
    let desk = desk(&server);
    let mut command = desk.command(&["--plain"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut talking = command.spawn().unwrap();

    talking.stdin.take().unwrap().write_all(b"Say hello.\n/status\n/exit\n").unwrap();
    let output = talking.wait_with_output().unwrap();

    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(&format!("of {WINDOW} (from the server)")), "{text}");
}

/// M12, and the exit code for it: what is longer than the window by itself is not sent, and the session goes on afterwards.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn a_prompt_longer_than_the_window_stops_with_exit_code_5() {
    let server = Server::small_model();
    let desk = desk(&server);

    let ran = desk.run_long(&"one word and another ".repeat(2_000));

    assert_eq!(ran.code, Some(5), "{:?} {}", ran.events, ran.errors);
    assert_eq!((&ran.end()["outcome"], &ran.end()["code"]), (&json!("failed"), &json!("context_too_long")));
    assert_eq!(ran.events("retry_wait").len(), 0, "it is not sent again as it is");
    assert!(ran.errors.contains("too long for the model"), "{}", ran.errors);
}

/// How many turns; `scripts/soak` sets another number.
fn turns() -> usize {
    std::env::var("LONGHAUL_SMALL_TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(20)
}

/// C1, C6, M14, M18: a conversation far longer than the window goes on without one error, and without a prompt that was cut.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn a_conversation_with_a_real_model_outlasts_its_window() {
    let server = Server::small_model();
    let url = server.url();
    let desk = Desk::new(&format!(
        "[model]\nname = 'llamacpp/smollm2'\nbase_url = '{url}/v1'\ntools = false\nmax_output_tokens = 48\n"
    ));
    let (mut compactions, mut sent) = (0, 0);

    for turn in 1..=turns() {
        let seen = format!(
            "boat number {turn}, a man called Otto who sold fish, and a lighthouse of {turn} floors. "
        )
        .repeat(4);
        let prompt =
            format!("Today I went to the harbour and saw {seen}What do you think, in one short sentence?");
        let ran = Ran::of(&desk.command(&["run", "--json", "-s", "talk", &prompt]).output().unwrap());

        assert_eq!(ran.code, Some(0), "turn {turn}: {:?} {}", ran.events, ran.errors);
        assert_eq!(ran.end()["outcome"], "completed");
        let warned: Vec<&str> =
            ran.events("warning").iter().filter_map(|event| event["code"].as_str()).collect();
        assert!(
            warned.iter().all(|code| ["no_tools", "answer_length"].contains(code)),
            "turn {turn}: {warned:?}"
        );
        // The server may close an idle connection in the moment in which the next request is on its way. That is tried again.
        let is_closed = |wait: &&Value| wait["reason"].as_str().unwrap().contains("connection closed before");
        let retries = ran.events("retry_wait");
        assert!(ran.events("compact_failed").is_empty() && retries.iter().all(is_closed), "{:?}", ran.events);
        compactions += ran.events("compact_done").len();
        for usage in ran.events("usage") {
            let (input, output) = (usage["input"].as_u64().unwrap(), usage["output"].as_u64().unwrap());
            assert!(input + output <= 2_048, "turn {turn}: {usage}");
            sent += input;
        }
    }

    println!("{} turns, {compactions} compactions, {sent} tokens sent", turns());
    assert!(compactions >= turns() / 20, "{compactions}");
}

/// T10: Ctrl-C in the middle of a long answer, and the server has nothing more to do for us.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn ctrl_c_ends_a_long_answer_and_the_server_is_free_again() {
    let server = Server::small_model();
    let desk = desk(&server);
    let prompt = "Write a very long story about the sea, with many chapters.";
    let mut running = Printing::start(desk.command(&["run", "--json", prompt]));
    running.wait_for("text_delta");
    assert!(is_busy(&server), "it answers");

    kill_process(Pid::from_child(&running.process), Signal::INT).unwrap();
    let cancelled_at = Instant::now();
    let end = running.wait_for("turn_ended");
    let code = running.process.wait().unwrap().code();

    assert_eq!((&end["outcome"], code), (&json!("cancelled"), Some(130)));
    assert!(cancelled_at.elapsed() < Duration::from_secs(30), "{:?}", cancelled_at.elapsed());
    while is_busy(&server) {
        assert!(cancelled_at.elapsed() < TEST_TIMEOUT, "the server goes on with an answer that nobody wants");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_busy(server: &Server) -> bool {
    let slots: Value = server.json("/slots");
    slots.as_array().unwrap().iter().any(|slot| slot["is_processing"] == true)
}
