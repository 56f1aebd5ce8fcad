//! Kill anywhere, for subagents: a session that starts one, waits for it and hears of its end is stopped at each append of the whole
//! tree, before and after it is on disk, and a fresh runtime goes on.
//!
//! | durable | must happen | must never happen |
//! | --- | --- | --- |
//! | `tool_started` with the subagent's id | it is started under that id | a second subagent |
//! | `child_admitted` | it is counted once | |
//! | `task_started`, its name, its first record, its prompt | it has its prompt once, and runs | a second prompt, a second turn |
//! | `turn_ended` of the subagent | its end is recorded | a second end |
//! | `task_ended`, `tool_finished` | nothing more | a second result |
//! | `notification` | nothing more | a second notification |
//! | the order to cancel, at the parent or at the subagent | it ends as cancelled, with what it runs | another call of a model |
//! | `question`, at the subagent or at the parent; the answer, in either inbox | the answer reaches it | a second question, a second run of the command |

use std::time::Duration;

use longhaul_agent::config::{Approval, ApprovalRule};
use longhaul_agent::{Config, Runtime, RuntimeBuilder, Session, Settled};
use longhaul_journal::{Journal, resolve};
use longhaul_protocol::{Outcome, Record, SessionId, SessionRecord, StreamName, TaskStatus};
use longhaul_testkit::{Crash, CrashMoment, FaultyJournal, TestHome, broken_rules, records_of};
use serde_json::{Value, json};

use crate::said;
use crate::subagents::{agent, call, child_records, children, scripts, turn_ends};
use crate::wire::facts;

/// The longest that a tree may take to come to its rest.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

