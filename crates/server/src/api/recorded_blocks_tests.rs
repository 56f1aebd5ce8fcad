use longhaul_journal::{Append, SqliteJournal};
use longhaul_protocol::{
    Answered, AnsweredBy, AttemptEnded, AttemptId, AttemptStarted, Block as ItemRecord, CallId, Checkpoint,
    CompactDone, CompactStart, CompactedBy, Effect, Input, InputId, InputTaken, Item, JoinMode, ModelChanged,
    Order, OrderId, OrderKind, OrderTaken, Outcome, Question, QuestionId, QuestionKind, Role, SessionRecord,
    TaskEnded, TaskId, TaskStatus, ToolFinished, ToolStarted, TurnEnded, Warning,
};
use longhaul_testkit::TestHome;

use super::*;

/// Records of a session, in the making.
#[derive(Default)]
struct Recording(Vec<SessionRecord>);

impl Recording {
    fn input(&mut self, text: &str) -> InputId {
        self.input_with(JoinMode::Join, text)
    }

    fn input_with(&mut self, mode: JoinMode, text: &str) -> InputId {
        let id = InputId::generate();
        let taken = InputTaken::of(Input::new(id, text, mode), 1);
        self.0.push(SessionRecord::InputTaken(taken));
        id
    }

    fn order(&mut self, kind: OrderKind) {
        let order = Order { id: OrderId::generate(), kind };
        self.0.push(SessionRecord::OrderTaken(OrderTaken { inbox_through: 1, order }));
    }

    fn turn(&mut self, turn: u64) {
        self.0.push(SessionRecord::TurnStarted(TurnStarted::new(turn)));
    }

    fn end_turn(&mut self, turn: u64) {
        self.0.push(SessionRecord::TurnEnded(TurnEnded {
            turn,
            outcome: Outcome::Completed,
            limit: None,
            text: String::new(),
            error: None,
            code: None,
            inbox_through: None,
        }));
    }

    /// The beginning of a step whose answer goes on.
    fn begin_step(&mut self, step: u64, model: &str, text: &str) -> AttemptId {
        let attempt = AttemptId::generate();
        self.0.push(SessionRecord::StepStarted(StepStarted::new(step)));
        self.0.push(SessionRecord::AttemptStarted(AttemptStarted { attempt, model: model.to_owned() }));
        self.0.push(SessionRecord::Checkpoint(Checkpoint { attempt, text: text.to_owned() }));
        attempt
    }

    fn end_step(&mut self, attempt: AttemptId, text: &str, error: Option<&str>) {
        let item = Item::Text { role: Role::Assistant, text: text.to_owned() };
        self.0.push(SessionRecord::Block(ItemRecord { attempt, index: 0, item }));
        let (kept, error) = (u32::from(error.is_none()), error.map(str::to_owned));
        let (stop, goes_on, too_long) = (None, false, None);
        self.0.push(SessionRecord::AttemptEnded(AttemptEnded {
            attempt,
            kept,
            stop,
            error,
            goes_on,
            too_long,
        }));
        let usage = Usage { input: Some(100), output: Some(7), cost: Some(0.25), ..Usage::of(attempt) };
        self.0.push(SessionRecord::Usage(usage));
    }

    fn step(&mut self, step: u64, model: &str) {
        let attempt = self.begin_step(step, model, "Hal");
        self.end_step(attempt, "Half a sentence and the rest.", None);
    }

    /// A call that asks before it runs.
    fn call(&mut self, name: &str) -> CallId {
        let (call, question) = (CallId::generate(), QuestionId::generate());
        let asked = Question::new(question, QuestionKind::Approval, "May it run?");
        self.0.push(SessionRecord::Question(asked));
        let (answer, by) = ("yes".to_owned(), Some(AnsweredBy::User));
        self.0.push(SessionRecord::Answered(Answered { id: question, answer, by }));
        self.0.push(SessionRecord::ToolStarted(ToolStarted {
            call,
            name: name.to_owned(),
            arguments: r#"{"path": "a.txt"}"#.to_owned(),
            effect: Effect::Read,
            write: None,
            writes: vec![],
            kept_in: None,
            remote_task: None,
            child: None,
            changes_nothing: false,
        }));
        call
    }

    fn end_call(&mut self, call: CallId, name: &str) {
        self.0.push(SessionRecord::ToolFinished(ToolFinished::new(call, name, "text")));
    }

