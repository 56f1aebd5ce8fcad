//! What a limit costs on the way to a model call, against an append alone in the same run. `scripts/bench` runs it; the
//! figures with their machine are in `docs/performance.md`.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use longhaul_agent::{Config, Runtime, RuntimeBuilder, Session};
use longhaul_journal::{Append, Home, Journal, SqliteJournal};
use longhaul_model::{
    AnswerPart, AnswerStream, CallPermit, Capabilities, ContextWindow, Model, ModelFailure, Prices, Request,
    StopKind, StopReason, TokenCounts, WindowSource,
};
use longhaul_protocol::{InboxRecord, Input, InputId, JoinMode, SessionId, StreamName};
use longhaul_testkit::FaultyJournal;

const ROUNDS: usize = 201;
/// The most that a reservation may cost.
const TARGET: Duration = Duration::from_micros(400);

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    tokio.block_on(time_reservations(folder.path()));
    tokio.block_on(count_appends(&folder.path().join("counted")));
    tokio.block_on(call_without_a_ledger(&folder.path().join("hung")));
}

/// A model that takes no time, and notes when it was asked and how many appends the ledger had.
#[derive(Default)]
struct Instantly {
    asked: Mutex<Vec<(Instant, usize)>>,
    ledger: Option<Arc<FaultyJournal>>,
}

struct Said(Vec<AnswerPart>);

#[async_trait::async_trait]
impl Model for Instantly {
    fn name(&self) -> &'static str {
        "scripted/instantly"
    }

    async fn capabilities(&self) -> Capabilities {
        Capabilities {
            prices: Some(Prices { input: 1.0, output: 1.0, cached: None, written: None }),
            window: Some(ContextWindow { tokens: 1_000_000, source: WindowSource::Config }),
            ..Capabilities::default()
        }
    }

    async fn ask(
        &self,
        _request: Request,
        _permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let appends = self.ledger.as_ref().map_or(0, |ledger| ledger.appends().len());
        self.asked.lock().expect("the calls").push((Instant::now(), appends));
        let tokens = TokenCounts { input: Some(10), output: Some(1), ..TokenCounts::default() };
        let parts = [
            AnswerPart::TextStart,
            AnswerPart::TextDelta("Done.".to_owned()),
            AnswerPart::TextStop,
            AnswerPart::Usage(tokens),
            AnswerPart::End(StopReason::new(StopKind::Finished, "stop")),
        ];
        Ok(Box::new(Said(parts.into_iter().rev().collect())))
    }
}

#[async_trait::async_trait]
impl AnswerStream for Said {
    async fn next(&mut self) -> Result<AnswerPart, ModelFailure> {
        Ok(self.0.pop().expect("nobody asks after the end"))
    }
}

/// A session of a runtime, with its model.
struct Stage {
    runtime: Runtime,
    session: Session,
    model: Arc<Instantly>,
}

impl Stage {
    async fn open(folder: &Path, limit: f64, counts: bool) -> Self {
        let home = Home::create(&folder.join("home")).expect("a home");
        let journal: Arc<dyn Journal> = Arc::new(SqliteJournal::open(&home).await.expect("a journal"));
        let ledger = counts.then(|| FaultyJournal::of_ledger(journal.clone(), None));
        let journal = ledger.clone().map_or(journal, |ledger| ledger);
        let mut config = Config::at(folder.join("home")).with_work_dir(folder);
        config.settings.memory.extract_at_tokens = 0;
        config.settings.limits.cost_per_day = limit;
        let model = Arc::new(Instantly { ledger, ..Instantly::default() });
        let builder = RuntimeBuilder::new(config).model(model.clone()).journal(journal);
        let runtime = builder.open().await.expect("a runtime");
        let session = runtime.session("a").await.expect("a session");
        Self { runtime, session, model }
    }

    /// The time from the input to the call of the model.
    async fn time_to_call(&self) -> Duration {
        let since = Instant::now();
        self.session.send("hello").await.expect("a turn");
        let (asked, _) = *self.model.asked.lock().expect("the calls").last().expect("a call");
        asked - since
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

/// What a reservation adds to the time until the model is called.
async fn time_reservations(folder: &Path) {
    let free = Stage::open(&folder.join("free"), 0.0, false).await;
    let limited = Stage::open(&folder.join("limited"), 1e6, false).await;
    let inbox = StreamName::inbox(SessionId::generate());
    let (mut without, mut with, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    // Taken in turn, so that a slow moment hits all alike.
    for _ in 0..ROUNDS {
        without.push(free.time_to_call().await);
        with.push(limited.time_to_call().await);
        let input = Input::new(InputId::generate(), "hello", JoinMode::Join);
        let append = Append::to(&inbox).record(InboxRecord::Input(input).encode());
        let since = Instant::now();
        limited.runtime.journal().append(append).await.expect("an append");
        alone.push(since.elapsed());
    }
    let (without, with, alone) = (median(without), median(with), median(alone));
    let reservation = with.saturating_sub(without);
    println!("{:<52} {:>16.2?}   the floor", "an append alone", alone);
    println!("{:<52} {:>16.2?}   nothing is waited for", "to the call, without limits", without);
    println!("{:<52} {:>16.2?}", "to the call, with a limit", with);
    let (ratio, met) = (reservation.as_secs_f64() / alone.as_secs_f64(), verdict(reservation <= TARGET));
    println!(
        "{:<52} {reservation:>16.2?}   ratio {ratio:>6.2}   target ≤ {TARGET:?} {met}",
        "so a reservation"
    );
    for stage in [free, limited] {
        stage.runtime.shutdown().await.expect("an end");
    }
}

/// How many appends to the ledger a call waits for.
async fn count_appends(folder: &Path) {
    let stage = Stage::open(folder, 1e6, true).await;
    let ledger = stage.model.ledger.clone().expect("a journal that counts");
    let mut most = 0;
    for round in 0..10 {
        let before = ledger.appends().len();
        stage.time_to_call().await;
        let (_, appends) = *stage.model.asked.lock().expect("the calls").last().expect("a call");
        // The first one of a home reads and opens the ledger.
        if round > 0 {
            most = most.max(appends - before);
        }
    }
    println!(
        "{:<52} {most:>16}   target ≤ 1 {}",
        "appends to the ledger on the way to a call",
        verdict(most <= 1)
    );
    stage.runtime.shutdown().await.expect("an end");
}

/// Without limits, turns end although the ledger never answers.
async fn call_without_a_ledger(folder: &Path) {
    let stage = Stage::open(folder, 0.0, true).await;
    stage.model.ledger.as_ref().expect("a journal that hangs").hang_family("spend");
    let turns = tokio::time::timeout(Duration::from_secs(10), async {
        for _ in 0..10 {
            stage.time_to_call().await;
        }
    });
    println!(
        "{:<52} {:>16}   {}",
        "turns without limits and without a ledger",
        10,
        verdict(turns.await.is_ok())
    );
    stage.runtime.shutdown().await.expect("an end");
}
