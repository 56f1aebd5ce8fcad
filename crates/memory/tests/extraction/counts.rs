//! Y1: what is new, counted.

use std::sync::Arc;

use async_trait::async_trait;
use longhaul_journal::Journal;
use longhaul_memory::UnextractedCounter;
use longhaul_protocol::SessionId;
use longhaul_testkit::FaultyJournal;

use crate::scripted_model::{Reply, Told};
use crate::staged::{
    Stage, answer, calling, ended, ended_as_too_long, ended_with_nothing_to_do, finished, heartbeat, input,
    says, started,
};

#[async_trait]
trait Looking {
    async fn at(&mut self, stage: &Stage) -> u64;
}

#[async_trait]
impl Looking for UnextractedCounter {
    async fn at(&mut self, stage: &Stage) -> u64 {
        self.count_tokens(&*stage.journal, stage.session).await.unwrap()
    }
}

#[tokio::test]
async fn what_is_said_counts_when_its_turn_has_ended() {
    let stage = Stage::new().await;
    let mut unread = UnextractedCounter::default();
    assert_eq!(unread.at(&stage).await, 0);

    stage.append([started()].into_iter().chain(answer([says(&"a".repeat(4_000))]))).await;
    assert_eq!(unread.at(&stage).await, 0);

    stage.append([ended()]).await;
    let counted = unread.at(&stage).await;
    assert!((1_000..1_050).contains(&counted), "{counted}");
    assert_eq!(UnextractedCounter::default().at(&stage).await, counted);
}

#[tokio::test]
async fn only_what_came_after_the_last_extract_counts() {
    let stage = Stage::new().await;
    let mut unread = UnextractedCounter::default();
    stage.talk(&"q".repeat(4_000), "ok").await;
    assert!(unread.at(&stage).await > 1_000);

    stage.extract(&calling(Told::new([]))).await.unwrap();
    assert_eq!(unread.at(&stage).await, 0);

    stage.talk("and", "yes").await;
    let counted = unread.at(&stage).await;
    assert!((1..50).contains(&counted), "{counted}");
    assert_eq!(UnextractedCounter::default().at(&stage).await, counted);

    // Another process went through what was not even counted here.
    stage.talk("more", &"a".repeat(4_000)).await;
    stage.extract(&calling(Told::new([]))).await.unwrap();
    assert_eq!(unread.at(&stage).await, 0);
}

/// Y6, B4: the span is kept, but it is not new any more, in no process.
#[tokio::test]
async fn what_the_model_gave_no_usable_answer_about_is_not_new() {
    let stage = Stage::new().await;
    let mut unread = UnextractedCounter::default();
    stage.talk(&"q".repeat(40_000), "ok").await;
    assert!(unread.at(&stage).await > 2_000 && !unread.is_after_failure());

    let wrong = Told::new([Reply::Arguments("{".to_owned()), Reply::Arguments("{".to_owned())]);
    stage.extract(&calling(wrong.clone())).await.unwrap_err();
    assert_eq!((unread.at(&stage).await, unread.is_after_failure()), (0, true));
    stage.talk("and", "yes").await;
    let counted = unread.at(&stage).await;
    assert!((1..50).contains(&counted), "{counted}");
    assert_eq!(UnextractedCounter::default().at(&stage).await, counted);

    let end = stage.talk("more", "yes").await;
    stage.extract(&calling(Told::new([]))).await.unwrap();
    assert_eq!((unread.at(&stage).await, unread.is_after_failure()), (0, false));
    assert_eq!(stage.ranges().await, [(1, end)]);
}

/// B4: an input that was too long for the session's model costs memory nothing; what was said before and after it counts.
#[tokio::test]
async fn an_input_that_the_model_could_not_take_is_not_sent_to_memorys_model() {
    let stage = Stage::new().await;
    let mut unread = UnextractedCounter::default();
    let too_long = "word ".repeat(100_000);
    stage.append([input(&too_long), started(), ended_as_too_long()]).await;
    let model = Told::new([]);

    let done = stage.extract(&calling(model.clone())).await.unwrap();
    assert_eq!((unread.at(&stage).await, done.parts, model.calls()), (0, 0, 0));

    stage.talk("the port is 8080", "noted").await;
    stage.append([input(&too_long), input("a short one"), started(), ended_as_too_long()]).await;
    let counted = unread.at(&stage).await;
    let done = stage.extract(&calling(model.clone())).await.unwrap();
    assert!((1..50).contains(&counted), "{counted}");
    assert_eq!((done.parts, model.calls()), (1, 1));
    let message = model.messages().remove(0);
    assert!(message.contains("8080") && message.contains("a short one") && !message.contains("word word"));
}

