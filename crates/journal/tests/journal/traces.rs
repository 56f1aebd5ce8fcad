//! J8, J10: what must not be left on the disk, or not for others to read.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use longhaul_journal::{
    Append, Blob, Error, Home, Journal, SearchQuery, SqliteJournal, erase_record, name_session, put,
};
use longhaul_protocol::{
    AttemptId, BlobRef, Block, CallId, Carried, ChildAdmitted, ChildSession, CompactStart, Effect,
    EpochReason, EpochStarted, InboxRecord, Input, InputId, InputTaken, Item, JoinMode, Kept, Note, Order,
    OrderId, OrderKind, OrderTaken, Pin, Place, Sender, Seq, SessionId, SessionRecord, StreamName, Summary,
    SystemMessage, TaskStarted, TextContent, Todo, TodoStatus, ToolFinished, ToolStarted, TreeRecord,
};

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { [files_below(&path), vec![path]].concat() } else { vec![path] })
        .collect()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// J8.
#[tokio::test(flavor = "multi_thread")]
async fn every_file_is_private_to_the_user() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("deep/home");
    let home = Home::create(&folder).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let session = name_session(&journal, "cli:x").await.unwrap();
    let stream = StreamName::session(session);
    journal.append(Append::to(&stream).record(SessionRecord::Note(Note::new("x")).encode())).await.unwrap();
    journal.search(&SearchQuery::new("x", 1)).await.unwrap();
    let _rings = journal.wake_signals().await.unwrap();
    journal.backup(&folder.join("backup.db")).await.unwrap();

    let mut open_to_others: Vec<_> = files_below(&folder);
    open_to_others.push(folder.clone());
    assert!(open_to_others.len() >= 10, "{open_to_others:?}");
    open_to_others.retain(|path| {
        let private = if path.is_dir() { 0o700 } else { 0o600 };
        let is_socket = path.extension().is_some_and(|ending| ending == "sock");
        mode(path) != private && !(is_socket && mode(path.parent().unwrap()) == 0o700)
    });

    assert_eq!(open_to_others, Vec::<PathBuf>::new());
    journal.close().await;
}

/// J8: a folder that was made for us is made private; one that somebody filled is left as it is.
#[test]
fn only_a_folder_of_our_own_is_made_private() {
    let parent = tempfile::tempdir().unwrap();
    let (empty, filled) = (parent.path().join("empty"), parent.path().join("filled"));
    for folder in [&empty, &filled] {
        std::fs::create_dir(folder).unwrap();
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::write(filled.join("letter.txt"), "mine").unwrap();

    Home::create(&empty).unwrap();
    Home::create(&filled).unwrap();

    assert_eq!((mode(&empty), mode(&filled)), (0o700, 0o755));
}

/// J10: bytes that another process still reads can't go yet. That is said, and erasing again finishes it, for the
/// inbox too.
#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_that_was_held_up_is_finished_by_another() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let session = name_session(&journal, "cli:x").await.unwrap();
    let input = Input::new(InputId::generate(), "xyzzysecret", JoinMode::Join);
    put(&journal, session, InboxRecord::Input(input.clone()).encode()).await.unwrap();
    let taken = SessionRecord::InputTaken(InputTaken::of(input, 1));
    journal.append(Append::to(&StreamName::session(session)).record(taken.encode())).await.unwrap();
    let reader = rusqlite::Connection::open(home.journal_file()).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM records;").unwrap();

    let held_up = erase_record(&journal, session, 1, "a secret").await;
    reader.execute_batch("ROLLBACK").unwrap();
    erase_record(&journal, session, 1, "a secret").await.unwrap();

    assert!(matches!(held_up, Err(Error::NotScrubbed { .. })), "{held_up:?}");
    for path in files_below(folder.path()).into_iter().filter(|path| path.is_file()) {
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(11).any(|window| window == b"xyzzysecret"), "{} still has it", path.display());
    }
}

