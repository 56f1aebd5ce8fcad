//! Embeddings as a second way of finding records.

use std::sync::Arc;

use longhaul_journal::{Journal, SqliteJournal};
use longhaul_memory::{
    Embedder, EmbeddingFinder, RecallBudget, Recalled, Unbudgeted, embed_session, recall, recall_with,
};
use longhaul_model::{ModelSpec, Models};
use longhaul_protocol::SessionId;
use longhaul_testkit::{EmbeddingManner, EmbeddingServer};

use crate::journal;
use crate::scopes::{places, said};

const TEXTS: [&str; 4] = [
    "The physician sits in Oak Street.",
    "The automobile is red.",
    "Nothing else.",
    "Salary comes on Friday.",
];

struct Desk {
    folder: tempfile::TempDir,
    journal: SqliteJournal,
    session: SessionId,
    server: EmbeddingServer,
}

impl Desk {
    async fn new(manner: EmbeddingManner) -> Self {
        let (folder, journal) = journal().await;
        let session = SessionId::generate();
        for text in TEXTS {
            said(&journal, session, text).await;
        }
        Self { folder, journal, session, server: EmbeddingServer::start(manner) }
    }

    fn embedder(&self, model: &str) -> Arc<Embedder> {
        let base_url = Some(self.server.base_url.clone());
        let spec = ModelSpec { name: format!("custom/{model}"), base_url, ..ModelSpec::default() };
        Arc::new(Embedder::new(Models::at(self.folder.path()).unwrap().open_embedding(&spec).unwrap()))
    }

    async fn embed(&self, embedder: &Embedder) -> longhaul_memory::Result<usize> {
        embed_session(&self.journal, self.session, embedder, &Unbudgeted).await
    }

    async fn recall(&self, embedder: &Arc<Embedder>, question: &str) -> Recalled {
        let places = places(&self.journal, "mine", &[self.session]).await;
        let finder = EmbeddingFinder { embedder: embedder.clone(), budget: Arc::new(Unbudgeted) };
        let budget = RecallBudget::entries(3);
        recall_with(&self.journal, &places, question, budget, Some(&finder)).await.unwrap()
    }
}

fn first(found: &Recalled) -> &str {
    found.hits.first().map_or("", |hit| &hit.excerpt)
}

/// Y13: what was said in other words is found, and each record is sent once.
#[tokio::test(flavor = "multi_thread")]
async fn embeddings_find_what_was_said_in_other_words() {
    let desk = Desk::new(EmbeddingManner::Well(8)).await;
    let embedder = desk.embedder("small");
    let question = "Where is my doctor?";
    let places = places(&desk.journal, "mine", &[desk.session]).await;
    let by_words = recall(&desk.journal, &places, question, RecallBudget::entries(3)).await.unwrap();

    let counts = (desk.embed(&embedder).await.unwrap(), desk.embed(&embedder).await.unwrap());
    let found = desk.recall(&embedder, question).await;

    assert_eq!(by_words.hits, []);
    assert_eq!(counts, (4, 0));
    assert_eq!((first(&found), &found.warning), (TEXTS[0], &None));
    assert_eq!(desk.server.asked(), [TEXTS.map(str::to_owned).to_vec(), vec![question.to_owned()]]);
}

/// Words still count, and what both find stands first.
#[tokio::test(flavor = "multi_thread")]
async fn words_and_embeddings_are_fused() {
    let desk = Desk::new(EmbeddingManner::Well(8)).await;
    let embedder = desk.embedder("small");
    desk.embed(&embedder).await.unwrap();

    let found = desk.recall(&embedder, "Is the car red?").await;

    assert_eq!(first(&found), TEXTS[1]);
}

