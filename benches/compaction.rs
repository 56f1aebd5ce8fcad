//! What contexts that only grow at their end, and compactions, cost and save. `scripts/bench` runs it; the figures with their machine
//! are in `docs/performance.md`. The number of turns can be given: `cargo bench -p longhaul-agent --bench compaction -- 300`.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use longhaul_agent::session::State;
use longhaul_agent::{Config, Runtime};
use longhaul_context::{
    AnswerForm, ContextOutline, SummaryMaterial, TokenCalibration, WrittenSummary, build_summary_prompt,
    changed_files_pin, estimate, estimate_items, merge_summaries, render_summary, user_messages,
};
use longhaul_journal::Journal;
use longhaul_model::{
    AnswerPart, AnswerStream, CallPermit, Model, ModelFailure, ModelSpec, Models, Protocol, Purpose, Request,
    StopKind, StopReason,
};
use longhaul_protocol::{Item, Record, Role, Summary};
use longhaul_testkit::wire::{MemoryTransport, ReceivedRequest, Reply, Script, ScriptedAnswer};
use longhaul_testkit::{RecordingModel, TestHome, records_of};
use serde_json::{Value, json};

/// A turn of so many steps, in such a window.
const STEPS: usize = 200;
const WINDOW_OF_STEPS: u64 = 60_000;
/// The least that a request shares with the one before it, within an epoch.
const LEAST_SHARED: f64 = 0.97;

/// An epoch of 10,000 items: in each turn what was asked, these steps of a text, a call and its result, and an answer.
const TURNS_OF_EPOCH: usize = 200;
const STEPS_OF_EPOCH: usize = 16;
const ITEMS: usize = 10_000;
/// Planning takes at most so many times as long as folding.
const MOST_PLANNING: f64 = 3.0;
const ROUNDS: usize = 7;

/// A conversation of so many turns, in such a window, of which a quarter is for the answer.
const TURNS: usize = 1_000;
const WINDOW: u64 = 32_000;

const NO_WINDOW: u64 = 1_000_000_000;
const LINES: usize = 40_000;

fn main() {
    let turns = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(TURNS);
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for (name, protocol) in [("openai-chat", Protocol::OpenaiChat), ("anthropic", Protocol::Anthropic)] {
        tokio.block_on(shared_with_the_one_before(name, protocol));
    }
    tokio.block_on(planning());
    tokio.block_on(bytes_of_a_conversation(turns));
}

/// A place with a file to read in.
fn place() -> TestHome {
    let place = TestHome::in_memory();
    let lines: String =
        (0..LINES).map(|line| format!("{line:05} the tide of the day, and its wind\n")).collect();
    std::fs::write(place.work().join("log.txt"), lines).expect("a file");
    place
}

fn config(place: &TestHome, window: u64) -> Config {
    let mut config = Config::at(place.home()).with_work_dir(&place.work());
    config.settings.model.context_window = Some(window);
    config.settings.limits.steps = 0;
    config
}

/// So many lines of the file; each time others.
fn reads(number: usize, lines: usize) -> Value {
    json!({"path": "log.txt", "offset": number * 40 % LINES + 1, "limit": lines})
}

fn summary() -> Value {
    let done: Vec<String> =
        (0..12).map(|number| format!("looked at part {number} of the log, no gap in it")).collect();
    json!({"goal": "Know the tides.", "done": done, "next_action": "look at the next part",
        "decisions": ["begin at the top, because the file is sorted"], "files": ["log.txt: a line a minute"]})
}

/// A real codec over a wire without network, which hands every body to this and plays these answers; summaries besides.
fn behind_a_wire(
    protocol: Protocol,
    window: u64,
    home: &Path,
    mut answers: VecDeque<ScriptedAnswer>,
    mut heard: impl FnMut(Vec<u8>) + Send + 'static,
) -> Arc<dyn Model> {
    let written = ScriptedAnswer::nothing().call("write_summary", summary());
    let script = Script::by(move |seen: &ReceivedRequest| {
        heard(seen.body.clone());
        let is_summary = is_summary(&seen.body);
        let next = if is_summary { Some(written.clone()) } else { answers.pop_front() };
        Reply::frames(next.unwrap_or_else(|| ScriptedAnswer::text("Done.")).frames(protocol))
    });
    let wanted = ModelSpec {
        name: "bench/m".to_owned(),
        base_url: Some("https://model.test/v1".to_owned()),
        protocol: Some(protocol),
        context_window: Some(window),
        ..ModelSpec::default()
    };
    let models =
        Models::at(home).expect("models").through(Arc::new(MemoryTransport::new(script.forgetful())));
    models.open(&wanted).expect("a model")
}