    fn compaction(&mut self) {
        self.0.push(SessionRecord::CompactStart(CompactStart { reason: "idle".into(), focus: None }));
        let (epoch, by) = (2, CompactedBy::Rule);
        let done = CompactDone { epoch, by, before: 900, after: 90, from: 1, through: 2 };
        self.0.push(SessionRecord::CompactDone(done));
    }
}

/// Four turns and the beginning of a fifth: questions, calls, a failed attempt, a task that outlives its turn, compactions
/// within and between turns, a change of the model, inputs between turns and within one, of which some wait for a later turn.
fn recording() -> Recording {
    let mut recording = Recording::default();
    let task_id = TaskId::from(CallId::generate());
    recording.input("first");
    recording.turn(1);
    recording.step(1, "a/one");
    let call = recording.call("exec");
    let (command, target) = ("sleep 1".to_owned(), "local".to_owned());
    let description = "a long build".to_owned();
    recording.0.push(SessionRecord::TaskStarted(TaskStarted {
        task_id,
        command,
        description,
        target,
        started_at: None,
        session: None,
    }));
    recording.end_call(call, "exec");
    recording.input("joined");
    recording.step(2, "a/one");
    recording.end_turn(1);
    recording.compaction();
    recording.input("second");
    recording.input("and more");
    recording.turn(2);
    let attempt = recording.begin_step(1, "a/one", "lost");
    recording.end_step(attempt, "not kept", Some("the stream broke"));
    recording.input_with(JoinMode::After, "waits for the next turn");
    for step in 2..6 {
        let attempt = recording.begin_step(step, "a/one", "Hal");
        let cut = recording.input("taken back");
        recording.input("joins the next step");
        recording.order(OrderKind::Withdraw { input: cut });
        recording.end_step(attempt, "Half a sentence and the rest.", None);
        let call = recording.call("read_file");
        recording.end_call(call, "read_file");
    }
    recording.compaction();
    recording.step(6, "b/two");
    recording.end_turn(2);
    let (tail, output, message, exit_code) = (String::new(), None, None, Some(0));
    let (status, duration_ms, unasked) = (TaskStatus::Completed, 1, false);
    recording.0.push(SessionRecord::TaskEnded(TaskEnded {
        task_id,
        status,
        exit_code,
        duration_ms,
        output,
        tail,
        message,
        unasked,
        session: None,
    }));
    recording.turn(3);
    let (from, to, reason) = ("b/two".to_owned(), "a/one".to_owned(), "chosen".to_owned());
    recording.0.push(SessionRecord::ModelChanged(ModelChanged { from, to, reason, chosen: true }));
    recording.step(1, "a/one");
    let later = vec![recording.input("too long for this turn")];
    recording.0.push(SessionRecord::StepStarted(StepStarted { step: 2, later }));
    recording.end_turn(3);
    recording.order(OrderKind::Cancel);
    recording.input("not cancelled");
    recording.turn(4);
    recording.0.push(SessionRecord::StepStarted(StepStarted::new(1)));
    recording.end_turn(4);
    let (code, text) = ("disk".to_owned(), "The disk is nearly full.".to_owned());
    recording.0.push(SessionRecord::Warning(Warning { code, text, task: None }));
    recording.turn(5);
    recording.step(1, "a/one");
    let call = recording.call("read_file");
    recording.input_with(JoinMode::Interrupt, "waits for the next turn");
    recording.end_call(call, "read_file");
    recording.begin_step(2, "a/one", "An answer that goes on");
    recording
}

async fn write(journal: &SqliteJournal, session: SessionId, recording: Recording) -> Seq {
    let stream = StreamName::session(session);
    for record in recording.0 {
        journal.append(Append::to(&stream).record(record.encode())).await.unwrap();
    }
    journal.head(&stream).await.unwrap().seq
}

/// A block without its number, which counts the blocks of one fold.
fn unnumbered(block: Block) -> Block {
    Block { id: 0, ..block }
}

fn shown(span: BlockSpan) -> (Vec<(Seq, Block)>, Vec<Block>) {
    let ended = span.ended.into_iter().map(|ended| (ended.seq, unnumbered(ended.block)));
    (ended.collect(), span.open.into_iter().map(unnumbered).collect())
}

