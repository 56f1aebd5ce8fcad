//! The ledger: limits hold together, over processes and crashes, and the statement counts each call once.
//!
//! | durable | must happen | must never happen |
//! | --- | --- | --- |
//! | nothing of the call | the call is made once more | |
//! | `spend_reserved` | it is settled once: by the session's `usage`, otherwise at the bound | a reservation that stays open |
//! | `spend_settled` | nothing | a second settlement |
//! | either of the two, and the journal reported an error | the same as if it had not | a second reservation; a wait for itself |
//! | only the session's `usage` (no limits) | it is reserved and settled by that, once | a call that is missing |

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_agent::fork::fork_session;
use longhaul_agent::{Config, Runtime, RuntimeBuilder, StatementBy, StatementQuery, statement};
use longhaul_journal::{Journal, records};
use longhaul_model::{
    AnswerPart, AnswerStream, CallPermit, Capabilities, ContextWindow, Model, ModelFailure, Prices, Request,
    ScriptedModel, StopKind, StopReason, TokenCounts, WindowSource,
};
use longhaul_protocol::{AttemptId, Limit, Outcome, SpendRecord, SpendSource, StreamName, TurnEnded};
use longhaul_testkit::{Crash, CrashMoment, FaultyJournal, GatedModel, TestHome};
use serde_json::{Value, json};

use crate::{script, sound_records};

/// A dollar for a million tokens.
const PRICES: Prices = Prices { input: 1.0, output: 1.0, cached: None, written: None };

fn capabilities() -> Capabilities {
    let window = Some(ContextWindow { tokens: 100_000, source: WindowSource::Config });
    Capabilities { prices: Some(PRICES), window, max_output: Some(4_000), ..Capabilities::default() }
}

pub(crate) fn priced(answers: &Value) -> ScriptedModel {
    script(answers).with_capabilities(capabilities())
}

/// An answer that costs so many millionths of a dollar.
pub(crate) fn costing(micros: u64) -> Value {
    json!({"text": "Fine.", "usage": {"input": micros, "output": 0}})
}

pub(crate) fn limited(
    place: &TestHome,
    set: impl FnOnce(&mut longhaul_agent::config::LimitSettings),
) -> Config {
    let mut config = place.config();
    config.settings.memory.extract_at_tokens = 0;
    set(&mut config.settings.limits);
    config
}

pub(crate) async fn open(config: Config, model: impl Model + 'static) -> Runtime {
    Runtime::with_model(config, Arc::new(model)).await.unwrap()
}

/// A model whose answers use all the room that they have.
struct Greedy;

struct GreedyAnswer(Vec<AnswerPart>);

#[async_trait]
impl Model for Greedy {
    fn name(&self) -> &str {
        "test/greedy"
    }

    async fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    async fn ask(
        &self,
        request: Request,
        _permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let input = Some(longhaul_context::estimate(&request.system, &request.tools, &request.items));
        let tokens = TokenCounts { input, output: request.max_output, ..TokenCounts::default() };
        let end = AnswerPart::End(StopReason::new(StopKind::Finished, "stop"));
        let parts = [
            end,
            AnswerPart::Usage(tokens),
            AnswerPart::TextStop,
            AnswerPart::TextDelta("Fine.".to_owned()),
            AnswerPart::TextStart,
        ];
        Ok(Box::new(GreedyAnswer(parts.into())))
    }
}

#[async_trait]
impl AnswerStream for GreedyAnswer {
    async fn next(&mut self) -> Result<AnswerPart, ModelFailure> {
        Ok(self.0.pop().expect("nothing is read after the end"))
    }
}

/// The ledger, record by record.
async fn ledger(journal: &dyn Journal) -> Vec<SpendRecord> {
    let records = records(journal, &StreamName::spend(), 1).collect().await.unwrap();
    records.iter().map(|record| SpendRecord::decode(record).unwrap()).collect()
}

