use longhaul_protocol::{
    Answered, AnsweredBy, ApprovalGrant, Body, Cause, Effect, FileSeen, Gone, Hash, Input, InputId, Order,
    OrderId, Question, QuestionId, QuestionKind, Sender, SessionId, SessionRecord, TurnEnded,
};

use super::*;
use crate::session::fixtures::*;

fn texts(state: &State) -> Vec<String> {
    let text = |item: &Arc<Item>| match &**item {
        Item::Text { text, .. } => text.clone(),
        Item::ToolCall { name, .. } => format!("call {name}"),
        Item::ToolResult { content, .. } => format!("result {content}"),
        other => format!("{other:?}"),
    };
    state.items.iter().map(text).collect()
}

/// T3, T5: what joins in the middle of a step stands after its results, never between a call and its result.
#[test]
fn an_input_that_comes_between_a_call_and_its_result_is_seen_after_both() {
    let state = after(&[
        input(JoinMode::Join),
        turn(),
        step(1),
        attempt(),
        asks(1, "look"),
        asks(2, "look"),
        answered(2),
        finishes(2, "look", "b"),
        input(JoinMode::Join),
        finishes(1, "look", "a"),
        step(2),
    ]);

    assert_eq!(texts(&state), ["hello", "call look", "call look", "result a", "result b", "hello"]);
}

fn adds(text: &str) -> SessionRecord {
    let order = Order { id: OrderId::generate(), kind: OrderKind::AddContext { text: text.to_owned() } };
    SessionRecord::OrderTaken(OrderTaken { inbox_through: 1, order })
}

/// P8, T5: what a program printed for the user stands after the results of a step, is nobody's words, and begins no turn.
#[test]
fn added_context_comes_between_steps_and_begins_no_turn() {
    let before = [
        input(JoinMode::Join),
        turn(),
        step(1),
        attempt(),
        asks(1, "look"),
        answered(1),
        adds("printed"),
        finishes(1, "look", "a"),
    ];

    assert_eq!(texts(&after(&before)), ["hello", "call look", "result a"]);
    let state = after(&[&before[..], &[step(2)]].concat());
    assert_eq!(texts(&state), ["hello", "call look", "result a", "printed"]);
    assert_eq!(state.places[3].said, None);

    let state = after(&[adds("printed")]);
    assert_eq!(texts(&state), ["printed"]);
    assert!(!crate::session::Work::of_taken(&state, crate::config::Wake::Always).is_due());
}

/// An epoch that begins within a turn takes along what was added meanwhile.
#[test]
fn added_context_outlives_a_compaction_within_the_turn() {
    let state = after(&[input(JoinMode::Join), turn(), step(1), adds("printed")]);

    let carried = crate::session::carry_over::carry_over(&state, [], 0);

    assert_eq!(carried.added, [AddedContext { taken: state.head, text: "printed".to_owned() }]);
}

#[test]
fn blocks_count_only_through_the_end_of_their_attempt() {
    let open = [input(JoinMode::Join), turn(), step(1), attempt(), text()];

    assert_eq!(texts(&after(&open)), ["hello"]);
    assert_eq!(texts(&after(&[&open[..], &[broke(0)]].concat())), ["hello"]);
    assert_eq!(texts(&after(&[&open[..], &[answered(1)]].concat())), ["hello", "so"]);
}

/// T5: a turn that ended puts each result into the context once.
#[test]
fn results_are_in_the_context_once() {
    let ended = SessionRecord::TurnEnded(TurnEnded {
        turn: 1,
        outcome: Outcome::Cancelled,
        limit: None,
        text: String::new(),
        error: None,
        code: None,
        inbox_through: None,
    });
    let state = after(&[
        input(JoinMode::Join),
        turn(),
        step(1),
        attempt(),
        asks(1, "look"),
        answered(1),
        finishes(1, "look", "a"),
        ended,
    ]);

    assert_eq!(texts(&state)[..3], ["hello", "call look", "result a"]);
    assert!(texts(&state)[3].contains("The user interrupted here"), "and the model is told");
    assert_eq!(state.turn, None);
}