/// J10: the prompt of a subagent goes with the call that gave it: in its session, its inbox and the list of the tree.
#[tokio::test(flavor = "multi_thread")]
async fn the_prompt_of_a_subagent_is_erased_with_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let (parent, child, call) = (SessionId::generate(), SessionId::generate(), CallId::generate());
    let prompt = "Look for xyzzysecret in the archive.";
    let arguments = format!("{{\"prompt\":\"{prompt}\"}}");
    let item = Item::ToolCall {
        call,
        wire_id: None,
        name: "agent".to_owned(),
        arguments: arguments.clone(),
        signature: None,
    };
    let started = ToolStarted {
        call,
        name: "agent".to_owned(),
        arguments,
        effect: Effect::Command,
        write: None,
        writes: vec![],
        kept_in: None,
        child: Some(Box::new(ChildSession { session: child, key: "agent:1".to_owned() })),
        changes_nothing: false,
        remote_task: None,
    };
    let task = TaskStarted {
        task_id: call.into(),
        command: "agent agent".to_owned(),
        description: prompt.to_owned(),
        target: "local".to_owned(),
        started_at: None,
        session: Some(child),
    };
    let append = Append::to(&StreamName::session(parent))
        .record(SessionRecord::Block(Block { attempt: AttemptId::generate(), index: 0, item }).encode())
        .record(SessionRecord::ToolStarted(started).encode())
        .record(SessionRecord::TaskStarted(task).encode());
    journal.append(append).await.unwrap();
    let admitted = ChildAdmitted {
        session: child,
        parent,
        call,
        name: "agent".to_owned(),
        description: prompt.to_owned(),
    };
    let tree = StreamName::tree(parent);
    journal.append(Append::to(&tree).record(TreeRecord::Admitted(admitted).encode())).await.unwrap();
    let sender = Sender::Parent { session: parent, call };
    let input = Input { sender, ..Input::new(InputId::generate(), prompt, JoinMode::Join) };
    put(&journal, child, InboxRecord::Input(input.clone()).encode()).await.unwrap();
    let taken = SessionRecord::InputTaken(InputTaken::of(input, 1));
    journal.append(Append::to(&StreamName::session(child)).record(taken.encode())).await.unwrap();

    let places = erase_record(&journal, parent, 1, "a secret").await.unwrap();

    assert_eq!(places.len(), 3 + 1 + 2, "{places:?}");
    for path in files_below(folder.path()).into_iter().filter(|path| path.is_file()) {
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(11).any(|window| window == b"xyzzysecret"), "{} still has it", path.display());
    }
}

/// J10: none of the files of the home holds the bytes any more, whatever the tree did with the row before.
#[tokio::test(flavor = "multi_thread")]
async fn erased_bytes_are_gone_from_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let streams: Vec<_> = (0..3).map(|_| StreamName::session(SessionId::generate())).collect();
    let output = b"blobsecret ".repeat(3_000);
    for line in 0..300 {
        let stream = &streams[line % 3];
        let text = if line == 150 {
            "hunter2secret".to_owned()
        } else {
            format!("filler {line} ").repeat(line % 40)
        };
        journal
            .append(Append::to(stream).record(SessionRecord::Note(Note::new(text)).encode()))
            .await
            .unwrap();
    }
    let whole = Some(BlobRef::to(&output, "text/plain"));
    let (call, name, content) = (CallId::generate(), "exec".to_owned(), String::new());
    let finished = ToolFinished { whole, ..ToolFinished::new(call, &name, content) };
    let append = Append::to(&streams[0]).record(SessionRecord::ToolFinished(finished).encode());
    journal.append(append.blob(Blob::new(output))).await.unwrap();
    journal.search(&SearchQuery::new("hunter2secret", 1)).await.unwrap();
    let holding = |secret: &str| -> Vec<PathBuf> {
        let holds = |path: &PathBuf| {
            let bytes = std::fs::read(path).unwrap_or_default();
            bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
        };
        files_below(folder.path()).into_iter().filter(|path| path.is_file()).filter(holds).collect()
    };
    assert!(!holding("hunter2secret").is_empty() && !holding("blobsecret").is_empty(), "they were there");

    journal.erase(&[(streams[0].clone(), 51)], "leaked").await.unwrap();
    journal.erase(&[(streams[0].clone(), 101)], "leaked").await.unwrap();

    assert_eq!(holding("hunter2secret"), Vec::<PathBuf>::new());
    assert_eq!(holding("blobsecret"), Vec::<PathBuf>::new());
    assert!(journal.verify().await.unwrap().is_sound());
}

fn said(text: &str) -> SessionRecord {
    let (id, mode) = (InputId::generate(), JoinMode::Join);
    SessionRecord::InputTaken(InputTaken::of(Input::new(id, text, mode), 1))
}

fn epoch(changed: impl Fn(&mut EpochStarted)) -> SessionRecord {
    let blob = || BlobRef::to(b"x", "text/plain");
    let mut epoch = EpochStarted::new(2, EpochReason::Compacted, blob(), blob());
    changed(&mut epoch);
    SessionRecord::EpochStarted(epoch)
}

fn preface(text: &str) -> SessionRecord {
    SessionRecord::SystemMessage(SystemMessage { content: vec![TextContent { text: text.into() }] })
}

fn directive(text: &str) -> SessionRecord {
    let summary = Summary { directives: vec![text.into()], ..Summary::default() };
    epoch(|epoch| epoch.summary = Some(Box::new(summary.clone())))
}

fn keeping(item: &Item) -> SessionRecord {
    let place = Place::new(1, 1, 1);
    epoch(|epoch| epoch.kept = vec![Kept { item: item.clone(), place }])
}

