use longhaul_protocol::CallId;

use super::*;

fn id(number: u128) -> TaskId {
    CallId::from_bits(number).into()
}

fn task(number: u128) -> TaskStarted {
    TaskStarted {
        task_id: id(number),
        command: "make".to_owned(),
        description: format!("build {number}"),
        target: "local".to_owned(),
        started_at: None,
        session: None,
    }
}

fn end(number: u128, status: TaskStatus) -> TaskEnded {
    TaskEnded {
        task_id: id(number),
        status,
        exit_code: Some(0),
        duration_ms: 5,
        output: None,
        tail: String::new(),
        message: None,
        unasked: false,
        session: None,
    }
}

/// Tasks with these numbers, which run.
fn running(numbers: impl IntoIterator<Item = u128>) -> SessionTasks {
    let mut tasks = SessionTasks::default();
    numbers.into_iter().for_each(|number| tasks.record_start(task(number)));
    tasks
}

/// What the model is told at the next boundary, as the kinds of record with the ids that they name.
fn told(tasks: &mut SessionTasks) -> Vec<String> {
    let facts = tasks.announcements();
    for fact in &facts {
        match fact {
            SessionRecord::Notification(told) => tasks.record_notification(told.task_id),
            SessionRecord::Note(note) => tasks.record_note(note),
            _ => {}
        }
    }
    let word = |fact: &SessionRecord| match fact {
        SessionRecord::Notification(told) => format!("end of {}", number_of(told.task_id)),
        SessionRecord::Note(Note { waiting: Some(news), .. }) => format!("{} waits", number_of(news.task_id)),
        SessionRecord::Note(Note { running: Some(running), .. }) => {
            format!("running {:?}", running.iter().map(|id| number_of(*id)).collect::<Vec<_>>())
        }
        other => panic!("{other:?}"),
    };
    facts.iter().map(word).collect()
}

fn number_of(wanted: TaskId) -> u128 {
    (0..100).find(|number| id(*number) == wanted).unwrap()
}

/// K7
#[test]
fn a_note_comes_only_when_the_set_of_running_tasks_changed() {
    let mut tasks = running([1]);

    assert_eq!(told(&mut tasks), ["running [1]"]);
    assert_eq!(told(&mut tasks), [""; 0]);
    tasks.record_start(task(2));
    assert_eq!(told(&mut tasks), ["running [1, 2]"]);
    assert_eq!(told(&mut tasks), [""; 0]);
}

/// K5, K7
#[test]
fn an_end_is_told_once_and_the_last_one_needs_no_note_besides() {
    let mut tasks = running([1, 2]);
    told(&mut tasks);

    tasks.record_end(end(1, TaskStatus::Completed));
    assert_eq!(told(&mut tasks), ["end of 1", "running [2]"]);
    tasks.record_end(end(2, TaskStatus::Failed));
    assert_eq!(told(&mut tasks), ["end of 2"]);
    assert_eq!(told(&mut tasks), [""; 0]);
    tasks.record_start(task(3));
    assert_eq!(told(&mut tasks), ["running [3]"]);
}

/// K7, K8
#[test]
fn a_task_that_somebody_ended_is_not_told_and_a_note_says_that_none_is_left() {
    let mut tasks = running([1, 2]);
    told(&mut tasks);

    tasks.record_end(end(1, TaskStatus::Killed));
    tasks.record_end(end(2, TaskStatus::Completed));

    assert_eq!(told(&mut tasks), ["end of 2", "running []"]);
    assert_eq!(told(&mut tasks), [""; 0]);
}

/// K7
#[test]
fn a_task_that_comes_and_goes_between_two_steps_leaves_no_note() {
    let mut tasks = running([1]);

    tasks.record_end(end(1, TaskStatus::Completed));

    assert_eq!(told(&mut tasks), ["end of 1"]);
    assert_eq!(told(&mut tasks), [""; 0]);
}