/// T13: a result that was erased is still a result.
#[test]
fn a_call_whose_result_was_erased_is_not_run_again() {
    let mut state = after(&[
        input(JoinMode::Join),
        turn(),
        step(1),
        attempt(),
        asks(1, "write"),
        answered(1),
        starts(1, "write", Effect::Unknown),
    ]);
    let gone = Gone { at: At(0), reason: "a secret".to_owned(), body_hash: None };
    let erased = Record { body: Body::Gone(gone), ..record(99, &finishes(1, "write", "x")) };

    state.apply(&erased).unwrap();

    assert_eq!(texts(&state).last().unwrap(), "result [erased: a secret]");
    assert!(!state.turn.unwrap().calls[0].is_open());
}

fn gone(seq: u64, fact: &SessionRecord) -> Record {
    let gone = Gone { at: At(0), reason: "a secret".to_owned(), body_hash: None };
    Record { body: Body::Gone(gone), ..record(seq, fact) }
}

fn asked() -> Vec<SessionRecord> {
    vec![input(JoinMode::Join), turn(), step(1), attempt(), text(), asks(1, "write")]
}

/// The state after these facts, of which the last is gone, and then these.
fn after_gone(before: &[SessionRecord], lost: &SessionRecord, then: &[SessionRecord]) -> State {
    let mut state = after(before);
    state.apply(&gone(90, lost)).unwrap();
    for (seq, fact) in (91..).zip(then) {
        state.apply(&record(seq, fact)).unwrap();
    }
    state
}

/// T13: whatever was erased, nothing that may have happened is done again.
#[test]
fn what_is_erased_is_not_done_again() {
    // The end of an answer: its call had finished.
    let finished = [starts(1, "write", Effect::Unknown), finishes(1, "write", "done")];
    let state = after_gone(&asked(), &answered(2), &finished);
    assert_eq!(texts(&state), ["hello", "so", "call write", "result done"]);

    // The start of a call: it may be running.
    let state =
        after_gone(&[&asked()[..], &[answered(2)]].concat(), &starts(1, "write", Effect::Unknown), &[]);
    assert!(state.turn.unwrap().calls[0].is_open());

    // The end of a turn.
    let ended = SessionRecord::TurnEnded(TurnEnded {
        turn: 1,
        outcome: Outcome::Failed,
        limit: None,
        text: String::new(),
        error: None,
        code: None,
        inbox_through: None,
    });
    let state = after_gone(&[&asked()[..4], &[broke(0)]].concat(), &ended, &[]);
    assert_eq!(state.turn, None);

    // A record of which nobody knows what it was.
    let mut lost = gone(90, &text());
    lost.kind = "lost".to_owned();
    let mut state = after(&asked());
    state.apply(&lost).unwrap();
    assert!(state.turn.unwrap().lost_record.is_some());
}

/// The clock of another machine may have said anything.
#[test]
fn a_question_that_was_open_for_all_of_time_is_no_time_of_the_turn() {
    let id = QuestionId::generate();
    let asked = SessionRecord::Question(Question::new(id, QuestionKind::Approval, "May it run?"));
    let answered = SessionRecord::Answered(Answered { id, answer: "yes".to_owned(), by: None });
    let mut state = after(&[input(JoinMode::Join), turn(), step(1)]);

    for (seq, (at, fact)) in (10..).zip([(i64::MIN, &asked), (i64::MAX, &answered)].repeat(2)) {
        state.apply(&Record { at: At(at), ..record(seq, fact) }).unwrap();
    }

    assert_eq!(state.turn.unwrap().question_wait_ms, 2 * (i64::MAX as u64));
}

/// T1: what took an input into the context is gone, and the turn had ended with nothing waiting: it is not begun again.
#[test]
fn an_input_whose_turn_has_ended_does_not_come_back() {
    let ended = SessionRecord::TurnEnded(TurnEnded {
        turn: 1,
        outcome: Outcome::Completed,
        limit: None,
        text: String::new(),
        error: None,
        code: None,
        inbox_through: Some(7),
    });
    let step_gone = after_gone(
        &[input(JoinMode::Join), turn()],
        &step(1),
        &[attempt(), text(), answered(1), ended.clone()],
    );
    let taken_gone = after_gone(&[], &input(JoinMode::Join), &[turn(), step(1), ended]);

    for state in [step_gone, taken_gone] {
        assert_eq!((state.pending_inputs.len(), state.inbox_through, state.turn), (0, 7, None));
    }
}