/// W3: heartbeats that found nothing to do cost memory nothing, whatever they read. What a person said while one ran counts.
#[tokio::test]
async fn heartbeats_with_nothing_to_do_are_not_sent_to_memorys_model() {
    let stage = Stage::new().await;
    let mut unread = UnextractedCounter::default();
    let quiet = || {
        let (prompt, looked) = (heartbeat("are the builds green?"), finished("exec", "all of them"));
        let turn = [prompt, started(), looked].into_iter().chain(answer([says("Nothing to do.")]));
        turn.chain([ended_with_nothing_to_do()])
    };
    stage.append(quiet().chain(quiet())).await;
    let model = Told::new([]);

    let done = stage.extract(&calling(model.clone())).await.unwrap();
    assert_eq!((unread.at(&stage).await, done.parts, model.calls()), (0, 0, 0));

    stage.talk("the port is 8080", "noted").await;
    stage.append(quiet()).await;
    let joined = [heartbeat("are the builds green?"), started(), input("the host is example.org")];
    stage.append(joined.into_iter().chain([ended_with_nothing_to_do()])).await;
    stage.append([heartbeat("are the docs built?"), started()]).await;
    stage.append(answer([says("I built the docs.")]).into_iter().chain([ended()])).await;
    let counted = unread.at(&stage).await;
    let done = stage.extract(&calling(model.clone())).await.unwrap();
    assert!((1..100).contains(&counted), "{counted}");
    assert_eq!((done.parts, model.calls()), (1, 1));
    let message = model.messages().remove(0);
    assert!(
        message.contains("8080") && message.contains("example.org") && message.contains("I built the docs.")
    );
    assert!(!message.contains("Nothing to do") && !message.contains("all of them"), "{message}");
}

#[tokio::test]
async fn it_counts_what_would_be_shown() {
    let stage = Stage::new().await;
    stage.append([started(), finished("exec", &"x".repeat(1 << 20)), ended()]).await;
    let mut unread = UnextractedCounter::default();
    assert!(unread.at(&stage).await < 600);

    stage.append([input(&"y".repeat(1 << 20))]).await;
    assert!(unread.at(&stage).await < 25_000);
}

/// Y5
#[tokio::test]
async fn a_look_at_an_unchanged_session_reads_no_record() {
    let stage = Stage::new().await;
    stage.talk("hi", "hello").await;
    stage.extract(&calling(Told::new([]))).await.unwrap();
    stage.talk("more", "yes").await;
    let faulty = FaultyJournal::new(stage.journal.clone(), None);
    let journal: Arc<dyn Journal> = faulty.clone();
    let mut unread = UnextractedCounter::default();
    let counted = unread.count_tokens(&*journal, stage.session).await.unwrap();

    faulty.refuse_reads(Some(longhaul_journal::Error::Closed));

    assert_eq!(unread.count_tokens(&*journal, stage.session).await.unwrap(), counted);
    stage.talk("even more", "yes").await;
    assert!(unread.count_tokens(&*journal, stage.session).await.is_err());
    faulty.refuse_reads(None);
    assert!(unread.count_tokens(&*journal, stage.session).await.unwrap() > counted);
}

#[tokio::test]
async fn each_session_is_counted_for_itself() {
    let stage = Stage::new().await;
    stage.talk("hi", "hello").await;
    let mut unread = UnextractedCounter::default();
    let counted = unread.at(&stage).await;

    assert_eq!(unread.count_tokens(&*stage.journal, SessionId::generate()).await.unwrap(), 0);
    assert_eq!(unread.at(&stage).await, counted);
}