/// The reservations and the settlements of the ledger, by attempt.
pub(crate) async fn ledger_attempts(
    journal: &dyn Journal,
) -> (Vec<AttemptId>, Vec<(AttemptId, SpendSource)>) {
    let (mut reserved, mut settled) = (Vec::new(), Vec::new());
    for record in ledger(journal).await {
        match record {
            SpendRecord::Reserved(call) => reserved.push(call.attempt),
            SpendRecord::Settled(call) => settled.push((call.attempt, call.source)),
            _ => {}
        }
    }
    reserved.sort_unstable();
    settled.sort_unstable_by_key(|(attempt, _)| *attempt);
    (reserved, settled)
}

pub(crate) async fn total(journal: &dyn Journal) -> (u64, f64) {
    let total = statement(journal, &StatementQuery::default()).await.unwrap().total;
    (total.calls, total.cost.unwrap())
}

pub(crate) fn reached(ended: &TurnEnded, limit: Limit, name: &str) -> bool {
    (ended.outcome, ended.limit) == (Outcome::Limit, Some(limit))
        && ended.error.as_ref().is_some_and(|error| error.contains(name))
}

/// B1: two runtimes on one home, each with its own journal, race for what is left. Their calls use everything that they
/// reserve, so the limit would be passed if two of them took the same cent.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_never_pass_a_limit_together() {
    let place = TestHome::new();
    let limit = 0.05;
    let config = limited(&place, |limits| limits.cost_per_day = limit);
    let runtimes = [open(config.clone(), Greedy).await, open(config.clone(), Greedy).await];
    let mut sending = tokio::task::JoinSet::new();
    for number in 0..12 {
        let session = runtimes[number % 2].session(&format!("s{number}")).await.unwrap();
        sending.spawn(async move { session.send("hello").await.unwrap() });
    }

    let ended = sending.join_all().await;

    let completed = ended.iter().filter(|ended| ended.outcome == Outcome::Completed).count();
    let stopped = ended.iter().filter(|ended| reached(ended, Limit::Cost, "limits.cost_per_day")).count();
    assert!(completed >= 2 && stopped >= 2 && completed + stopped == 12, "{ended:?}");
    let (calls, spent) = total(&*runtimes[0].journal()).await;
    assert_eq!(calls, completed as u64);
    assert!(spent <= limit && spent > limit / 2.0, "{spent}");
    for runtime in runtimes {
        runtime.shutdown().await.unwrap();
    }
}

/// The tokens that the first prompt of a session is reserved with.
pub(crate) async fn first_prompt_tokens() -> u64 {
    let place = TestHome::in_memory();
    let runtime = open(limited(&place, |_| {}), priced(&json!([costing(10)]))).await;
    runtime.session("a").await.unwrap().send("hello").await.unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let records = ledger(&*journal).await;
    journal.close().await;
    let tokens = records.iter().find_map(|record| match record {
        SpendRecord::Reserved(reserved) => Some(reserved.tokens),
        _ => None,
    });
    tokens.unwrap() - capabilities().max_output.unwrap()
}

/// B1: what is left of a limit is for the call that waits, once the call that held it has used less.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_one_that_may_use_less_than_it_reserved() {
    let place = TestHome::new();
    // The first call takes all of it, with less room for its answer.
    let limit = first_prompt_tokens().await + 2_000;
    let config = limited(&place, |limits| limits.tokens_per_day = limit);
    let (model, gate) = GatedModel::new(priced(&json!([costing(100)])));
    let runtime = Runtime::with_model(config, model).await.unwrap();
    let (first, second) = (runtime.session("a").await.unwrap(), runtime.session("b").await.unwrap());
    let first = tokio::spawn(async move { first.send("hello").await });
    gate.reached().await;
    let second = tokio::spawn(async move { second.send("hello").await });

    let early = tokio::time::timeout(Duration::from_millis(300), gate.reached()).await;
    gate.open();
    gate.reached().await;
    gate.open();

    assert!(early.is_err(), "the second call has to wait");
    for ended in [first, second] {
        assert_eq!(ended.await.unwrap().unwrap().outcome, Outcome::Completed);
    }
    runtime.shutdown().await.unwrap();
}