/// P2: what the model has seen of a file is the latest that a call has shown it.
#[test]
fn the_newest_sight_of_a_file_counts() {
    let seen = |content: &str| {
        let seen = FileSeen { path: "/a".to_owned(), hash: Hash::of(content.as_bytes()) };
        SessionRecord::ToolFinished(ToolFinished {
            seen: Some(seen),
            ..ToolFinished::new(call_id(1), "read_file", content)
        })
    };

    let state = after(&[seen("one"), seen("two")]);

    assert_eq!(state.known_files.get("/a"), Some(&Hash::of(b"two")));
}

/// K9, K15: a command with a secret in it is what people erase; the task still runs, and its
/// end is still to be told. The result that follows in the same append says which call it was.
#[test]
fn a_task_whose_start_was_erased_is_still_a_task() {
    use longhaul_protocol::TaskStarted;
    let call = CallId::from_bits(1);
    let task = SessionRecord::TaskStarted(TaskStarted {
        task_id: call.into(),
        command: "deploy --password secret".to_owned(),
        description: "deploy".to_owned(),
        target: "local".to_owned(),
        started_at: None,
        session: None,
    });
    let started = [&asked()[..], &[answered(2), starts(1, "exec", Effect::Command)]].concat();

    let state = after_gone(&started, &task, &[finishes(1, "exec", r#"{"status":"background_started"}"#)]);

    assert_eq!(state.tasks.running().count(), 1);
}

/// P4: the words of an answer may be what is erased; that it was given stays a fact.
#[test]
fn a_question_whose_answer_was_erased_is_not_open_again() {
    use longhaul_protocol::{Answered, Question, QuestionId};
    let (id, text) = (QuestionId::from_bits(7), "May it?".to_owned());
    let question = SessionRecord::Question(Question {
        call: Some(CallId::from_bits(1)),
        ..Question::new(id, QuestionKind::Approval, text)
    });
    let no = SessionRecord::Answered(Answered { id, answer: "no, the key is 123".to_owned(), by: None });
    let waits = [&asked()[..], &[answered(2), question]].concat();

    let state = after_gone(&waits, &no, &[finishes(1, "write", "not run")]);

    assert_eq!(state.questions, []);
}

fn sent_by(sender: Sender) -> SessionRecord {
    let input = Input::new(InputId::generate(), "hello", JoinMode::Join);
    SessionRecord::InputTaken(InputTaken::of(Input { sender, ..input }, 1))
}

/// P8: a turn has one cause. A person's input in it makes it the person's.
#[test]
fn the_cause_of_a_turn_is_its_sender() {
    let nightly = || {
        sent_by(Sender::Schedule {
            id: "nightly".to_owned(),
            slot: At(0),
            by_agent: false,
            max_cost_nano: None,
            heartbeat: false,
        })
    };
    let parent = || sent_by(Sender::Parent { session: SessionId::from_bits(1), call: CallId::from_bits(1) });
    let agent = || sent_by(Sender::Agent { name: "builder".to_owned() });
    let cause = |facts: &[SessionRecord]| after(facts).turn.map(|turn| turn.cause);

    assert_eq!(cause(&[nightly(), turn()]), Some(Cause::Schedule));
    assert_eq!(cause(&[parent(), turn()]), Some(Cause::Subagent));
    assert_eq!(cause(&[parent(), nightly(), turn()]), Some(Cause::Schedule));
    assert_eq!(cause(&[agent(), turn()]), Some(Cause::Message));
    assert_eq!(cause(&[agent(), nightly(), turn()]), Some(Cause::Schedule));
    assert_eq!(cause(&[nightly(), sent_by(Sender::Person), turn()]), Some(Cause::Turn));
    assert_eq!(cause(&[turn()]), Some(Cause::Task));
    let recorded = TurnStarted { turn: 1, cause: Some(Cause::Child) };
    assert_eq!(cause(&[sent_by(Sender::Person), SessionRecord::TurnStarted(recorded)]), Some(Cause::Child));
}

/// W3, P8: what a schedule allows a run to cost holds unless a person has a part in it. Another agent's message is no person's.
#[test]
fn only_a_person_lifts_the_cost_of_a_run() {
    let nightly = || {
        sent_by(Sender::Schedule {
            id: "nightly".to_owned(),
            slot: At(0),
            by_agent: false,
            max_cost_nano: Some(5),
            heartbeat: false,
        })
    };
    let agent = || sent_by(Sender::Agent { name: "builder".to_owned() });
    let max = |facts: &[SessionRecord]| after(facts).turn.unwrap().max_cost_nano;

    assert_eq!(max(&[nightly(), agent(), turn()]), Some(5));
    assert_eq!(max(&[agent(), nightly(), turn()]), Some(5));
    assert_eq!(max(&[nightly(), sent_by(Sender::Unknown), turn()]), Some(5));
    assert_eq!(max(&[nightly(), sent_by(Sender::Person), turn()]), None);
}

/// P8: another agent may say yes to one call; it allows nothing from then on, and its words are not a person's.
#[test]
fn an_agents_always_counts_once() {
    let grants_after = |by| {
        let question = QuestionId::generate();
        let (tool, command) = ("exec".to_owned(), Some("cargo test *".to_owned()));
        let grant = ApprovalGrant { tool, command, line: None, work_dir: None, host: None, reasons: vec![] };
        let asked = Question {
            call: Some(call_id(1)),
            grant: Some(grant),
            ..Question::new(question, QuestionKind::Approval, "May exec run?")
        };
        let answer = Answered { id: question, answer: "always".to_owned(), by: Some(by) };
        let state = after(&[
            input(JoinMode::Join),
            turn(),
            step(1),
            attempt(),
            asks(1, "look"),
            answered(1),
            SessionRecord::Question(asked),
            SessionRecord::Answered(answer),
        ]);
        (state.permission.grants.len(), state.call(call_id(1)).unwrap().approval.is_some())
    };

    assert_eq!(grants_after(AnsweredBy::User), (1, true));
    assert_eq!(grants_after(AnsweredBy::Agent), (0, true));
}

/// W2: `overlap = "interrupt"` cancels a run of a schedule, but never a turn that a person began or joined.
#[test]
fn a_schedule_interrupts_no_turn_that_a_person_has_a_part_in() {
    let schedule = || Sender::Schedule {
        id: "nightly".to_owned(),
        slot: At(0),
        by_agent: false,
        max_cost_nano: None,
        heartbeat: false,
    };
    let interrupting = |sender| {
        let input = Input::new(InputId::generate(), "hello", JoinMode::Interrupt);
        SessionRecord::InputTaken(InputTaken::of(Input { sender, ..input }, 1))
    };
    let step = |step| SessionRecord::StepStarted(StepStarted { step, later: vec![] });
    let is_cancelled = |facts: &[SessionRecord]| after(facts).turn.unwrap().cancelled;

    let of_schedule = [sent_by(schedule()), turn(), step(1)];
    let of_person = [sent_by(Sender::Person), turn(), step(1)];
    let joined = [sent_by(schedule()), turn(), step(1), sent_by(Sender::Person), step(2)];
    let agent = Sender::Agent { name: "builder".to_owned() };
    let joined_by_agent = [sent_by(schedule()), turn(), step(1), sent_by(agent), step(2)];

    assert!(is_cancelled(&[&of_schedule[..], &[interrupting(schedule())]].concat()));
    assert!(!is_cancelled(&[&of_person[..], &[interrupting(schedule())]].concat()));
    assert!(!is_cancelled(&[&joined[..], &[interrupting(schedule())]].concat()));
    assert!(is_cancelled(&[&joined_by_agent[..], &[interrupting(schedule())]].concat()));
    assert!(is_cancelled(&[&of_person[..], &[interrupting(Sender::Person)]].concat()));
}
