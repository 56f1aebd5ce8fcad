use longhaul_protocol::{
    At, CallId, JoinMode, Question, QuestionId, QuestionKind, SessionRecord, TaskEnded, TaskId, TaskStarted,
    TaskStatus,
};

use super::Work;
use crate::config::Wake;
use crate::session::fixtures::*;
use crate::session::state::State;

fn task() -> SessionRecord {
    let task_id = TaskId::from(CallId::from_bits(50));
    let (command, description) = ("make".to_owned(), "the build".to_owned());
    let (target, started_at) = ("local".to_owned(), Some(At(5)));
    SessionRecord::TaskStarted(TaskStarted {
        task_id,
        command,
        description,
        target,
        started_at,
        session: None,
    })
}

fn task_ends(status: TaskStatus) -> SessionRecord {
    SessionRecord::TaskEnded(TaskEnded {
        task_id: TaskId::from(CallId::from_bits(50)),
        status,
        exit_code: Some(0),
        duration_ms: 3,
        output: None,
        tail: String::new(),
        message: None,
        unasked: false,
        session: None,
    })
}

fn asks() -> SessionRecord {
    let (id, text) = (QuestionId::from_bits(60), "so?".to_owned());
    SessionRecord::Question(Question::new(id, QuestionKind::Approval, text))
}

fn compacting() -> SessionRecord {
    let start = longhaul_protocol::CompactStart { reason: "asked".to_owned(), focus: None };
    SessionRecord::CompactStart(start)
}

/// S5, K6: one question, one answer. For every combination of what can be there, what is due, what is unfinished and what must not be put away.
#[test]
fn every_combination_of_what_is_there_has_one_answer() {
    let inbox = 9;
    for bits in 0_u8..64 {
        let has = |bit: u8| bits & (1 << bit) != 0;
        let (turn_open, inbox_ahead, ended) = (has(0), has(1), has(4));
        let mut facts = vec![];
        if turn_open {
            facts.extend([input(JoinMode::Join), turn(), step(1)]);
        }
        facts.extend(has(2).then(compacting));
        if has(3) {
            facts.push(task());
            facts.extend(ended.then(|| task_ends(TaskStatus::Completed)));
        }
        facts.extend(has(5).then(asks));
        let state = after(&facts);
        let through = state.inbox_through;
        let head = if inbox_ahead { through + inbox } else { through };
        let unannounced = has(3) && ended;

        for (wake, wakes) in [(Wake::Always, true), (Wake::OnFailure, false), (Wake::Never, false)] {
            let work = Work::of(&state, head, wake);

            let expected = Work {
                turn: turn_open,
                input: inbox_ahead,
                compaction: has(2),
                task_end: unannounced && wakes,
                unannounced,
                running_task: has(3) && !ended,
                question: has(5),
            };
            assert_eq!(work, expected, "{bits:#b} {wake:?}");
            let is_due = turn_open || inbox_ahead || has(2) || (unannounced && wakes);
            assert_eq!(work.is_due(), is_due, "{work:?}");
            assert_eq!(work.is_unfinished(), turn_open || inbox_ahead, "{work:?}");
            assert_eq!(work.is_in_use(), is_due || has(3) || has(5), "{work:?}");
        }
    }
}

/// What was taken and waits for its turn counts as what stands in the inbox does.
#[test]
fn what_was_taken_and_waits_is_unfinished() {
    let state = after(&[input(JoinMode::After)]);

    assert!(Work::of_taken(&state, Wake::Never).is_unfinished());
    assert_eq!(Work::of_taken(&State::default(), Wake::Always), Work::default());
}
