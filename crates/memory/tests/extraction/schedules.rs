//! Y6, over random schedules: turns, compactions, extractions at any moment, and jobs that are cut at any point. No record is covered twice
//! or left out, and everything that was said stands in exactly one request whose answer was kept.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use longhaul_journal::Append;
use longhaul_memory::{Error, UnextractedCounter, extract, extracted_through};
use longhaul_model::FailureClass;
use longhaul_protocol::{
    CallId, CompactFailed, CompactStart, Note, Notification, Seq, SessionRecord, StreamName, SystemMessage,
    TextContent,
};
use proptest::prelude::*;
use serde_json::json;

use crate::scripted_model::{Reply, Told, message, shown};
use crate::staged::{
    SCOPE, Stage, answer_keeping, calling, calls, ended, finished, input, says, started, with_window,
};

/// Something that happens.
#[derive(Debug, Clone)]
enum Happening {
    /// An input of so many bytes, whether a turn is open or not.
    Input(usize),
    TurnStarts,
    /// An answer with so many blocks of so many bytes, of which some are kept; perhaps an input comes in the middle.
    Answer {
        blocks: u32,
        kept: u32,
        bytes: usize,
        interrupted: bool,
    },
    Result {
        bytes: usize,
        of_history: bool,
    },
    TurnEnds,
    Compaction,
    Notice,
    /// With so much room besides the instructions; cut after so many polls.
    Extraction {
        room: u64,
        cut: Option<usize>,
    },
    Look,
}

fn any_happening() -> impl Strategy<Value = Happening> {
    let bytes = || prop_oneof![4 => 1usize..300, 1 => 300usize..4_000];
    prop_oneof![
        3 => bytes().prop_map(Happening::Input),
        3 => Just(Happening::TurnStarts),
        4 => (1u32..4, 0u32..4, bytes(), any::<bool>()).prop_map(|(blocks, kept, bytes, interrupted)| {
            Happening::Answer { blocks, kept, bytes, interrupted }
        }),
        3 => (bytes(), any::<bool>()).prop_map(|(bytes, of_history)| Happening::Result { bytes, of_history }),
        3 => Just(Happening::TurnEnds),
        1 => Just(Happening::Compaction),
        1 => Just(Happening::Notice),
        4 => (200u64..2_000, prop::option::of(1usize..60))
            .prop_map(|(room, cut)| Happening::Extraction { room, cut }),
        1 => Just(Happening::Look),
    ]
}

/// A session of which is known what was said in it, without asking whoever listens to it.
struct World {
    stage: Stage,
    has_turn: bool,
    head: Seq,
    rest: Seq,
    said: BTreeSet<Seq>,
    model: std::sync::Arc<Told>,
    unread: UnextractedCounter,
}

impl World {
    async fn new() -> Self {
        let answered = AtomicU64::new(0);
        // Each answer has one item that tells which request it is for.
        let model = Told::by(move |request| {
            let number = answered.fetch_add(1, Ordering::SeqCst);
            match number % 7 {
                3 => Reply::Text("no".to_owned()),
                5 if message(request).len() > 3_000 => Reply::Fails(FailureClass::TooLong),
                _ => {
                    let first = shown(&message(request))[0];
                    let text = format!("request {number}");
                    Reply::Items(
                        json!([{"kind": "discussion", "text": text, "sources": [first], "speaker": "assistant"}]),
                    )
                }
            }
        });
        let (said, unread) = (BTreeSet::new(), UnextractedCounter::default());
        Self { stage: Stage::new().await, has_turn: false, head: 0, rest: 0, said, model, unread }
    }

    /// Appends records; those with a mark say something that counts.
    async fn append(&mut self, facts: Vec<(SessionRecord, bool)>) {
        if facts.is_empty() {
            return;
        }
        let mut append = Append::to(&self.stage.stream());
        for (fact, says_something) in facts {
            self.head += 1;
            match fact {
                SessionRecord::TurnStarted(_) => self.has_turn = true,
                SessionRecord::TurnEnded(_) => self.has_turn = false,
                _ => {}
            }
            if !self.has_turn {
                self.rest = self.head;
            }
            if says_something {
                self.said.insert(self.head);
            }
            append = append.record(fact.encode());
        }
        self.stage.journal.append(append).await.unwrap();
    }