/// Y13: a server that fails, is silent or answers nonsense costs a warning and not the answer, and is left alone for a while.
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_server_leaves_the_search_by_words() {
    for (manner, reason) in [
        (EmbeddingManner::Failing, "out of memory"),
        (EmbeddingManner::Short, "no usable embeddings"),
        (EmbeddingManner::Silent, "within 2 s"),
    ] {
        let desk = Desk::new(manner).await;
        let embedder = desk.embedder("small");

        let found = desk.recall(&embedder, "What about the salary?").await;
        let asked = desk.server.asked().len();
        desk.server.change_manner(EmbeddingManner::Well(8));
        let again = desk.recall(&embedder, "What about the salary?").await;

        assert_eq!(first(&found), TEXTS[3], "{manner:?}");
        let warning = found.warning.unwrap();
        assert!(warning.contains(reason) && warning.contains("only words"), "{manner:?}: {warning}");
        assert_eq!((asked, desk.server.asked().len()), (1, 1), "{manner:?}");
        assert_eq!((first(&again), again.warning.as_ref()), (TEXTS[3], Some(&warning)), "{manner:?}");
    }
}

/// Y13: a text that the server refuses keeps neither the others from their vectors nor the server from the next questions, and is not
/// sent again.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_text_is_left_out() {
    let desk = Desk::new(EmbeddingManner::Refusing("Salary")).await;
    let embedder = desk.embedder("small");

    let counts = (desk.embed(&embedder).await.unwrap(), desk.embed(&embedder).await.unwrap());
    let found = desk.recall(&embedder, "Where is my doctor?").await;

    assert_eq!(counts, (3, 0));
    assert_eq!((first(&found), &found.warning), (TEXTS[0], &None));
}

/// Y13: a server that refuses everything is not one that refuses a text: nothing is given up, and it is left alone for a while.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_every_text_is_paused() {
    let desk = Desk::new(EmbeddingManner::Refusing("")).await;
    let embedder = desk.embedder("small");

    let failures = [desk.embed(&embedder).await, desk.embed(&embedder).await];
    let asked = desk.server.asked().len();
    desk.server.change_manner(EmbeddingManner::Well(8));

    assert!(failures.iter().all(|failure| failure.is_err()), "{failures:?}");
    assert_eq!(asked, 2, "the batch, and a text that every model takes");
    assert_eq!(desk.embed(&desk.embedder("small")).await.unwrap(), 4);
}

/// Another model, or vectors of another length under the same name, are made anew; nothing old is compared with them.
#[tokio::test(flavor = "multi_thread")]
async fn another_model_makes_the_vectors_anew() {
    let desk = Desk::new(EmbeddingManner::Well(8)).await;
    desk.embed(&desk.embedder("small")).await.unwrap();
    let larger = desk.embedder("larger");

    assert_eq!(desk.recall(&larger, "Where is my doctor?").await.hits, []);
    assert_eq!(desk.embed(&larger).await.unwrap(), 4);
    assert_eq!(first(&desk.recall(&larger, "Where is my doctor?").await), TEXTS[0]);
    desk.server.change_manner(EmbeddingManner::Well(12));
    assert_eq!(desk.recall(&larger, "Where is my doctor?").await.hits, []);
    said(&desk.journal, desk.session, "One thing more.").await;
    // One record shows the new length, then all are made.
    assert_eq!(desk.embed(&larger).await.unwrap(), 1 + 5);
    assert_eq!(first(&desk.recall(&larger, "Where is my doctor?").await), TEXTS[0]);
}

/// J10: what is erased is not found by its vector either.
#[tokio::test(flavor = "multi_thread")]
async fn an_erased_record_is_not_found_by_its_meaning() {
    let desk = Desk::new(EmbeddingManner::Well(8)).await;
    let embedder = desk.embedder("small");
    desk.embed(&embedder).await.unwrap();
    let stream = longhaul_protocol::StreamName::session(desk.session);

    desk.journal.erase(&[(stream, 1)], "leaked").await.unwrap();

    let found = desk.recall(&embedder, "Where is my doctor?").await;
    assert!(found.hits.iter().all(|hit| hit.sources != [1]), "{found:?}");
    assert_eq!(desk.embed(&embedder).await.unwrap(), 0);
}
