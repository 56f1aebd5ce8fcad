use longhaul_journal::{Append, Blob, Home, SqliteJournal};
use longhaul_protocol::{Note, SessionId, TaskEnded, TaskStarted, TaskStatus, ToolFinished};
use longhaul_tools::StopSignal;

use super::*;

fn read_arguments(offset: Option<usize>, limit: Option<usize>) -> ReadArguments {
    ReadArguments { path: "output:x".into(), offset, limit }
}

#[test]
fn a_part_says_what_it_is_a_part_of_and_how_to_go_on() {
    let text = "a\nb\nc\nd\n";

    assert_eq!(
        select_lines(text, &read_arguments(Some(2), Some(2))),
        "b\nc\n[lines 2 to 3 of 4; go on with offset 4]"
    );
    assert_eq!(select_lines(text, &read_arguments(Some(4), Some(2))), "d");
    assert_eq!(select_lines(text, &read_arguments(None, None)), "a\nb\nc\nd");
    assert_eq!(select_lines(text, &read_arguments(Some(9), None)), "[there is no line 9: it has 4 lines]");
}

/// A session in a journal of its own.
struct JournalSession {
    _folder: tempfile::TempDir,
    journal: Arc<dyn Journal>,
    session: SessionId,
}

impl JournalSession {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = SqliteJournal::open(&Home::create(folder.path()).unwrap()).await.unwrap();
        Self { _folder: folder, journal: Arc::new(journal), session: SessionId::generate() }
    }

    async fn append(&self, records: impl IntoIterator<Item = SessionRecord>, blobs: &[&str]) {
        let mut append = Append::to(&StreamName::session(self.session));
        for record in records {
            append = append.record(record.encode());
        }
        for blob in blobs {
            append = append.blob(Blob::new(blob.as_bytes()));
        }
        self.journal.append(append).await.unwrap();
    }

    /// Reads an output that the context doesn't show.
    async fn read(&self, session: SessionId, path: &str) -> ToolOutcome {
        let call = ToolInvocation::new(session, serde_json::json!({"path": path}).to_string());
        let run = read_output("read_file", &call, &HashMap::new(), &self.journal).unwrap();
        let (_stopper, stop) = StopSignal::pair();
        run(stop).await
    }
}

fn notes(many: usize) -> impl Iterator<Item = SessionRecord> {
    (0..many).map(|number| SessionRecord::Note(Note::new(format!("note {number}"))))
}

fn finished(call: CallId, whole: &str) -> SessionRecord {
    let whole = Some(BlobRef::to(whole.as_bytes(), "text/plain"));
    SessionRecord::ToolFinished(ToolFinished { whole, ..ToolFinished::new(call, "exec", "head … tail") })
}

/// C8, C10: after a compaction only the journal knows of the call.
#[tokio::test]
async fn an_output_that_the_context_does_not_show_any_more_is_found_in_the_journal() {
    let stored = JournalSession::new().await;
    stored.append(notes(700), &[]).await;
    let (call, other) = (CallId::generate(), CallId::generate());
    stored.append([finished(other, "another"), finished(call, "the whole")], &["another", "the whole"]).await;
    stored.append(notes(700), &[]).await;

    let found = stored.read(stored.session, &format!("output:{call}")).await;
    let of_another_session = stored.read(SessionId::generate(), &format!("output:{call}")).await;
    let never_made = stored.read(stored.session, &format!("output:{}", CallId::generate())).await;
    let no_id = stored.read(stored.session, "output:first").await;

    assert_eq!(found, ToolOutcome::ok("the whole"));
    for missing in [of_another_session, never_made, no_id] {
        assert!(missing.is_error && missing.content.starts_with("there is no whole output of a call"));
    }
}

/// C8, C10: a command that went on as a task has the output that it printed until its end.
#[tokio::test]
async fn the_output_of_a_task_is_that_of_its_end() {
    let stored = JournalSession::new().await;
    let call = CallId::generate();
    let (command, description, target) = ("make".to_owned(), "the build".to_owned(), "local".to_owned());
    let started =
        TaskStarted { task_id: call.into(), command, description, target, started_at: None, session: None };
    let ended = TaskEnded {
        task_id: call.into(),
        status: TaskStatus::Completed,
        exit_code: Some(0),
        duration_ms: 1,
        output: Some(BlobRef::to(b"all of it", "text/plain")),
        tail: String::new(),
        message: None,
        unasked: false,
        session: None,
    };
    stored.append([SessionRecord::TaskStarted(started), finished(call, "some of it")], &["some of it"]).await;
    let while_it_runs = stored.read(stored.session, &format!("output:{call}")).await;
    stored.append(notes(600), &[]).await;
    stored.append([SessionRecord::TaskEnded(ended)], &["all of it"]).await;

    let after_its_end = stored.read(stored.session, &format!("output:{call}")).await;

    assert_eq!((while_it_runs.content.as_str(), after_its_end.content.as_str()), ("some of it", "all of it"));
}