/// B1, T9: each limit ends the turn that would pass it, before the call, and over restarts.
#[tokio::test(flavor = "multi_thread")]
async fn each_limit_holds_over_restarts() {
    type Setting = fn(&mut longhaul_agent::config::LimitSettings);
    let cases: [(&str, Limit, Setting); 6] = [
        ("limits.cost_per_session", Limit::Cost, |limits| limits.cost_per_session = 0.05),
        ("limits.cost_per_day", Limit::Cost, |limits| limits.cost_per_day = 0.05),
        ("limits.cost_per_month", Limit::Cost, |limits| limits.cost_per_month = 0.05),
        ("limits.cost_total", Limit::Cost, |limits| limits.cost_total = 0.05),
        ("limits.tokens_per_day", Limit::Tokens, |limits| limits.tokens_per_day = 50_000),
        ("limits.tokens_per_month", Limit::Tokens, |limits| limits.tokens_per_month = 50_000),
    ];
    for (name, limit, set) in cases {
        let place = TestHome::in_memory();
        let mut ended = Vec::new();
        for _ in 0..3 {
            let runtime =
                open(limited(&place, set), priced(&json!([costing(21_000), costing(21_000)]))).await;
            let session = runtime.session("a").await.unwrap();
            ended.push(session.send("hello").await.unwrap());
            runtime.shutdown().await.unwrap();
        }

        assert_eq!(ended[1].outcome, Outcome::Completed, "{name}: {ended:?}");
        assert!(reached(&ended[2], limit, name), "{name}: {ended:?}");
        let session = statement_of(&place, StatementBy::Session).await;
        assert_eq!(session, [("a".to_owned(), 2, Some(0.042))], "{name}");
    }
}

async fn statement_of(place: &TestHome, by: StatementBy) -> Vec<(String, u64, Option<f64>)> {
    let journal = place.journal().await;
    let query = StatementQuery { by, ..StatementQuery::default() };
    let items = statement(&*journal, &query).await.unwrap().items;
    journal.close().await;
    items.into_iter().map(|item| (item.name, item.calls, item.cost)).collect()
}

/// B2: where no limit is set, a turn is in the statement of its runtime when it has ended, and every reservation is settled.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_without_limits_is_in_the_statement_when_it_ends() {
    let place = TestHome::new();
    let call = json!({"calls": [{"name": "list_files", "arguments": {"path": "."}}], "usage": {"input": 10, "output": 0}});
    let runtime = open(limited(&place, |_| {}), priced(&json!([call, costing(20)]))).await;
    let session = runtime.session("a").await.unwrap();

    session.send("hello").await.unwrap();

    let total = runtime.statement(&StatementQuery::default()).await.unwrap().total;
    assert_eq!((total.calls, total.cost), (2, Some(0.000_03)));
    let (reserved, settled) = ledger_attempts(&*runtime.journal()).await;
    assert_eq!(reserved, settled.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>());
    assert!(settled.iter().all(|(_, source)| *source == SpendSource::Provider), "{settled:?}");
    runtime.shutdown().await.unwrap();
}

/// B1, B2: where no limit is set, nothing waits for the ledger, even if it never answers. If the process dies then, the
/// calls are found in their session, and counted once, also in a fork and when the ledger is opened anew.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_the_ledger_lost_in_a_crash_are_counted_once() {
    let place = TestHome::new();
    {
        let first = open(limited(&place, |_| {}), priced(&json!([costing(5)]))).await;
        first.session("earlier").await.unwrap().send("hello").await.unwrap();
        first.shutdown().await.unwrap();
    }
    // The usage from before the ledger is taken over now, and not when the crash is found.
    assert_eq!(statement_of(&place, StatementBy::Cause).await, [("turn".to_owned(), 1, Some(0.000_005))]);
    let journal = FaultyJournal::of_ledger(place.journal().await, None);
    journal.hang_family("spend");
    let runtime = RuntimeBuilder::new(limited(&place, |_| {}))
        .model(Arc::new(priced(&json!([costing(10), costing(20)]))))
        .journal(journal.clone())
        .open()
        .await
        .unwrap();
    let session = runtime.session("a").await.unwrap();

    session.send("one").await.unwrap();
    session.send("two").await.unwrap();
    journal.hang();
    journal.release_leases().await;

    let journal = place.journal().await;
    assert!(ledger_attempts(&*journal).await.0.len() == 1, "the ledger has only the first call");
    fork_session(&*journal, "a", None, "b").await.unwrap();
    assert_eq!(total(&*journal).await, (3, 0.000_035));
    let head = journal.head(&StreamName::spend()).await.unwrap().seq;
    assert_eq!(total(&*journal).await, (3, 0.000_035));
    assert_eq!(journal.head(&StreamName::spend()).await.unwrap().seq, head, "it is not looked for again");
    journal.close().await;
    let sessions = statement_of(&place, StatementBy::Session).await;
    assert_eq!(sessions, [("a".to_owned(), 2, Some(0.000_03)), ("earlier".to_owned(), 1, Some(0.000_005))]);
}

