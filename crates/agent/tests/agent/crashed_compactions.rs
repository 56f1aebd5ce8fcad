//! Kill anywhere, for compactions: sessions whose context is made smaller, in every way and at every moment, are stopped at each of
//! their appends, before and after it is on disk, and a fresh runtime goes on.
//!
//! | durable | must happen | must never happen |
//! | --- | --- | --- |
//! | `compact_start` | it is closed as interrupted, and made again if it is still needed | a second start before that |
//! | the new epoch, its messages and `compact_done` | the turn goes on in it | a part of them without the rest; the same compaction again |
//! | `compact_failed` | the turn goes on as it was | |
//! | the epoch of the stubs | the turn goes on in it | |

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_agent::session::load;
use longhaul_agent::{Config, Runtime, RuntimeBuilder, Session, Settled};
use longhaul_journal::Journal;
use longhaul_model::{
    AnswerStream, CallPermit, Capabilities, FailureClass, Model, ModelFailure, Purpose, Request,
    ScriptedModel,
};
use longhaul_protocol::{Input, InputId, JoinMode, Outcome, Record, SessionRecord, StreamName};
use longhaul_testkit::{Crash, CrashMoment, FaultyJournal, TestHome, broken_rules, records_of};
use serde_json::{Value, json};

use crate::compaction::{config, summary, text};
use crate::compaction_limits::fixed;
use crate::script;
use crate::wire::facts;

/// How long one thing may take, on the slowest of machines.
const DEADLINE: Duration = Duration::from_secs(120);

/// What somebody does.
enum Act {
    /// Says something, and waits until the session has come to rest.
    Say(String),
    /// Says something, then, as soon as its turn has begun, something for the turn after it.
    SayTwice(&'static str, &'static str),
    /// Asks for the context to be made smaller.
    Compact,
}

/// A session that goes through a compaction.
struct Scene {
    config: fn(&mut Config, u64),
    acts: Vec<Act>,
    answers: Value,
    /// Prompts with more tokens are refused.
    most: u64,
    /// What system prompt and tools take.
    fixed: u64,
}

/// A scripted model that takes only so much.
struct Picky {
    model: ScriptedModel,
    most: u64,
}

#[async_trait]
impl Model for Picky {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn capabilities(&self) -> Capabilities {
        self.model.capabilities().await
    }

    async fn ask(
        &self,
        request: Request,
        permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let size = longhaul_context::estimate(&request.system, &request.tools, &request.items);
        if size > self.most && matches!(request.purpose, Purpose::Step { .. }) {
            return Err(ModelFailure::new(FailureClass::TooLong, "the prompt is too long"));
        }
        self.model.ask(request, permit).await
    }
}

/// What can be seen of a session when everything is over.
#[derive(Debug, PartialEq, Eq)]
struct End {
    texts: Vec<String>,
    results: Vec<(String, bool)>,
    todo: Vec<String>,
    log: String,
    notified: usize,
    done: usize,
    epoch: u64,
}

impl Scene {
    fn parts(&self, place: &TestHome) -> (Config, Arc<dyn Model>) {
        std::fs::write(place.work().join("a.txt"), "thirty bytes to a line, so long\n".repeat(40)).unwrap();
        let mut config = config(place, 8_000);
        (self.config)(&mut config, self.fixed);
        (config, Arc::new(Picky { model: script(&self.answers), most: self.most }))
    }

