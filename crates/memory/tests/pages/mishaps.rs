//! What goes wrong in the middle: nothing is lost by it, and nothing doubled.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use longhaul_journal::Journal;
use longhaul_memory::{
    BackgroundModel, Consolidation, Error, PageEdit, PageSet, add_note, change_page, consolidate,
};
use longhaul_model::{
    AnswerStream, CallPermit, Capabilities, FailureClass, Model, ModelFailure, Request, ScriptedModel,
};
use longhaul_protocol::{SessionId, Speaker, StreamName};
use longhaul_testkit::{FaultyJournal, RecordingModel, TestHome};
use serde_json::json;

use crate::fixtures::{
    Diligent, SCOPE, calling, changes, consolidated, extract, scope_here, text_of, writing,
};

/// Waits for a future, but only so often: then it is dropped where it waits, as if somebody had cut it there. Nothing, if it was cut.
async fn cut_after<T>(polls: usize, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        work.as_mut().poll(context).map(Some)
    })
    .await
}

/// Waits until the lease that was cut loose is given back.
async fn patiently(journal: &Arc<dyn Journal>, calling: &BackgroundModel) -> Consolidation {
    loop {
        match consolidated(journal, calling).await {
            Err(Error::Held { .. }) => tokio::time::sleep(Duration::from_millis(2)).await,
            done => return done.unwrap(),
        }
    }
}

/// Y8
#[tokio::test]
async fn cut_wherever_it_waits_nothing_is_lost_and_nothing_doubled() {
    let (mut polls, mut whole, mut cuts) = (0, 0, 0);
    for _ in 0..400 {
        let place = TestHome::in_memory();
        let journal: Arc<dyn Journal> = place.journal().await;
        let sessions = [SessionId::generate(), SessionId::generate()];
        for (number, session) in sessions.iter().cycle().take(4).enumerate() {
            extract(&*journal, *session, SCOPE, &[(Speaker::User, &format!("thing{number} matters"))]).await;
        }
        let calling = calling(Arc::new(Diligent::default()));

        let cut = cut_after(polls, consolidated(&journal, &calling)).await;
        // What had reached the writer may still be written, as with a process that dies after it asked the disk.
        tokio::time::sleep(Duration::from_millis(5)).await;
        extract(&*journal, sessions[0], SCOPE, &[(Speaker::User, "thing4 matters")]).await;
        // Twice: the first may find that what was cut was written after all, and leaves the rest for later.
        patiently(&journal, &calling).await;
        patiently(&journal, &calling).await;

        let text = text_of(&*journal, "core").await.unwrap();
        let mut things: Vec<&str> = text.lines().skip(1).collect();
        things.sort_unstable();
        let expected: Vec<String> = (0..5).map(|number| format!("- \"thing{number} matters\"")).collect();
        assert_eq!(things, expected, "cut after {polls}");
        let book = PageSet::load(&*journal, SCOPE).await.unwrap();
        assert_eq!((book.read[&sessions[0]], book.read[&sessions[1]]), (3, 2), "cut after {polls}");
        assert!(book.consolidations <= 2, "cut after {polls}");
        journal.close().await;
        polls += 1;
        match cut {
            Some(_) => whole += 1,
            None => cuts += 1,
        }
        // How often it waits depends on how soon the writer's thread answers. Where that was seldom, it is gone through once more.
        match whole {
            3 if cuts > 6 => return,
            3 => (polls, whole) = (0, 0),
            _ => {}
        }
    }
    panic!("it never came to its end");
}

#[tokio::test]
async fn an_append_that_fails_leaves_everything_for_later() {
    let place = TestHome::in_memory();
    let faulty = FaultyJournal::new(place.journal().await, None);
    let journal: Arc<dyn Journal> = faulty.clone();
    extract(&*journal, SessionId::generate(), SCOPE, &[(Speaker::User, "likes tea")]).await;
    let model = writing(&json!([{"page": "core", "text": "- likes tea"}]));
    let calling = calling(model.clone());
    let mut usages = vec![];

    faulty.refuse_once(longhaul_journal::Error::DiskFull { path: place.home() });
    let failed = consolidate(&journal, SCOPE, &scope_here, 1, &calling, &mut usages).await;
    let paid = usages.len();
    let done = consolidate(&journal, SCOPE, &scope_here, 1, &calling, &mut usages).await.unwrap();

    assert!(matches!(failed, Err(Error::Journal(_))), "{failed:?}");
    assert!(matches!(done, Consolidation::Done { items: 1, .. }), "{done:?}");
    assert_eq!((paid, usages.len(), changes(&*journal).await[0].usage.len()), (1, 0, 2));
}