/// Which of these records go with the one before them, by their places among all.
async fn gone_with(original: SessionRecord, others: Vec<SessionRecord>) -> Vec<Seq> {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let session = SessionId::generate();
    let append = Append::to(&StreamName::session(session)).record(original.encode());
    let append = others.into_iter().fold(append, |append, other| append.record(other.encode()));
    let blobs = append.blob(Blob::new(b"x".to_vec()));
    journal.append(blobs).await.unwrap();

    let places = erase_record(&journal, session, 1, "a secret").await.unwrap();

    journal.close().await;
    let of_session = |(stream, seq)| (stream == StreamName::session(session)).then_some(seq);
    places.into_iter().filter_map(of_session).filter(|seq| *seq > 1).collect()
}

/// J10: what an epoch begins with may hold a part only: a request without its middle, a line of it, one of its sentences.
#[tokio::test(flavor = "multi_thread")]
async fn what_epochs_quote_of_an_erased_record_goes_with_it() {
    let request = format!(
        "The password of the build server is xyzzysecret, as always.\nNever push to main! {} And end with \"Ta-daa\", please do.",
        "filler ".repeat(500)
    );
    let head_and_tail =
        "The password of the build server is xyz\n[… 3,500 bytes …]\nend with \"Ta-daa\", please do.";
    let pin = |text: &str| Pin { name: "first_request".into(), text: text.into() };

    let gone = gone_with(
        said(&request),
        vec![
            epoch(|epoch| epoch.pins = vec![pin(head_and_tail)]),
            preface(&format!("[First request of this session, word for word]\n{head_and_tail}")),
            directive("The password of the  build server\nis XYZZYSECRET"),
            directive("never push to main"),
            preface("[Compacted context summary]\nIt stands here.\n\n# Directives of the user that still hold\n- \"Never push to main!\""),
            directive("never push to the main branch"),
            preface("[Compacted context summary]\nIt stands here.\n\n# Directives of the user that still hold\n- \"Use tabs, as always\""),
            epoch(|_| {}),
        ],
    )
    .await;

    assert_eq!(gone, [2, 3, 4, 5, 6]);
}

/// J10: a session that was brought here from elsewhere has an inbox of its own, and what waits in it is not what was taken before.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_input_holds_in_its_place_in_the_inbox_stays() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&Home::create(folder.path()).unwrap()).await.unwrap();
    let session = name_session(&journal, "cli:x").await.unwrap();
    let (id, mode) = (InputId::generate(), JoinMode::Join);
    let waiting = Input::new(id, "still to be done", mode);
    put(&journal, session, InboxRecord::Input(waiting).encode()).await.unwrap();
    let stream = StreamName::session(session);
    journal.append(Append::to(&stream).record(said("xyzzysecret").encode())).await.unwrap();

    let places = erase_record(&journal, session, 1, "a secret").await.unwrap();

    assert_eq!(places, [(stream, 1)]);
    journal.close().await;
}

/// J10: the arguments of a call stand in an epoch that keeps it, apart from its name.
#[tokio::test(flavor = "multi_thread")]
async fn an_erased_call_goes_from_the_epochs_that_keep_it() {
    let call = |command: &str| Item::ToolCall {
        call: CallId::generate(),
        wire_id: None,
        name: "exec".into(),
        arguments: format!("{{\"command\":\"{command}\"}}"),
        signature: None,
    };
    let attempt = AttemptId::generate();
    let block = SessionRecord::Block(Block { attempt, index: 0, item: call("login xyzzysecret") });

    let gone = gone_with(block, vec![keeping(&call("login xyzzysecret")), keeping(&call("ls -la"))]).await;

    assert_eq!(gone, [2]);
}

/// J10: what a summary should dwell on stands in the inbox, in the order that was taken and in the start of the compaction: whichever
/// is erased, the others go with it.
#[tokio::test(flavor = "multi_thread")]
async fn the_focus_of_a_compaction_is_erased_wherever_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    for erased in [2, 3] {
        let session = name_session(&journal, &format!("cli:{erased}")).await.unwrap();
        let focus = Some("the account xyzzysecret".to_owned());
        let order = Order { id: OrderId::generate(), kind: OrderKind::Compact { focus: focus.clone() } };
        let other = Order { id: OrderId::generate(), kind: OrderKind::Continue };
        put(&journal, session, InboxRecord::Order(other.clone()).encode()).await.unwrap();
        put(&journal, session, InboxRecord::Order(order.clone()).encode()).await.unwrap();
        let (stream, inbox) = (StreamName::session(session), StreamName::inbox(session));
        let taken =
            |inbox_through, order| SessionRecord::OrderTaken(OrderTaken { inbox_through, order }).encode();
        let start =
            |focus| SessionRecord::CompactStart(CompactStart { reason: "asked".into(), focus }).encode();
        let append = Append::to(&stream).record(taken(1, other)).record(taken(2, order));
        journal.append(append.record(start(focus)).record(start(None))).await.unwrap();

        let mut places = erase_record(&journal, session, erased, "a secret").await.unwrap();

        places.sort();
        let mut expected = vec![(inbox, 2), (stream.clone(), 2), (stream, 3)];
        expected.sort();
        assert_eq!(places, expected);
    }
    journal.close().await;
    for path in files_below(folder.path()).into_iter().filter(|path| path.is_file()) {
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(11).any(|window| window == b"xyzzysecret"), "{} still has it", path.display());
    }
}