    /// Does everything that has not been done, and waits until the session has come to rest.
    async fn drive(&self, session: &Session, journal: &dyn Journal) {
        let say = async |text: &str, mode, key: String| {
            let input = Input::new(InputId::generate(), text.to_owned(), mode);
            session.put(input, Some(&key)).await.unwrap();
        };
        let mut accepted = 0;
        for act in &self.acts {
            match act {
                Act::Say(text) => {
                    accepted += 1;
                    say(text, JoinMode::Join, accepted.to_string()).await;
                }
                Act::SayTwice(text, later) => {
                    say(text, JoinMode::Join, (accepted + 1).to_string()).await;
                    in_time("a turn that begins", async {
                        while session.state().await.unwrap().turn_count == 0 {
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        }
                    })
                    .await;
                    accepted += 2;
                    say(later, JoinMode::After, accepted.to_string()).await;
                }
                Act::Compact => {
                    accepted += 1;
                    if inbox(session, journal).await < accepted {
                        // That it failed stands in the records.
                        let _ = session.compact().await;
                    }
                }
            }
            in_time("a session that rests", until_it_rests(session, journal)).await;
        }
    }

    /// The session, up to its rest or to the crash; the appends that it made.
    fn run(&self, place: &TestHome, crash: Option<Crash>) -> Vec<Vec<String>> {
        let tokio = tokio_runtime();
        let appends = tokio.block_on(async {
            let journal = FaultyJournal::new(place.journal().await, crash);
            let (config, model) = self.parts(place);
            let runtime =
                RuntimeBuilder::new(config).model(model).journal(journal.clone()).open().await.unwrap();
            let session = runtime.session("a").await.unwrap();
            tokio::select! {
                () = journal.crashed() => {}
                () = self.drive(&session, &*journal) => {}
            }
            journal.release_leases().await;
            journal.appends()
        });
        tokio.shutdown_timeout(Duration::from_secs(10));
        appends
    }

    /// A fresh runtime goes on until there is nothing left to do.
    fn resume(&self, place: &TestHome, context: &str) -> End {
        tokio_runtime().block_on(async {
            let (config, model) = self.parts(place);
            let runtime = Runtime::with_model(config, model).await.unwrap();
            let session = runtime.session("a").await.unwrap();
            runtime.start().await.unwrap();
            let journal = runtime.journal();
            self.drive(&session, &*journal).await;
            runtime.shutdown().await.unwrap();
            let journal = place.journal().await;
            let id = session.id().unwrap();
            let records = records_of(&*journal, id).await;
            let state = load(&*journal, "a", id).await.unwrap();
            journal.close().await;
            assert_eq!(broken_rules(&records), Vec::<String>::new(), "{context}");
            assert_eq!(state.compaction.open_reason, None, "{context}");
            let mut folded = longhaul_agent::session::State::default();
            records.iter().for_each(|record| folded.apply(record).unwrap());
            assert_eq!(state, folded, "{context}");
            end(place, &records, state)
        })
    }

    /// T12, T13, C3, C11: at each boundary.
    fn play(&self) -> End {
        self.play_part(0, 1)
    }

    /// The boundaries with this remainder, so that a long table is played by several processes.
    fn play_part(&self, share: usize, of: usize) -> End {
        let place = TestHome::in_memory();
        let appends = self.run(&place, None);
        let undisturbed = self.resume(&place, "undisturbed");
        for append in (1..=appends.len()).filter(|append| append % of == share) {
            for when in [CrashMoment::Before, CrashMoment::After] {
                let place = TestHome::in_memory();
                let made = self.run(&place, Some(Crash { append, when }));
                let context = format!("{when:?} append {append}: {:?}", made.last());
                left_behind(&place, &context);

                let end = self.resume(&place, &context);

                assert_eq!(end, undisturbed, "{context}");
            }
        }
        undisturbed
    }
}

fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// How many inputs and orders were accepted.
async fn inbox(session: &Session, journal: &dyn Journal) -> u64 {
    match session.id() {
        Some(id) => journal.head(&StreamName::inbox(id)).await.unwrap().seq,
        None => 0,
    }
}

/// What has not come by then never will.
async fn in_time(awaited: &str, coming: impl Future<Output = ()>) {
    let came = tokio::time::timeout(DEADLINE, coming).await;
    assert!(came.is_ok(), "{awaited} was waited for in vain");
}