/// Asks for the budget question of a session.
/// H6: whoever asks again and again what is left of the limits does not make the journal be read again and again.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_of_the_limits_is_known_without_reading_the_journal_again() {
    let place = TestHome::new();
    let journal = FaultyJournal::new(place.journal().await, None);
    let config = limited(&place, |limits| {
        limits.cost_per_day = 1.0;
        limits.cost_per_session = 0.5;
    });
    let model = Arc::new(priced(&json!([costing(10_000), costing(20_000)])));
    let runtime = RuntimeBuilder::new(config).model(model).journal(journal.clone()).open().await.unwrap();
    for key in ["a", "b", "b"] {
        runtime.session(key).await.unwrap().send("hello").await.unwrap();
    }
    let session = runtime.session("b").await.unwrap().id();

    let before = journal.records_read();
    let left = runtime.limit_status(session, None).await.unwrap();
    let read = journal.records_read() - before;

    let used: Vec<(&str, f64)> = left.iter().map(|limit| (limit.name, limit.used)).collect();
    assert_eq!(used, [("cost_per_session", 0.03), ("cost_per_day", 0.04)]);
    assert_eq!(read, 0);
    runtime.shutdown().await.unwrap();
}

/// B2: the same total from the records of sessions alone, taken over once; copies in forks are not added.
#[tokio::test(flavor = "multi_thread")]
async fn usage_from_before_the_ledger_is_taken_over_once() {
    let place = TestHome::new();
    let runtime = open(limited(&place, |_| {}), priced(&json!([costing(10), costing(20)]))).await;
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();
    session.send("hello again").await.unwrap();
    fork_session(&*runtime.journal(), "a", None, "b").await.unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let before = total(&*journal).await;
    journal.remove(&StreamName::spend(), None).await.unwrap();

    let taken_over = total(&*journal).await;
    let again = total(&*journal).await;

    assert_eq!((before, taken_over, again), ((2, 0.000_03), (2, 0.000_03), (2, 0.000_03)));
    let openings = ledger(&*journal).await;
    let openings = openings.iter().filter(|record| matches!(record, SpendRecord::Opened(_)));
    assert_eq!(openings.count(), 1);
    journal.close().await;
    assert_eq!(statement_of(&place, StatementBy::Session).await, [("a".to_owned(), 2, Some(0.000_03))]);
    assert_eq!(statement_of(&place, StatementBy::Cause).await, [("turn".to_owned(), 2, Some(0.000_03))]);
}

/// B2: what a session cost stays when the session is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_session_stays_counted() {
    let place = TestHome::new();
    let runtime = open(limited(&place, |_| {}), priced(&json!([costing(10)]))).await;
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();
    let id = session.id().unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    longhaul_journal::delete_session(&*journal, "a").await.unwrap();
    journal.close().await;

    let items = statement_of(&place, StatementBy::Session).await;

    assert_eq!(items, [(id.to_string(), 1, Some(0.000_01))]);
}

/// B3: with an unknown price, cost limits don't hold, and that is said once; the statement does not invent a price.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_price_is_said_and_not_counted() {
    let place = TestHome::new();
    let config = limited(&place, |limits| limits.cost_per_day = 0.000_001);
    let runtime = open(config, script(&json!([costing(10), costing(10)]))).await;
    let session = runtime.session("a").await.unwrap();

    let ended = [session.send("hello").await.unwrap(), session.send("hello").await.unwrap()];

    assert!(ended.iter().all(|ended| ended.outcome == Outcome::Completed), "{ended:?}");
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let warned =
        records.iter().filter(|record| record.text().is_some_and(|text| text.contains("cost_unknown")));
    assert_eq!(warned.count(), 1);
    assert_eq!(statement_of(&place, StatementBy::Cause).await, [("turn".to_owned(), 2, None)]);
}