/// J10: what the runtime writes into every summary is nobody's words: one that is erased takes those with it that say the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_erased_summary_takes_its_copies_and_no_other_summary() {
    let shown = |lines: &str| preface(&format!("[Compacted context summary]\nIt stands here.\n\n{lines}"));
    let written = |goal: &str, done: &str| {
        let summary = Summary { goal: goal.into(), done: vec![done.into()], ..Summary::default() };
        epoch(|epoch| epoch.summary = Some(Box::new(summary.clone())))
    };

    let gone = gone_with(
        shown("# Goal\nPort the parser\n# Done\n- the password is xyzzysecret"),
        vec![
            written("Port the parser", "the password is xyzzysecret"),
            shown("# Goal\nPort the parser\n# Done\n- the password is xyzzysecret"),
            written("Port the parser", "the grammar"),
            shown("# Goal\nPort the parser\n# Done\n- the grammar"),
            preface("[Compacted context summary]\nIt stands here."),
            preface("[Session todo snapshot]\n(empty)"),
        ],
    )
    .await;

    assert_eq!(gone, [2, 3]);
}

/// J10: the frame of a result is not what the tool said.
#[tokio::test(flavor = "multi_thread")]
async fn an_erased_result_goes_from_the_epochs_that_keep_it_and_no_others() {
    let content = |output: &str| {
        format!("{{\"status\":\"completed\",\"output\":\"{output}\",\"exit_code\":0,\"duration_ms\":12}}")
    };
    let result = |content: String| Item::ToolResult {
        call: CallId::generate(),
        content,
        images: vec![],
        is_error: false,
    };
    let long = format!("the first lines of what was printed {}", "filler ".repeat(500));
    for (printed, kept) in
        [("hello secret", "hello secret"), (&long, "the first lines of what was printed [… 9 …]")]
    {
        let finished = ToolFinished::new(CallId::generate(), "exec", content(printed));

        let gone = gone_with(
            SessionRecord::ToolFinished(finished),
            vec![
                keeping(&result(content("nothing alike"))),
                keeping(&result(content(kept))),
                keeping(&result(content("the first lines of something else […]"))),
                keeping(&result(content(""))),
            ],
        )
        .await;

        assert_eq!(gone, [3], "{kept}");
    }
}

/// J10: a session's files stand in each of its epochs, and what has a path in it does not take them all.
#[tokio::test(flavor = "multi_thread")]
async fn the_lists_of_the_runtime_are_not_compared() {
    let path = "/home/somebody/project/source/parser.rs";
    let carried =
        Carried { changed: vec![path.into()], again: Some("continue".into()), ..Carried::default() };
    let carrying = epoch(|epoch| epoch.carried = Some(Box::new(carried.clone())));
    let noted =
        keeping(&Item::Note { text: "The context was compacted; go on with the next action.".into() });

    for text in [path, "continue", "go on with", "look at /home/somebody/project/source/parser.rs, please"] {
        let gone = gone_with(said(text), vec![carrying.clone(), noted.clone()]).await;

        assert_eq!(gone, Vec::<Seq>::new(), "{text}");
    }
}

/// J10: what a call put on the todo list stands in the epochs by itself.
#[tokio::test(flavor = "multi_thread")]
async fn an_erased_call_goes_from_the_todo_lists_that_have_its_words() {
    let call = Item::ToolCall {
        call: CallId::generate(),
        wire_id: None,
        name: "todo".into(),
        arguments: "{\"items\":[{\"text\":\"log in with xyzzysecret\",\"status\":\"pending\"}]}".into(),
        signature: None,
    };
    let block = SessionRecord::Block(Block { attempt: AttemptId::generate(), index: 0, item: call });
    let todo = |text: &str| vec![Todo { text: text.into(), status: TodoStatus::Pending }];

    let gone = gone_with(
        block,
        vec![
            epoch(|epoch| epoch.todo = todo("log in with xyzzysecret")),
            preface("[Session todo snapshot]\n- [ ] log in with xyzzysecret"),
            epoch(|epoch| epoch.todo = todo("write the tests")),
            preface("[Session todo snapshot]\n- [ ] write the tests"),
        ],
    )
    .await;

    assert_eq!(gone, [2, 3]);
}