async fn until_it_rests(session: &Session, journal: &dyn Journal) {
    loop {
        // First that everything was taken: only then does it mean something that nothing is left to do.
        let state = session.state().await.unwrap();
        let is_taken =
            state.inbox_through == inbox(session, journal).await && state.compaction.requested.is_none();
        if is_taken && session.settle().await.unwrap() == Settled::Idle {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Before or after, and never between: what a crash leaves breaks no rule.
fn left_behind(place: &TestHome, context: &str) {
    let records = tokio_runtime().block_on(async {
        let journal = place.journal().await;
        let entry = journal.session("a").await.unwrap();
        let records = match entry {
            Some(entry) => records_of(&*journal, entry.id).await,
            None => vec![],
        };
        journal.close().await;
        records
    });
    assert_eq!(broken_rules(&records), Vec::<String>::new(), "{context}");
    let count = |kind: &str| records.iter().filter(|record| record.kind == kind).count();
    assert_eq!(count("system_message"), 2 * count("compact_done"), "{context}");
}

fn end(place: &TestHome, records: &[Record], state: longhaul_agent::session::State) -> End {
    let facts = facts(records);
    let texts = facts.iter().filter_map(|fact| match fact {
        SessionRecord::TurnEnded(ended) => {
            assert_eq!(ended.outcome, Outcome::Completed, "{:?}", ended.error);
            Some(ended.text.chars().take(20).collect())
        }
        _ => None,
    });
    let count = |is: fn(&SessionRecord) -> bool| facts.iter().filter(|fact| is(fact)).count();
    // Which of two commands came first is up to the system.
    let log = place.file("log.txt");
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    End {
        // The end of a task may be told in a turn of its own.
        texts: texts.filter(|text: &String| text != "Told.").collect(),
        results: crate::results(records).into_iter().map(|(name, is_error, _)| (name, is_error)).collect(),
        todo: state.todo.iter().map(|todo| todo.text.clone()).collect(),
        log: lines.join(" "),
        notified: count(|fact| matches!(fact, SessionRecord::Notification(_))),
        done: count(|fact| matches!(fact, SessionRecord::CompactDone(_))),
        epoch: state.epoch.map_or(0, |epoch| epoch.number),
    }
}

fn scene(answers: Value, acts: Vec<Act>) -> Scene {
    let fixed = tokio_runtime().block_on(fixed()) as u64;
    Scene { config: |_, _| {}, acts, answers, most: u64::MAX, fixed }
}

fn say(text: impl Into<String>) -> Act {
    Act::Say(text.into())
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// C2, C3
#[test]
fn killed_at_any_boundary_a_compaction_before_a_turn_is_whole_or_never_was() {
    let scene = scene(
        json!([text(3_300), summary("reach the end"), {"calls": [call("list_files", &json!({}))]}, "Second.", "Third."]),
        vec![say("first"), say(text(400)), say("third")],
    );

    let end = scene.play();

    assert_eq!((end.done, end.epoch, end.texts.len()), (1, 2, 3));
}

/// C4, K5, K9: with a task that runs, an input that waits and a todo list.
fn within_a_turn(share: usize, of: usize) {
    let build = "echo started >> log.txt; while [ ! -e go ]; do sleep 0.01; done; touch built";
    // Mostly the end of the task is told in the same turn.
    let finish = "touch go; while [ ! -e built ]; do sleep 0.01; done; sleep 0.05";
    let answers = json!([
        {"calls": [call("todo", &json!({"items": [{"text": "build", "status": "in_progress"}]}))]},
        {"calls": [call("exec", &json!({"command": build, "run_in_background": true, "description": "the build"}))]},
        {"text": text(1_500), "calls": [call("list_files", &json!({}))]},
        {"text": text(1_900), "calls": [call("exec", &json!({"command": "echo once >> log.txt"}))]},
        summary("build it"),
        {"calls": [call("exec", &json!({"command": finish}))]},
        "Done.",
        "After.",
        "Told.",
    ]);
    let scene = scene(answers, vec![Act::SayTwice("go", "later")]);

    let end = scene.play_part(share, of);

    assert_eq!((end.done, end.log.as_str(), end.notified), (1, "once started", 1));
    assert_eq!(end.texts, ["Done.", "After."]);
    assert_eq!(end.todo, ["build"]);
}

#[test]
fn killed_at_any_boundary_a_compaction_within_a_turn_keeps_tasks_todo_and_what_waits_first_third() {
    within_a_turn(0, 3);
}

#[test]
fn killed_at_any_boundary_a_compaction_within_a_turn_keeps_tasks_todo_and_what_waits_second_third() {
    within_a_turn(1, 3);
}

#[test]
fn killed_at_any_boundary_a_compaction_within_a_turn_keeps_tasks_todo_and_what_waits_last_third() {
    within_a_turn(2, 3);
}

/// M12
#[test]
fn killed_at_any_boundary_a_refused_prompt_leads_to_one_compaction() {
    let answers = json!([
        text(2_600),
        summary("s"),
        {"calls": [call("exec", &json!({"command": "echo once >> log.txt"}))]},
        "Second.",
    ]);
    let scene = scene(answers, vec![say("first"), say("second")]);
    let scene = Scene { most: scene.fixed + 2_400, ..scene };

    let end = scene.play();

    assert_eq!((end.done, end.epoch, end.log.as_str()), (1, 2, "once"));
}

/// C9
#[test]
fn killed_at_any_boundary_stubs_are_made_once() {
    let read = || json!({"calls": [call("read_file", &json!({"path": "a.txt", "limit": 40}))]});
    let answers = json!([read(), read(), read(), read(), text(30), text(300), text(300), "Fourth.",]);
    let acts = vec![say("first"), say("second"), say("third"), say("fourth")];
    let at = |config: &mut Config, fixed: u64| {
        config.settings.context.compact_at_tokens = Some(fixed + 1_950);
    };
    let scene = Scene { config: at, ..scene(answers, acts) };

    let end = scene.play();

    assert_eq!((end.done, end.epoch), (0, 2), "an epoch without a compaction");
}

/// C5
#[test]
fn killed_at_any_boundary_a_summary_that_fails_leaves_the_session_as_it_was() {
    let failing = json!({"summary": true, "error": "no"});
    let scene = scene(json!([text(2_950), failing, "Second."]), vec![say("first"), say(text(400))]);

    let end = scene.play();

    assert_eq!((end.done, end.epoch, end.texts.len()), (0, 1, 2));
}

/// C12: one that somebody asked for is whole or failed, and begins no work.
#[test]
fn killed_at_any_boundary_a_compaction_that_was_asked_for_begins_no_work() {
    let answers = json!(["First.", summary("s"), "Second."]);
    let scene = scene(answers, vec![say("first"), Act::Compact, say("second")]);
    let place = TestHome::in_memory();
    let appends = scene.run(&place, None);
    let undisturbed = scene.resume(&place, "undisturbed");
    assert_eq!((undisturbed.done, undisturbed.texts.len()), (1, 2));

    for append in 1..=appends.len() {
        for when in [CrashMoment::Before, CrashMoment::After] {
            let place = TestHome::in_memory();
            let made = scene.run(&place, Some(Crash { append, when }));
            let context = format!("{when:?} append {append}: {:?}", made.last());
            left_behind(&place, &context);

            let end = scene.resume(&place, &context);

            // Whoever asked is told that it was interrupted, and asks again if they like.
            let was_cut = made.last().is_some_and(|last| match (last[0].as_str(), when) {
                ("compact_start", CrashMoment::After) => true,
                (_, CrashMoment::Before) => last.iter().any(|kind| kind == "compact_done"),
                _ => false,
            });
            let done = usize::from(!was_cut);
            let (epoch, texts) = (1 + done as u64, undisturbed.texts.clone());
            assert_eq!((end.done, end.epoch, end.texts), (done, epoch, texts), "{context}");
        }
    }
}
