//! Y1: what is new, counted.

use std::sync::Arc;

use async_trait::async_trait;
use longhaul_journal::Journal;
use longhaul_memory::UnextractedCounter;
use longhaul_protocol::SessionId;
use longhaul_testkit::FaultyJournal;

use crate::scripted_model::Told;
use crate::staged::{Stage, answer, calling, ended, finished, input, says, started};

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