/// H8: wherever a client stands, also in the middle of a step, what it has and what it gets are the whole, without a gap and
/// without a double. A fold that may look back only a few records has to look up the rest, with the same result.
#[tokio::test]
async fn what_ended_after_any_record_is_the_rest_of_the_whole() {
    let home = TestHome::in_memory();
    let (journal, session) = (home.journal().await, SessionId::generate());
    let head = write(&journal, session, recording()).await;
    let stream = StreamName::session(session);
    let mut transcript = StoredTranscript::new();
    let mut whole: Vec<(Seq, Block)> = Vec::new();
    let mut open_at: Vec<Vec<Block>> = vec![vec![]];
    for record in longhaul_journal::records(&*journal, &stream, 1).collect().await.unwrap() {
        let ended = ended_blocks(transcript.apply(&record));
        whole.extend(ended.map(|block| (record.seq, unnumbered(block))));
        open_at.push(transcript.open_blocks().into_iter().map(unnumbered).collect());
    }
    assert!(whole.len() >= 40 && open_at.iter().any(|open| open.len() >= 2), "{}", whole.len());

    // Clients go forward, and one comes back after a while; some find what others have left to remember.
    let shared = FoldStarts::default();
    for (max_look_back, is_shared) in
        [(3, false), (5, true), (9, true), (MAX_LOOK_BACK, false), (MAX_LOOK_BACK, true)]
    {
        for after in (0..=head).chain((0..=head).rev().step_by(7)) {
            for end in [(after + 4).min(head), head] {
                let own = FoldStarts::default();
                let starts = if is_shared { &shared } else { &own };
                let reader = BlockReader { max_look_back, ..BlockReader::new(&*journal, session, starts) };
                let span = reader.blocks_after(after, end, usize::MAX).await.unwrap().unwrap();
                let (ended, open) = shown(span);
                let rest = whole.iter().filter(|(seq, _)| (after + 1..=end).contains(seq)).cloned();
                assert_eq!(ended, rest.collect::<Vec<_>>(), "after {after} to {end}, {max_look_back} back");
                assert_eq!(open, open_at[end as usize], "after {after} to {end}, {max_look_back} back");
            }
        }
    }
}

/// H8: the pages from the end to the beginning have each block once, and each begins where nothing goes on.
#[tokio::test]
async fn pages_of_any_size_have_each_block_once() {
    let home = TestHome::in_memory();
    let (journal, session) = (home.journal().await, SessionId::generate());
    let head = write(&journal, session, recording()).await;
    let starts = FoldStarts::default();
    let reader = BlockReader::new(&*journal, session, &starts);
    let (whole, _) = shown(reader.blocks_after(0, head, usize::MAX).await.unwrap().unwrap());

    for limit in 1..12 {
        let (mut end, mut blocks) = (head, Vec::new());
        while end > 0 {
            let first = reader.find_page_start(end, limit).await.unwrap();
            let (page, _) = shown(reader.blocks_after(first - 1, end, usize::MAX).await.unwrap().unwrap());
            blocks.splice(0..0, page);
            end = first - 1;
        }
        assert_eq!(blocks, whole, "{limit} blocks");
    }
}

/// A client that was away for long gets a page instead of everything.
#[tokio::test]
async fn more_blocks_than_the_limit_are_not_listed() {
    let home = TestHome::in_memory();
    let (journal, session) = (home.journal().await, SessionId::generate());
    let head = write(&journal, session, recording()).await;
    let starts = FoldStarts::default();
    let reader = BlockReader::new(&*journal, session, &starts);

    assert!(reader.blocks_after(1, head, 5).await.unwrap().is_none());
    assert!(reader.blocks_after(head, head, 5).await.unwrap().unwrap().ended.is_empty());
}

/// A place that was remembered for another session under the same id counts for nothing.
#[tokio::test]
async fn a_place_of_a_replaced_session_is_not_used() {
    let home = TestHome::in_memory();
    let (journal, session, starts) = (home.journal().await, SessionId::generate(), FoldStarts::default());
    let head = write(&journal, session, recording()).await;
    let reader = BlockReader::new(&*journal, session, &starts);
    reader.blocks_after(head - 5, head, usize::MAX).await.unwrap();
    let known = starts.last_before(session, head).unwrap();
    assert_eq!(known.seq, head - 2, "the last step");

    let start = FoldStart { model: Some("another/model".into()), ..FoldStart::default() };
    starts.remember(session, KnownStart { hash: longhaul_protocol::Hash::ZERO, start, ..known });
    let (ended, _) = shown(reader.blocks_after(head - 2, head, usize::MAX).await.unwrap().unwrap());

    assert_eq!(ended, vec![], "no other model is named");
}
