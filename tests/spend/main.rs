//! Limits and the statement, through real processes on one home. A model server on loopback uses all that a call reserved.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../desk.rs"]
mod desk;
mod page;

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use longhaul_journal::records;
use longhaul_model::Protocol;
use longhaul_protocol::{SpendRecord, StreamName};
use longhaul_testkit::wire::{End, ModelServer, Reply, Script, ScriptedAnswer};
use serde_json::{Value, json};

use crate::desk::{Desk, told};

const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest answer of the model, in tokens.
const MAX_ANSWER: u64 = 4_000;

/// A home whose model is a server: a token costs a millionth of a dollar, and each call uses all that it reserved.
struct Stage {
    desk: Desk,
    server: ModelServer,
    /// The tokens of a prompt that the server reports.
    prompt: Arc<AtomicU64>,
    /// How the answers of the server end.
    end: Arc<Mutex<End>>,
}

impl Stage {
    fn new() -> Self {
        let (prompt, end) = (Arc::new(AtomicU64::new(100)), Arc::new(Mutex::new(End::Close)));
        let (counted, ending) = (prompt.clone(), end.clone());
        let server = ModelServer::start(Script::by(move |seen| {
            if seen.protocol().is_none() {
                return Reply::error(404, r#"{"error":{"message":"there is no such path"}}"#);
            }
            let request = seen.json();
            let room = ["max_completion_tokens", "max_tokens"].iter().find_map(|key| request[key].as_u64());
            let said = ScriptedAnswer::text("Fine.").usage(counted.load(Ordering::Relaxed), room.unwrap());
            let end = *ending.lock().unwrap();
            match end {
                End::Close => {
                    Reply::frames(said.frames(Protocol::OpenaiChat)).after(Duration::from_millis(300))
                }
                end => Reply::frames(said.frames(Protocol::OpenaiChat)[..1].to_vec()).ending(end),
            }
        }));
        let stage = Self { desk: Desk::with_model_of_config(""), server, prompt, end };
        let providers = format!(
            "[test]\nprotocol = 'openai-chat'\nbase_url = '{}/v1'\n\n[[model]]\npattern = 'test/*'\nwindow = 100000\n\
             max_output = {MAX_ANSWER}\nprices = {{ input = 1.0, output = 1.0 }}\n",
            stage.server.url()
        );
        std::fs::write(stage.desk.path("home/providers.toml"), providers).unwrap();
        stage.limit("");
        stage
    }

    fn limit(&self, limits: &str) {
        self.desk.configure(&format!(
            "[model]\nname = 'test/m'\n[memory]\nextract_at_tokens = 0\n[limits]\n{limits}"
        ));
    }

    /// The ledger, record by record.
    fn ledger(&self) -> Vec<SpendRecord> {
        self.desk.with_journal(|journal| async move {
            let records = records(&*journal, &StreamName::spend(), 1).collect().await.unwrap();
            records.iter().map(|record| SpendRecord::decode(record).unwrap()).collect()
        })
    }

    /// Makes one call without limits. From then on the server counts the prompt as the program does.
    fn measure_prompt(&self) -> u64 {
        assert_eq!(self.desk.run(&["run", "-s", "measured", "hello"]).0, 0);
        let reserved = self.ledger().into_iter().find_map(|record| match record {
            SpendRecord::Reserved(reserved) => Some(reserved.tokens),
            _ => None,
        });
        let prompt = reserved.unwrap() - MAX_ANSWER;
        self.prompt.store(prompt, Ordering::Relaxed);
        prompt
    }

    fn total(&self) -> Value {
        self.desk.json(&["statement", "--json"])["total"].clone()
    }

    fn start(&self, arguments: &[&str]) -> Started {
        let mut command: Command = self.desk.command(arguments);
        Started(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
    }

    /// Calls of the model so far.
    fn calls(&self) -> usize {
        self.server.requests().iter().filter(|seen| seen.protocol().is_some()).count()
    }
}

/// A process that ends with the test.
struct Started(Option<Child>);

impl Started {
    fn end(mut self) -> (i32, String, String) {
        told(&self.0.take().unwrap().wait_with_output().unwrap())
    }

    fn kill(mut self) {
        let mut process = self.0.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(mut process) = self.0.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn dollars(tokens: u64) -> f64 {
    f64::from(u32::try_from(tokens).unwrap()) / 1e6
}

/// B1: two processes race for what is left of a day, which is enough for one call of either. One gets it, and the limit holds.
#[test]
fn two_processes_cannot_both_take_the_last_cent() {
    let stage = Stage::new();
    let prompt = stage.measure_prompt();
    let spent_before = stage.total()["cost"].as_f64().unwrap();
    let limit = spent_before + dollars(prompt + 1_500);
    stage.limit(&format!("cost_per_day = {limit}\n"));
    let calls_before = stage.calls();

    let racing = ["a", "b"].map(|key| stage.start(&["run", "-s", key, "hello"]));
    let mut ended = racing.map(Started::end);

    ended.sort();
    let [(first, ..), (second, _, errors)] = &ended;
    assert_eq!((*first, *second), (0, 6), "{ended:?}");
    assert!(errors.contains("limits.cost_per_day") && errors.contains("raise it"), "{errors}");
    assert!(
        errors.contains("to go on: raise limits.cost_per_day in ") && !errors.contains("to retry:"),
        "{errors}"
    );
    let shown = ["a", "b"].map(|key| stage.desk.run(&["sessions", "show", key]).1).concat();
    assert!(shown.contains("nothing spent") && !shown.contains("tokens unknown"), "{shown}");
    assert_eq!(stage.calls() - calls_before, 1);
    let spent = stage.total()["cost"].as_f64().unwrap();
    assert!(spent <= limit + 1e-9 && spent > limit - dollars(1_000), "{spent} of {limit}");
}

/// B1: a process that is killed during its call leaves a reservation. The next one settles it at the bound, once, and says so.
#[test]
fn a_call_whose_process_was_killed_is_settled_once_at_its_upper_bound() {
    let stage = Stage::new();
    stage.limit("cost_per_day = 1.0\n");
    *stage.end.lock().unwrap() = End::Stall;
    let running = stage.start(&["run", "-s", "a", "hello"]);
    eventually("the model is called", || stage.calls() == 1);

    running.kill();

    let totals = [stage.total(), stage.total()];
    let (calls, bound) = (&totals[0]["calls"], totals[0]["cost"].as_f64().unwrap());
    assert_eq!((calls, &totals[0]["at_upper_bound"]), (&json!(1), &json!(1)));
    assert!(bound > dollars(MAX_ANSWER), "{bound}");
    assert_eq!(totals[0], totals[1]);
    let (_, table, _) = stage.desk.run(&["statement"]);
    assert!(table.contains("1 call counted at the upper bound"), "{table}");
    *stage.end.lock().unwrap() = End::Close;
    let (code, _, errors) = stage.desk.run(&["run", "-s", "b", "hello"]);
    assert_eq!(code, 0, "{errors}");
    assert_eq!((&stage.total()["calls"], &stage.total()["at_upper_bound"]), (&json!(2), &json!(1)));
    let settled = stage.ledger().into_iter().filter(|record| matches!(record, SpendRecord::Settled(_)));
    assert_eq!(settled.count(), 2);
}

/// B3: `run` leaves with 7 where a soft limit asks, goes on after a yes, and leaves with 6 where the hard limit is reached.
#[test]
fn a_soft_limit_leaves_with_a_question_and_a_hard_one_ends_the_turn() {
    let stage = Stage::new();
    let prompt = stage.measure_prompt();
    // The call so far, and room for one and a half more below the soft limit.
    let used = stage.total()["input"].as_u64().unwrap() + stage.total()["output"].as_u64().unwrap();
    let soft = used + (prompt + MAX_ANSWER) + prompt / 2;
    stage.limit(&format!("tokens_per_day = {}\nsoft = 0.5\n", soft * 2));

    let first = stage.desk.run(&["run", "-s", "a", "hello"]);
    let asked = stage.desk.run(&["run", "-s", "a", "and more"]);

    assert_eq!(first.0, 0, "{first:?}");
    assert_eq!(asked.0, 7, "{asked:?}");
    assert!(asked.2.contains("50% of limits.tokens_per_day"), "{asked:?}");
    let calls = stage.calls();
    let answered = stage.desk.run(&["answer", "-s", "a", "yes"]);
    assert_eq!(answered.0, 0, "{answered:?}");
    let mut last = stage.desk.run(&["resume", "a"]);
    for _ in 0..8 {
        if last.0 != 0 {
            break;
        }
        last = stage.desk.run(&["run", "-s", "b", "once more"]);
    }
    assert_eq!(last.0, 6, "no second question, but the limit: {last:?}");
    assert!(last.2.contains("limits.tokens_per_day") && last.2.contains("raise it"), "{last:?}");
    assert!(stage.calls() > calls);
    let total = stage.total();
    assert!(total["input"].as_u64().unwrap() + total["output"].as_u64().unwrap() <= soft * 2, "{total}");
}

/// B2: the turn that the end of a task begins has this cause.
#[test]
fn a_turn_that_a_tasks_end_began_is_shown_as_such() {
    let background = json!({"command": "sleep 0.2", "description": "rests", "run_in_background": true});
    let desk = Desk::new(&json!([
        {"calls": [{"name": "exec", "arguments": background}], "usage": {"input": 10, "output": 1}},
        {"text": "It runs.", "usage": {"input": 20, "output": 2}},
        {"text": "It has ended.", "usage": {"input": 30, "output": 3}},
    ]));
    desk.configure("[memory]\nextract_at_tokens = 0\n");

    let (code, out, errors) = desk.run(&["run", "--wait", "-s", "a", "rest a little"]);

    assert_eq!(code, 0, "{out}{errors}");
    let items = desk.json(&["statement", "--json"])["items"].clone();
    let shown = |name: &str| items.as_array().unwrap().iter().find(|item| item["name"] == name).cloned();
    let turn = shown("turn").unwrap_or_else(|| panic!("{items}"));
    let task = shown("task").unwrap_or_else(|| panic!("{items}"));
    assert_eq!((&turn["calls"], &turn["input"]), (&json!(2), &json!(30)));
    assert_eq!((&task["calls"], &task["input"]), (&json!(1), &json!(30)));
}