    async fn happen(&mut self, happening: &Happening) {
        match *happening {
            Happening::Input(bytes) => self.append(vec![(input(&"i".repeat(bytes)), true)]).await,
            Happening::TurnStarts if !self.has_turn => self.append(vec![(started(), false)]).await,
            Happening::TurnEnds if self.has_turn => self.append(vec![(ended(), false)]).await,
            Happening::Answer { blocks, kept, bytes, interrupted } if self.has_turn => {
                self.append(answered(blocks, kept, bytes, interrupted)).await;
            }
            Happening::Result { bytes, of_history } if self.has_turn => {
                let name = if of_history { "history_read" } else { "exec" };
                self.append(vec![(finished(name, &"o".repeat(bytes)), !of_history)]).await;
            }
            Happening::Compaction => {
                let content = vec![TextContent { text: "a summary".to_owned() }];
                let start = CompactStart { reason: "asked".to_owned(), focus: None };
                let failed = CompactFailed { reason: "no".to_owned(), tokens: None, was_needed: false };
                let facts = [
                    SessionRecord::CompactStart(start),
                    SessionRecord::SystemMessage(SystemMessage { content }),
                    SessionRecord::CompactFailed(failed),
                ];
                self.append(facts.into_iter().map(|fact| (fact, false)).collect()).await;
            }
            Happening::Notice => {
                let told = Notification { task_id: CallId::generate().into(), text: "it ended".to_owned() };
                let note = SessionRecord::Note(Note::new("a note"));
                self.append(vec![(SessionRecord::Notification(told), true), (note, false)]).await;
            }
            Happening::Extraction { room, cut } => self.extract(1_100 + room, cut).await,
            Happening::Look => self.look().await,
            _ => {}
        }
    }

    async fn extract(&self, tokens: u64, cut: Option<usize>) {
        let calling = with_window(calling(self.model.clone()), tokens);
        let mut usages = vec![];
        let Some(mut polls) = cut else {
            let done = self.stage.extract_with(&calling, &mut usages).await;
            match done {
                Ok(done) if done.parts > 0 => assert_eq!(done.through, self.rest, "up to the last rest"),
                Ok(_) | Err(Error::Model(_) | Error::Unstructured { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            return;
        };
        let stage = &self.stage;
        let mut job = pin!(extract(&stage.journal, stage.session, SCOPE, &calling, &mut usages));
        poll_fn(|context| {
            polls -= 1;
            match job.as_mut().poll(context) {
                Poll::Pending if polls > 0 => Poll::Pending,
                _ => Poll::Ready(()),
            }
        })
        .await;
    }

    async fn look(&mut self) {
        let (journal, session) = (&*self.stage.journal, self.stage.session);
        let through = extracted_through(journal, session).await.unwrap();
        let incremental = self.unread.count_tokens(journal, session).await.unwrap();
        // What was cut may write its last record only now.
        if extracted_through(journal, session).await.unwrap() == through {
            let anew = UnextractedCounter::default().count_tokens(journal, session).await.unwrap();
            let is_new = self.said.range(through + 1..).any(|seq| *seq <= self.rest);
            assert_eq!((incremental, incremental > 0), (anew, is_new));
        }
    }

    /// Goes through the rest, and checks everything.
    async fn end(&mut self) {
        // A job that was cut may still be appending.
        tokio::time::sleep(Duration::from_millis(5)).await;
        let calling = calling(self.model.clone());
        while self.stage.extract(&calling).await.is_err() {}
        let stream = StreamName::extract(self.stage.session);
        assert!(self.stage.journal.head(&stream).await.unwrap().seq > 0 || self.new_after(0).is_empty());

        let requests = self.model.messages();
        let mut through = 0;
        for extracted in self.stage.extracted().await {
            assert_eq!(extracted.from, through + 1, "no gap, no overlap");
            through = extracted.through;
            assert!(through >= extracted.from && through <= self.rest);
            let number = extracted.items[0].text.strip_prefix("request ").unwrap().parse::<usize>().unwrap();
            let expected: Vec<Seq> = self.said.range(extracted.from..=through).copied().collect();
            assert_eq!(shown(&requests[number]), expected, "everything that was said, once");
        }
        assert_eq!(self.new_after(through), Vec::<Seq>::new(), "nothing is left");
        self.look().await;
    }

    /// What was said after this record and is over.
    fn new_after(&self, through: Seq) -> Vec<Seq> {
        self.said.range(through + 1..).copied().filter(|seq| *seq <= self.rest).collect()
    }
}

fn answered(blocks: u32, kept: u32, bytes: usize, interrupted: bool) -> Vec<(SessionRecord, bool)> {
    let item = |index: u32| match index % 2 {
        0 => says(&"a".repeat(bytes)),
        _ => calls("exec", "{}"),
    };
    let mut facts: Vec<_> =
        answer_keeping((0..blocks).map(item).collect(), kept).into_iter().map(|fact| (fact, false)).collect();
    for (index, fact) in (0..).zip(&mut facts[2..]).take(usize::try_from(blocks).unwrap()) {
        fact.1 = index < kept;
    }
    if interrupted {
        facts.insert(3, (input("stop"), true));
    }
    facts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Y6
    #[test]
    fn no_record_is_covered_twice_or_left_out(happenings in prop::collection::vec(any_happening(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new().await;
            for happening in &happenings {
                world.happen(happening).await;
            }
            world.end().await;
            world.stage.journal.close().await;
        });
    }
}