/// K12
#[test]
fn a_task_that_waits_for_input_is_told_once_until_it_waits_elsewhere() {
    let mut tasks = running([1]);
    told(&mut tasks);
    let news = |printed| TaskNews { task_id: id(1), printed, ended: false };

    tasks.record_stall(news(10), "it asks".to_owned());
    assert_eq!(told(&mut tasks), ["1 waits"]);
    assert_eq!(told(&mut tasks), [""; 0]);
    tasks.record_stall(news(20), "it asks again".to_owned());
    assert_eq!(told(&mut tasks), ["1 waits"]);
    assert!(tasks.known_tasks(|_| Some(20)).all(|task| task.is_waiting));
    assert!(tasks.known_tasks(|_| Some(21)).all(|task| !task.is_waiting), "new output clears it");
}

/// K6
#[test]
fn which_ends_wake_is_a_matter_of_policy() {
    use TaskStatus::{Completed, Failed, Killed, Lost, TimedOut};
    for (status, always, on_failure) in [
        (Completed, true, false),
        (Failed, true, true),
        (TimedOut, true, true),
        (Lost, true, true),
        (Killed, false, false),
    ] {
        let mut tasks = running([1]);
        assert!(!tasks.should_wake(Wake::Always), "nothing has ended");

        tasks.record_end(end(1, status));

        assert_eq!(tasks.should_wake(Wake::Always), always, "{status:?}");
        assert_eq!(tasks.should_wake(Wake::OnFailure), on_failure, "{status:?}");
        assert!(!tasks.should_wake(Wake::Never), "{status:?}");
        told(&mut tasks);
        assert!(!tasks.should_wake(Wake::Always), "{status:?} was told");
    }
}

/// A record that was erased must not make the same thing be told again.
#[test]
fn a_second_end_of_a_task_changes_nothing() {
    let mut tasks = running([1]);
    tasks.record_end(end(1, TaskStatus::Failed));
    told(&mut tasks);

    tasks.record_end(end(1, TaskStatus::Completed));

    assert_eq!(tasks.get(id(1)).unwrap().ended, Some(end(1, TaskStatus::Failed)));
    assert_eq!(told(&mut tasks), [""; 0]);
}

#[test]
fn what_an_epoch_carries_is_what_it_gives_back() {
    let mut tasks = running([1, 2, 3]);
    tasks.record_end(end(1, TaskStatus::Completed));
    told(&mut tasks);
    tasks.record_end(end(2, TaskStatus::Failed));

    let known = tasks.carry_knowledge();
    let mut carried = SessionTasks::restore(tasks.carry_running(), tasks.carry_ended(), known);

    // Which run is said where the epoch begins.
    assert_eq!(told(&mut carried), ["end of 2"]);
    assert_eq!(carried.all().len(), 3);
}

#[test]
fn of_those_that_are_over_and_told_only_the_newest_stay_listed() {
    let many = MAX_ENDED_TASKS as u128 + 10;
    let mut tasks = running(1..=many);
    (1..many).for_each(|number| tasks.record_end(end(number, TaskStatus::Completed)));
    assert_eq!(
        tasks.unannounced_ends().count(),
        MAX_ENDED_TASKS + 9,
        "none of them was told yet, so none goes"
    );
    (1..many).for_each(|number| tasks.record_notification(id(number)));

    tasks.record_end(end(many, TaskStatus::Killed));

    assert_eq!(tasks.all().len(), MAX_ENDED_TASKS);
    assert!(tasks.get(id(10)).is_none() && tasks.get(id(11)).is_some(), "the oldest go first");
}

/// K8: what nobody asked for is told, as the machine that goes down and takes a task with it.
#[test]
fn a_task_that_was_killed_and_nobody_asked_for_it_is_told() {
    let mut tasks = running([1]);
    told(&mut tasks);

    tasks.record_end(TaskEnded { unasked: true, ..end(1, TaskStatus::Killed) });

    assert!(tasks.should_wake(Wake::OnFailure));
    assert_eq!(told(&mut tasks), ["end of 1"]);
}