/// B4, Y8: also a later process is not asked to pay for the same again.
#[tokio::test]
async fn an_answer_of_another_form_is_asked_for_once_more_and_then_left_until_more_has_come() {
    let place = TestHome::in_memory();
    let journal: Arc<dyn Journal> = place.journal().await;
    extract(&*journal, SessionId::generate(), SCOPE, &[(Speaker::User, "likes tea")]).await;
    let said = |text: &str| json!({"pages": true, "text": text, "usage": {"input": 1, "output": 1}});
    let written = json!({"calls": [{"name": "write_pages", "arguments": {"pages": [{"page": "core", "text": "- likes tea"}]}}]});
    let model = Arc::new(Turns::new(&[said("no idea"), said("still none"), said("hm"), written]));
    let calling = calling(model.clone());
    let mut usages = vec![];

    let failed = consolidate(&journal, SCOPE, &scope_here, 1, &calling, &mut usages).await.unwrap_err();
    let later = consolidate(&journal, SCOPE, &scope_here, 1, &calling, &mut vec![]).await.unwrap();
    let asked = model.calls.load(Ordering::SeqCst);
    extract(&*journal, SessionId::generate(), SCOPE, &[(Speaker::User, "likes cake")]).await;
    let done = consolidate(&journal, SCOPE, &scope_here, 1, &calling, &mut usages).await.unwrap();

    assert!(failed.to_string().contains("it wrote no pages: there was neither"), "{failed}");
    assert_eq!((later, asked), (Consolidation::NotDue(0), 2), "nothing is new");
    assert!(matches!(done, Consolidation::Done { items: 2, .. }), "{done:?}");
    assert_eq!(model.calls.load(Ordering::SeqCst), 4);
    let paid: Vec<usize> = changes(&*journal).await.iter().map(|change| change.usage.len()).collect();
    assert_eq!(paid, [2, 2], "what failed is paid for too");
}

#[tokio::test]
async fn a_model_that_takes_less_than_was_thought_is_asked_with_less() {
    let place = TestHome::in_memory();
    let journal: Arc<dyn Journal> = place.journal().await;
    let session = SessionId::generate();
    for number in 0..20 {
        let long = format!("thing{number} {}", "matters ".repeat(150));
        extract(&*journal, session, SCOPE, &[(Speaker::User, &long)]).await;
    }
    let model = Arc::new(Narrow(Diligent::default()));

    let done = consolidated(&journal, &calling(model)).await.unwrap();

    let Consolidation::Done { items, .. } = done else { panic!("{done:?}") };
    assert!((1..20).contains(&items), "{items}");
}

/// Y8: what is cut time and again would be paid for time and again.
#[tokio::test]
async fn an_answer_that_was_cut_is_asked_for_about_less_and_not_without_end() {
    let place = TestHome::in_memory();
    let journal: Arc<dyn Journal> = place.journal().await;
    let session = SessionId::generate();
    for number in 0..20 {
        let long = format!("thing{number} {}", "matters ".repeat(150));
        extract(&*journal, session, SCOPE, &[(Speaker::User, &long)]).await;
    }
    let cut =
        json!({"pages": true, "text": "{\"pages\": [", "stop": "length", "usage": {"input": 1, "output": 1}});
    let written = json!({"calls": [{"name": "write_pages", "arguments": {"pages": []}}]});
    let model = Arc::new(Turns::new(&[cut.clone(), cut.clone(), cut.clone(), cut.clone(), written]));
    let calling = calling(model.clone());

    let failed = consolidated(&journal, &calling).await.unwrap_err();
    let calls = model.calls.load(Ordering::SeqCst);
    extract(&*journal, session, SCOPE, &[(Speaker::User, "likes tea")]).await;
    let done = consolidated(&journal, &calling).await.unwrap();

    assert!(failed.to_string().ends_with("(it was cut at its limit)"), "{failed}");
    assert_eq!(calls, 3);
    let Consolidation::Done { items, .. } = done else { panic!("{done:?}") };
    assert!((1..20).contains(&items), "{items}");
}

/// A large window is no reason to pay for all of it.
#[tokio::test]
async fn what_is_asked_is_small_however_large_the_window_is() {
    let place = TestHome::in_memory();
    let journal: Arc<dyn Journal> = place.journal().await;
    for number in 0..20 {
        let text = format!("# Tea\n- likes tea {}\n", "often ".repeat(2_000));
        let page = format!("tea{number}");
        let change = PageEdit { page, text: Some(text), reason: String::new(), made_from: None };
        change_page(&*journal, SCOPE, change).await.unwrap();
    }
    extract(&*journal, SessionId::generate(), SCOPE, &[(Speaker::User, "likes tea")]).await;
    let model = RecordingModel::new(Diligent::default());
    let calling = BackgroundModel { window: Some(1_000_000), ..calling(model.clone()) };

    consolidated(&journal, &calling).await.unwrap();

    let asked = longhaul_context::estimate_items(&model.requests()[0].items);
    assert!(asked < 24_000, "{asked}");
}