/// Two turns of two calls each, up to their end or to the crash; the appends to the ledger.
fn run_with_crash(place: &TestHome, limits: bool, crash: Option<Crash>) -> Vec<Vec<String>> {
    let tokio = tokio_runtime();
    let appends = tokio.block_on(async {
        let journal = FaultyJournal::of_ledger(place.journal().await, crash);
        let runtime = RuntimeBuilder::new(crash_config(place, limits))
            .model(Arc::new(crash_model()))
            .journal(journal.clone())
            .open()
            .await
            .unwrap();
        let session = runtime.session("a").await.unwrap();
        let turns = async {
            session.send("one").await.unwrap();
            session.send("two").await.unwrap();
            runtime.shutdown().await.unwrap();
        };
        tokio::select! {
            () = journal.crashed() => {}
            () = turns => {}
        }
        if journal.has_crashed() {
            journal.release_leases().await;
        }
        journal.appends()
    });
    tokio.shutdown_timeout(Duration::from_secs(10));
    appends
}

fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn crash_config(place: &TestHome, limits: bool) -> Config {
    limited(place, |settings| settings.cost_per_day = if limits { 1.0 } else { 0.0 })
}

fn crash_model() -> ScriptedModel {
    let call = json!({"calls": [{"name": "list_files", "arguments": {"path": "."}}], "usage": {"input": 100, "output": 0}});
    priced(&json!([call, costing(200), call, costing(200), costing(200)]))
}

/// Goes on after a crash: the open turn is finished, and a further one is made.
fn resume_after_crash(place: &TestHome, limits: bool, context: &str) {
    tokio_runtime().block_on(async {
        let runtime = open(crash_config(place, limits), crash_model()).await;
        let session = runtime.session("a").await.unwrap();
        session.resume().await.unwrap();
        let ended = session.send("three").await.unwrap();
        runtime.shutdown().await.unwrap();
        assert_eq!(ended.outcome, Outcome::Completed, "{context}");
    });
}

/// B1: killed at every append to the ledger, before and after it is on disk. Afterwards every reservation is settled,
/// once; at most the call that ran is settled at its bound; and no call is missing.
#[test]
fn a_crash_at_any_append_to_the_ledger_loses_no_call_and_counts_none_twice() {
    for limits in [true, false] {
        let place = TestHome::in_memory();
        let appends = run_with_crash(&place, limits, None);
        assert!(appends.len() >= 4, "{appends:?}");
        for number in 1..=appends.len() {
            for when in [CrashMoment::Before, CrashMoment::After] {
                let place = TestHome::in_memory();
                let context = format!("limits {limits}, {when:?} append {number}: {:?}", appends[number - 1]);
                run_with_crash(&place, limits, Some(Crash { append: number, when }));
                resume_after_crash(&place, limits, &context);

                tokio_runtime().block_on(async {
                    let journal = place.journal().await;
                    let items = statement(&*journal, &StatementQuery::default()).await.unwrap();
                    let (reserved, settled) = ledger_attempts(&*journal).await;
                    let attempts: Vec<AttemptId> = settled.iter().map(|(attempt, _)| *attempt).collect();
                    assert_eq!(reserved, attempts, "{context}");
                    assert!(items.total.at_upper_bound <= 1, "{context}: {items:?}");
                    let recorded = recorded_attempts(&*journal).await;
                    let missing: Vec<_> =
                        recorded.iter().filter(|attempt| !attempts.contains(attempt)).collect();
                    assert!(missing.is_empty(), "{context}: {missing:?}");
                    journal.close().await;
                });
            }
        }
    }
}

/// The attempts whose usage the session has recorded.
async fn recorded_attempts(journal: &dyn Journal) -> Vec<AttemptId> {
    let id = journal.session("a").await.unwrap().unwrap().id;
    let usages = journal.records_of_kind(&StreamName::session(id), "usage").await.unwrap();
    usages.iter().map(|record| record.decode::<longhaul_protocol::Usage>().unwrap().attempt).collect()
}