fn is_summary(body: &[u8]) -> bool {
    let mark = b"\"name\":\"write_summary\"";
    body[..body.len().min(4_096)].windows(mark.len()).any(|part| part == mark)
}

/// How many bytes two texts begin with in common.
fn shared(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

#[allow(clippy::cast_precision_loss, reason = "a ratio needs no more")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// M16: the part of a request that the next one begins with, whole bodies, cache marks aside.
async fn shared_with_the_one_before(name: &str, protocol: Protocol) {
    let place = place();
    let bodies: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let step = |number| ScriptedAnswer::text("I look at the next part.").call("read_file", reads(number, 60));
    let model = behind_a_wire(protocol, WINDOW_OF_STEPS, &place.home(), (1..STEPS).map(step).collect(), {
        let bodies = bodies.clone();
        move |body| bodies.lock().expect("nobody panics").push(without_cache_marks(&body))
    });
    let runtime = Runtime::with_model(config(&place, WINDOW_OF_STEPS), model).await.expect("a runtime");
    let session = runtime.session("steps").await.expect("a session");
    let ended = session.send("look at all of it").await.expect("a turn");
    assert_eq!(ended.text, "Done.", "{:?}", ended.error);
    runtime.shutdown().await.expect("an end");

    let (mut within, mut between) = (Vec::new(), Vec::new());
    let (mut before, mut is_new): (Option<Vec<u8>>, bool) = (None, false);
    for body in std::mem::take(&mut *bodies.lock().expect("nobody panics")) {
        if is_summary(&body) {
            is_new = true;
            continue;
        }
        if let Some(before) = before {
            let share = ratio(shared(&before, &body), before.len());
            if is_new { between.push(share) } else { within.push(share) }
        }
        (before, is_new) = (Some(body), false);
    }
    let least = |shares: &[f64]| shares.iter().copied().fold(f64::INFINITY, f64::min);
    let mean = |shares: &[f64]| ratio_of(shares.iter().sum(), shares.len());
    let (pairs, epochs) = (within.len(), between.len() + 1);
    let about = format!("{name}: shared with the request before, {pairs} pairs");
    println!(
        "{about:<66} {:>8.4} least   {:>8.4} mean   target ≥ {LEAST_SHARED}",
        least(&within),
        mean(&within)
    );
    let about = format!("{name}: the same where one of {epochs} epochs began");
    println!("{about:<66} {:>8.4} least   {:>8.4} mean", least(&between), mean(&between));
    assert!(epochs > 2 && least(&within) >= LEAST_SHARED, "{within:?}");
}

#[allow(clippy::cast_precision_loss, reason = "a mean needs no more")]
fn ratio_of(sum: f64, count: usize) -> f64 {
    sum / count.max(1) as f64
}

fn without_cache_marks(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    text.replace(r#","cache_control":{"type":"ephemeral"}"#, "").into_bytes()
}

/// A model without a wire that takes no time: some steps, then an answer, and so on.
struct Instantly;

struct Parts(std::vec::IntoIter<AnswerPart>);

#[async_trait::async_trait]
impl Model for Instantly {
    fn name(&self) -> &'static str {
        "scripted/instantly"
    }

    async fn ask(
        &self,
        request: Request,
        _permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let call = |name: &str, arguments: &Value| {
            let name = name.to_owned();
            let start = AnswerPart::CallStart { wire_id: None, name };
            vec![
                start,
                AnswerPart::ArgumentsDelta(arguments.to_string()),
                AnswerPart::CallStop { signature: None },
            ]
        };
        let text = |text: &str| {
            vec![AnswerPart::TextStart, AnswerPart::TextDelta(text.to_owned()), AnswerPart::TextStop]
        };
        let mut parts = match request.purpose {
            Purpose::Summary { .. } => call("write_summary", &summary()),
            Purpose::Extract { .. } | Purpose::Consolidate { .. } | Purpose::Search => {
                text("Nothing starts what would ask for this.")
            }
            Purpose::Step { answers_before } => {
                let number = answers_before + request.finished_steps();
                let mut parts = text("I look at the next part of it, from where the one before ended.");
                if number % (STEPS_OF_EPOCH + 1) < STEPS_OF_EPOCH {
                    parts.extend(call("read_file", &reads(number, 12)));
                }
                parts
            }
        };
        parts.push(AnswerPart::End(StopReason::new(StopKind::Finished, "stop")));
        Ok(Box::new(Parts(parts.into_iter())))
    }
}

#[async_trait::async_trait]
impl AnswerStream for Parts {
    async fn next(&mut self) -> Result<AnswerPart, ModelFailure> {
        Ok(self.0.next().expect("nobody asks after the end"))
    }
}

/// What it takes to plan a compaction of 10,000 items, and to make one, against folding the records of those items.
async fn planning() {
    let place = place();
    let runtime =
        Runtime::with_model(config(&place, NO_WINDOW), Arc::new(Instantly)).await.expect("a runtime");
    let session = runtime.session("epoch").await.expect("a session");
    for turn in 0..TURNS_OF_EPOCH {
        session
            .send(format!("Look at part {turn}, please, and tell me what is odd about it."))
            .await
            .expect("a turn");
    }
    let id = session.id().expect("it has begun");
    runtime.shutdown().await.expect("an end");
    let journal = place.journal().await;
    let records = records_of(&*journal, id).await;
    journal.close().await;
    let state = folded(&records);
    assert_eq!(state.items.len(), ITEMS);

    let (mut folds, mut plans, mut tight, mut whole) = (vec![], vec![], vec![], vec![]);
    let all = estimate_items(&state.items);
    for _ in 0..ROUNDS {
        folds.push(timed(|| folded(&records)));
        plans.push(timed(|| planned(&state, all)));
        tight.push(timed(|| planned(&state, all / 8)));
        whole.push(compacted(&place).await);
    }
    let [folds, plans, tight, whole] = [folds, plans, tight, whole].map(median);
    let count = records.len();
    println!(
        "{:<66} {:>8.1} ms",
        format!("folding the {count} records of {ITEMS} items"),
        milliseconds(folds)
    );
    let mut missed = Vec::new();
    for (name, time) in [
        ("planning a compaction of them", plans),
        ("the same, where the summariser has room for an eighth", tight),
    ] {
        let ratio = time.as_secs_f64() / folds.as_secs_f64();
        let verdict = if ratio <= MOST_PLANNING { "met" } else { "MISSED" };
        println!(
            "{name:<66} {:>8.1} ms   {ratio:>6.2}   target ≤ {MOST_PLANNING} {verdict}",
            milliseconds(time)
        );
        if ratio > MOST_PLANNING {
            missed.push(name);
        }
    }
    println!(
        "{:<66} {:>8.1} ms   {:>6.2}",
        "the whole compaction: read, fold, plan, summary, append, fold",
        milliseconds(whole),
        whole.as_secs_f64() / folds.as_secs_f64()
    );
    assert!(missed.is_empty(), "{missed:?}");
}

fn folded(records: &[Record]) -> State {
    let mut state = State::default();
    records.iter().for_each(|record| state.apply(record).expect("they can be read"));
    state
}

/// Everything of a compaction that is decided by looking at the items: which stay, which could be stubs, what a model is asked in so many
/// tokens, what becomes of its answer, and what all of it comes to.
fn planned(state: &State, most: u64) -> (usize, u64) {
    let calibration = TokenCalibration::default();
    let State { items, places, preface_len: preface, .. } = state;
    let outline = ContextOutline {
        items,
        places,
        preface: *preface,
        open_turn: None,
        requests: u64::MAX,
        calibration: &calibration,
    };
    let (keep, none, stubs) = (outline.kept_window(8_000), outline.kept_window(0), outline.plan_stubs(&[]));
    let asked = build_summary_prompt(
        &SummaryMaterial { previous: None, items, focus: None },
        AnswerForm::ToolCall,
        most,
    );
    let written = WrittenSummary {
        summary: Summary { goal: "Know the tides.".to_owned(), ..Summary::default() },
        withdrawn: vec![],
    };
    let merged = merge_summaries(None, written, &user_messages(items));
    let text = render_summary(Some(&merged), None, most / 4);
    let files = changed_files_pin(&state.changed_files, most / 20);
    let kept: Vec<Item> = items[keep.from..].iter().map(|item| (**item).clone()).collect();
    let sizes = asked.text.len()
        + text.len()
        + kept.len()
        + none.requests.len()
        + files.map_or(0, |pin| pin.text.len());
    (sizes, stubs.gains + estimate_items(items))
}

/// The time of a compaction in a copy of this place's home.
async fn compacted(place: &TestHome) -> Duration {
    let copy = TestHome::in_memory();
    std::fs::create_dir_all(copy.home()).expect("a folder");
    for file in std::fs::read_dir(place.home()).expect("a home").flatten() {
        if file.file_type().is_ok_and(|kind| kind.is_file()) {
            std::fs::copy(file.path(), copy.home().join(file.file_name())).expect("a copy");
        }
    }
    let runtime =
        Runtime::with_model(config(&copy, NO_WINDOW), Arc::new(Instantly)).await.expect("a runtime");
    let session = runtime.session("epoch").await.expect("a session");
    // With a turn more the session is in memory, as it is when it has become large.
    session.send("Look at one more part.").await.expect("a turn");
    assert!(session.state().await.expect("a state").items.len() > ITEMS);
    let began = Instant::now();
    session.compact().await.expect("a compaction").expect("it was done");
    let time = began.elapsed();
    runtime.shutdown().await.expect("an end");
    time
}

fn timed<T>(work: impl Fn() -> T) -> Duration {
    let began = Instant::now();
    std::hint::black_box(work());
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// What a client has sent.
#[derive(Default)]
struct Sent {
    requests: usize,
    bytes: usize,
    /// Not among those that the request before began with.
    new: usize,
    last: Vec<u8>,
}

impl Sent {
    fn add(&mut self, body: Vec<u8>) {
        self.requests += 1;
        self.bytes += body.len();
        self.new += body.len() - shared(&self.last, &body);
        self.last = body;
    }
}

/// What was said in a turn, by the user and, step by step, by the model: of many sizes, but always the same.
fn conversation(turns: usize) -> (Vec<String>, VecDeque<ScriptedAnswer>) {
    let words = |from: usize, count: usize| {
        let words = [
            "gate", "tide", "berth", "crane", "pilot", "radar", "tariff", "harbour", "signal", "north",
            "since",
        ];
        (0..count).map(|index| words[(from * 7 + index * index) % words.len()]).collect::<Vec<_>>().join(" ")
    };
    let inputs =
        (0..turns).map(|turn| format!("Turn {turn}: {}?", words(turn, 10 + turn * 37 % 90))).collect();
    let mut answers = VecDeque::new();
    let mut number = 0;
    for turn in 0..turns {
        // Two turns of five are talk; the others look at one to three things.
        let looks = [0, 1, 0, 3, 2][turn % 5];
        for look in 0..looks {
            number += 1;
            let lines = 10 + (turn * 13 + look * 29) % 90;
            answers.push_back(ScriptedAnswer::text("I look.").call("read_file", reads(number, lines)));
        }
        answers.push_back(ScriptedAnswer::text(&words(turn + 3, 40 + turn * 53 % 260)));
    }
    (inputs, answers)
}

/// The bytes of a conversation: by this runtime, by a client that keeps everything, and by one that keeps the newest exchanges.
async fn bytes_of_a_conversation(turns: usize) {
    let (compacting, _) = converse(turns, WINDOW).await;
    let (growing, requests) = converse(turns, NO_WINDOW).await;
    let steps: Vec<&Request> =
        requests.iter().filter(|request| matches!(request.purpose, Purpose::Step { .. })).collect();
    let usable = WINDOW - WINDOW / 4;
    let newest = largest_number(&steps, usable);
    let truncating = truncated(&steps, newest).await;
    println!(
        "{turns} turns, {} steps, a window of {WINDOW} tokens; megabytes sent, and how many were not the beginning of the request before",
        steps.len()
    );
    let rows = [
        ("compacting".to_owned(), &compacting),
        ("never compacting (no window would do)".to_owned(), &growing),
        (format!("truncating to the newest {newest} exchanges"), &truncating),
    ];
    for (name, (sent, misses)) in rows {
        println!(
            "{name:<46} {:>6} requests {:>9.1} MB {:>9.1} MB new, {misses:>5} share no message with the one before",
            sent.requests,
            megabytes(sent.bytes),
            megabytes(sent.new)
        );
    }
}

#[allow(clippy::cast_precision_loss, reason = "a figure needs no more")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

/// What is sent in a conversation in such a window, how many requests share no message with the one before, and the requests.
async fn converse(turns: usize, window: u64) -> ((Sent, usize), Vec<Request>) {
    let place = place();
    let sent: Arc<Mutex<Sent>> = Arc::default();
    let (inputs, answers) = conversation(turns);
    let model = behind_a_wire(Protocol::OpenaiChat, window, &place.home(), answers, {
        let sent = sent.clone();
        move |body| sent.lock().expect("nobody panics").add(body)
    });
    let model = RecordingModel::new(model);
    let runtime = Runtime::with_model(config(&place, window), model.clone()).await.expect("a runtime");
    let session = runtime.session("talk").await.expect("a session");
    for input in inputs {
        let ended = session.send(input).await.expect("a turn");
        assert_eq!(ended.error, None);
    }
    runtime.shutdown().await.expect("an end");
    let requests = model.requests();
    let sent = std::mem::take(&mut *sent.lock().expect("nobody panics"));
    ((sent, misses(requests.iter())), requests)
}

fn misses<'a>(requests: impl Iterator<Item = &'a Request>) -> usize {
    let firsts: Vec<_> = requests.map(|request| request.items.first()).collect();
    firsts.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Where the exchanges of a request begin.
fn exchanges(request: &Request) -> Vec<usize> {
    let is_user = |item: &Item| matches!(item, Item::Text { role: Role::User, .. });
    (0..request.items.len()).filter(|index| is_user(&request.items[*index])).collect()
}

/// The same request with the newest exchanges alone.
fn with_newest(request: &Request, number: usize) -> Request {
    let begins = exchanges(request);
    let from = begins[begins.len().saturating_sub(number)];
    Request { items: request.items[from..].to_vec(), ..request.clone() }
}

/// So many exchanges always fit.
fn largest_number(steps: &[&Request], usable: u64) -> usize {
    let fits = |number: usize| {
        steps.iter().all(|request| {
            let Request { system, tools, items, .. } = with_newest(request, number);
            estimate(&system, &tools, &items) <= usable
        })
    };
    (1..).take_while(|number| fits(*number)).last().expect("one exchange fits")
}

async fn truncated(steps: &[&Request], newest: usize) -> (Sent, usize) {
    let place = TestHome::in_memory();
    let sent: Arc<Mutex<Sent>> = Arc::default();
    let model = behind_a_wire(Protocol::OpenaiChat, WINDOW, &place.home(), VecDeque::new(), {
        let sent = sent.clone();
        move |body| sent.lock().expect("nobody panics").add(body)
    });
    let requests: Vec<Request> = steps.iter().map(|request| with_newest(request, newest)).collect();
    for request in &requests {
        // Only what is sent matters.
        drop(
            model
                .ask(request.clone(), &CallPermit::unreserved(longhaul_protocol::Cause::Turn))
                .await
                .expect("an answer"),
        );
    }
    let sent = std::mem::take(&mut *sent.lock().expect("nobody panics"));
    (sent, misses(requests.iter()))
}