/// Nobody is asked for more than it can answer.
#[tokio::test]
async fn an_answer_has_at_most_what_the_model_can_say() {
    let place = TestHome::in_memory();
    let journal: Arc<dyn Journal> = place.journal().await;
    extract(&*journal, SessionId::generate(), SCOPE, &[(Speaker::User, "likes tea")]).await;
    let model = RecordingModel::new(Diligent::default());
    let facts = Capabilities { max_output: Some(2_048), ..Capabilities::default() };
    let calling = BackgroundModel { capabilities: facts, ..calling(model.clone()) };

    consolidated(&journal, &calling).await.unwrap();

    assert_eq!(model.requests()[0].max_output, Some(2_048));
}

#[tokio::test]
async fn what_is_refused_is_said_in_short_and_without_secrets() {
    let place = TestHome::in_memory();
    let journal: Arc<dyn Journal> = place.journal().await;
    extract(&*journal, SessionId::generate(), SCOPE, &[(Speaker::User, "likes tea")]).await;
    let model = writing(&json!([
        {"page": "core", "text": "- likes tea"},
        {"page": "keys", "text": "- x", "items": format!("s3cret {}", "x".repeat(100_000))},
    ]));

    consolidated(&journal, &calling(model)).await.unwrap();

    let [reason] = changes(&*journal).await.remove(0).refused.try_into().unwrap();
    assert!(reason.len() < 500 && !reason.contains("s3cret"), "{reason}");
}

#[tokio::test]
async fn records_that_are_damaged_are_passed_over() {
    let place = TestHome::in_memory();
    let faulty = FaultyJournal::new(place.journal().await, None);
    let stream = StreamName::memory(SCOPE).unwrap();
    add_note(&*faulty, SCOPE, "likes tea", Speaker::User).await.unwrap();
    add_note(&*faulty, SCOPE, "likes milk", Speaker::User).await.unwrap();

    let damaged = longhaul_journal::Error::Damaged { stream, seq: 1, reason: "bits fell".to_owned() };
    faulty.refuse_reads(Some(damaged));
    let mut book = PageSet::load(&*faulty, SCOPE).await.unwrap();
    faulty.refuse_reads(None);
    let next = add_note(&*faulty, SCOPE, "likes cake", Speaker::User).await.unwrap();
    book.catch_up(&*faulty).await.unwrap();

    assert_eq!((next.seq, book.head, book.pages.len()), (3, 3, 1));
}

#[tokio::test]
async fn a_window_that_is_too_small_costs_no_call() {
    let place = TestHome::in_memory();
    let journal: Arc<dyn Journal> = place.journal().await;
    extract(&*journal, SessionId::generate(), SCOPE, &[(Speaker::User, "likes tea")]).await;
    let model = Arc::new(Diligent::default());
    let calling = BackgroundModel { window: Some(1_000), ..calling(model.clone()) };

    let error = consolidated(&journal, &calling).await.unwrap_err();

    assert!(matches!(error, Error::TooSmall { usable: 750, .. }), "{error}");
    assert_eq!(model.calls(), 0);
}

/// A model with an answer for each call, whatever is asked.
struct Turns {
    answers: Vec<ScriptedModel>,
    calls: AtomicUsize,
}

impl Turns {
    fn new(answers: &[serde_json::Value]) -> Self {
        let scripted = |answer| ScriptedModel::from_json(&json!([answer]).to_string()).unwrap();
        Self { answers: answers.iter().map(scripted).collect(), calls: AtomicUsize::new(0) }
    }
}

#[async_trait::async_trait]
impl Model for Turns {
    fn name(&self) -> &str {
        "turns"
    }

    async fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn ask(
        &self,
        request: Request,
        permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        self.answers[self.calls.fetch_add(1, Ordering::SeqCst)].ask(request, permit).await
    }
}

/// A model that takes only short requests, and says so.
struct Narrow(Diligent);

#[async_trait::async_trait]
impl Model for Narrow {
    fn name(&self) -> &str {
        "narrow"
    }

    async fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn ask(
        &self,
        request: Request,
        permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        match longhaul_context::estimate_items(&request.items) {
            0..4_000 => self.0.ask(request, permit).await,
            _ => Err(ModelFailure::new(FailureClass::TooLong, "that is too long")),
        }
    }
}