fn routes(background: bool) -> [(&'static str, Value); 2] {
    let child = json!([call("exec", &json!({"command": "echo worked >> log.txt"})), "The result."]);
    let parent = json!([agent(&json!({"prompt": "Work.", "background": background})), "One.", "Two."]);
    [("Work", child), ("go", parent)]
}

async fn until_it_rests(session: &Session) {
    loop {
        let settled = session.settle().await.unwrap();
        if settled == Settled::Idle && session.state().await.unwrap().turn_count > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The tree, up to its rest or to the crash; the appends that it made.
fn run(place: &TestHome, background: bool, crash: Option<Crash>) -> Vec<Vec<String>> {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let appends = tokio.block_on(async {
        let journal = FaultyJournal::new(place.journal().await, crash);
        let builder = RuntimeBuilder::new(place.config()).model(scripts(routes(background)));
        let runtime = builder.journal(journal.clone()).open().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        session.put(said("go"), Some("once")).await.unwrap();
        tokio::select! {
            () = journal.crashed() => {}
            () = until_it_rests(&session) => {}
        }
        journal.release_leases().await;
        journal.appends()
    });
    tokio.shutdown_timeout(Duration::from_secs(10));
    appends
}

/// A fresh runtime goes on until there is nothing left to do.
fn resume(place: &TestHome, background: bool) -> (Vec<Record>, Vec<Vec<Record>>) {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    tokio.block_on(async {
        let runtime = Runtime::with_model(place.config(), scripts(routes(background))).await.unwrap();
        let session = runtime.session("a").await.unwrap();
        runtime.start().await.unwrap();
        until_it_rests(&session).await;
        runtime.shutdown().await.unwrap();
        let journal = place.journal().await;
        let records = records_of(&*journal, session.id().unwrap()).await;
        let mut of_children = Vec::new();
        for child in children(&records) {
            of_children.push(child_records(&journal, child).await);
            let inbox = journal.read(&StreamName::inbox(child), 1, Default::default()).await.unwrap();
            assert_eq!(inbox.len(), 1, "one prompt");
        }
        let tree =
            journal.read(&StreamName::tree(session.id().unwrap()), 1, Default::default()).await.unwrap();
        assert_eq!(tree.len(), 1, "one admission");
        let named = journal.sessions(None, 10).await.unwrap();
        assert_eq!(named.len(), 2, "{named:?}");
        journal.close().await;
        (records, of_children)
    })
}

/// What must be so in the end, wherever it was killed.
fn check(place: &TestHome, background: bool, records: &[Record], of_children: &[Vec<Record>], context: &str) {
    assert_eq!(broken_rules(records), Vec::<String>::new(), "{context}");
    assert_eq!(of_children.len(), 1, "{context}");
    let ends: Vec<Outcome> = turn_ends(&of_children[0]).iter().map(|end| end.outcome).collect();
    assert_eq!(ends, [Outcome::Completed], "{context}");
    assert_eq!(place.file("log.txt"), "worked\n", "{context}");
    let facts = facts(records);
    let count = |is: fn(&SessionRecord) -> bool| facts.iter().filter(|fact| is(fact)).count();
    assert_eq!(count(|fact| matches!(fact, SessionRecord::TaskStarted(_))), 1, "{context}");
    let ended: Vec<TaskStatus> = facts
        .iter()
        .filter_map(|fact| match fact {
            SessionRecord::TaskEnded(ended) => Some(ended.status),
            _ => None,
        })
        .collect();
    assert_eq!(ended, [TaskStatus::Completed], "{context}");
    let notified =
        count(|fact| matches!(fact, SessionRecord::Notification(told) if told.text.contains("The result.")));
    let returned = count(
        |fact| matches!(fact, SessionRecord::ToolFinished(done) if done.content.contains("The result.")),
    );
    assert_eq!((notified, returned), if background { (1, 0) } else { (0, 1) }, "{context}");
    assert!(turn_ends(records).iter().all(|end| end.outcome == Outcome::Completed), "{context}");
}

fn play(background: bool, share: usize, of: usize) {
    let place = TestHome::in_memory();
    let appends = run(&place, background, None);
    let (records, of_children) = resume(&place, background);
    check(&place, background, &records, &of_children, "undisturbed");
    for append in (1..=appends.len()).filter(|append| append % of == share) {
        for when in [CrashMoment::Before, CrashMoment::After] {
            let place = TestHome::in_memory();
            let made = run(&place, background, Some(Crash { append, when }));

            let (records, of_children) = resume(&place, background);

            let context = format!("{when:?} append {append}: {:?}", made.last());
            check(&place, background, &records, &of_children, &context);
        }
    }
}

/// A1, A2: a subagent that its parent waits for.
#[test]
fn killed_at_any_boundary_a_subagent_runs_once_and_its_result_arrives_once_first_half() {
    play(false, 0, 2);
}

#[test]
fn killed_at_any_boundary_a_subagent_runs_once_and_its_result_arrives_once_second_half() {
    play(false, 1, 2);
}

/// A1, K5: one in the background.
#[test]
fn killed_at_any_boundary_a_subagent_in_the_background_is_announced_once_first_half() {
    play(true, 0, 2);
}

#[test]
fn killed_at_any_boundary_a_subagent_in_the_background_is_announced_once_second_half() {
    play(true, 1, 2);
}

/// What happens to a subagent that works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// The turn of its parent is cancelled.
    Stop,
    /// It asks before it runs a command, and a person says yes at its parent.
    Question,
}

impl Event {
    fn config(self, place: &TestHome) -> Config {
        let mut config = place.config();
        if self == Self::Question {
            let (tool, command) = ("exec".to_owned(), Some("echo*".to_owned()));
            let rule = ApprovalRule { tool, command, host: None, action: Approval::Ask };
            config.settings.approval.rule = vec![rule];
        }
        config
    }

    /// `waiting` is a command that never ends, with a number by which its process can be found.
    fn routes(self, waiting: &str) -> [(&'static str, Value); 2] {
        let command = match self {
            Self::Stop => format!("touch began; exec {waiting}"),
            Self::Question => "echo asked >> log.txt".to_owned(),
        };
        let child = json!([call("exec", &json!({ "command": command })), "The result."]);
        [("Work", child), ("go", json!([agent(&json!({"prompt": "Work."})), "One.", "Two."]))]
    }

    /// Brings the tree to its rest.
    async fn happen(self, place: &TestHome, session: &Session, is_resumed: bool) {
        session.put(said("go"), Some("once")).await.unwrap();
        if self == Self::Stop {
            while !is_resumed && !place.work().join("began").exists() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            session.cancel().await.unwrap();
        }
        loop {
            for question in session.state().await.unwrap().questions {
                // It may just have been answered.
                let _ = session.answer(question.id, "yes").await;
            }
            let settled = session.settle().await.unwrap();
            if settled == Settled::Idle && session.state().await.unwrap().turn_count > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Whether a process with this command line runs.
fn is_running(command: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).any(|line| line.trim() == command)
}

/// Plays the event up to the crash, then with a fresh runtime to its end, and checks what must be so. Returns the appends before the crash.
fn play_event(event: Event, crash: Option<Crash>) -> usize {
    let place = TestHome::in_memory();
    let number = SessionId::generate().made_at().0 % 1_000_000 + i64::from(std::process::id());
    let waiting = format!("tail -s 3600.{number} -f /dev/null");
    let block_on = |is_resumed: bool| {
        let tokio =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let appends = tokio.block_on(async {
            let journal = FaultyJournal::of_trees(place.journal().await, crash.filter(|_| !is_resumed));
            let builder = RuntimeBuilder::new(event.config(&place)).model(scripts(event.routes(&waiting)));
            let runtime = builder.journal(journal.clone()).open().await.unwrap();
            let session = runtime.session("a").await.unwrap();
            if is_resumed {
                runtime.start().await.unwrap();
            }
            tokio::select! {
                () = journal.crashed() => {}
                () = event.happen(&place, &session, is_resumed) => {}
                () = tokio::time::sleep(TEST_TIMEOUT) => {
                    let state = session.state().await.unwrap();
                    panic!("{event:?}, {crash:?}, resumed: {is_resumed}: no rest; {:?} {:?}", journal.appends(), state.turn);
                }
            }
            match is_resumed {
                true => runtime.shutdown().await.unwrap(),
                false => journal.release_leases().await,
            }
            journal.appends()
        });
        // The command runs on, and a thread that waits for its keeper.
        tokio.shutdown_timeout(Duration::from_millis(100));
        appends
    };

    let appends = block_on(false);
    block_on(true);

    let context = format!("{event:?}, {crash:?}: {:?}", appends.last());
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let journal = place.journal().await;
        let parent = resolve(&*journal, "a").await.unwrap().id;
        let records = records_of(&*journal, parent).await;
        assert_eq!(broken_rules(&records), Vec::<String>::new(), "{context}");
        let outcomes =
            |records: &[Record]| turn_ends(records).iter().map(|end| end.outcome).collect::<Vec<_>>();
        let mut of_children = Vec::new();
        for child in children(&records) {
            of_children.push(outcomes(&child_records(&journal, child).await));
        }
        assert!(of_children.len() <= 1, "{context}");
        match event {
            Event::Stop => {
                assert_eq!(outcomes(&records), [Outcome::Cancelled], "{context}");
                let is_stopped = |ends: &Vec<Outcome>| {
                    ends.iter().all(|end| *end == Outcome::Cancelled) && ends.len() <= 1
                };
                assert!(of_children.iter().all(is_stopped), "{context}: {of_children:?}");
                assert!(!is_running(&waiting), "{context}: a command runs after the cancel");
            }
            Event::Question => {
                assert_eq!(outcomes(&records), [Outcome::Completed], "{context}");
                assert_eq!(of_children, [[Outcome::Completed]], "{context}");
                assert_eq!(place.file("log.txt"), "asked\n", "{context}");
                let facts = facts(&records);
                let asked = facts.iter().filter(|fact| matches!(fact, SessionRecord::Question(_))).count();
                assert!(asked <= 1, "{context}: asked {asked} times");
            }
        }
        journal.close().await;
    });
    appends.len()
}

fn play_events(event: Event, share: usize, of: usize) {
    let appends = play_event(event, None);
    for append in (1..=appends).filter(|append| append % of == share) {
        // Before the next append nothing else is on disk, and each event takes seconds.
        play_event(event, Some(Crash { append, when: CrashMoment::After }));
    }
}

/// A2: killed at any append while it is stopped, a subagent ends as cancelled, and nothing of it runs afterwards.
#[test]
fn killed_at_any_boundary_a_stopped_subagent_ends_once_and_nothing_runs_on_first_half() {
    play_events(Event::Stop, 0, 2);
}

#[test]
fn killed_at_any_boundary_a_stopped_subagent_ends_once_and_nothing_runs_on_second_half() {
    play_events(Event::Stop, 1, 2);
}

/// A3: killed at any append while it asks and is answered, a subagent gets its answer once and goes on.
#[test]
fn killed_at_any_boundary_a_subagents_question_is_answered_once_first_half() {
    play_events(Event::Question, 0, 2);
}

#[test]
fn killed_at_any_boundary_a_subagents_question_is_answered_once_second_half() {
    play_events(Event::Question, 1, 2);
}
