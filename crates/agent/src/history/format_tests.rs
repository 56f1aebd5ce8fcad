use longhaul_protocol::{CallId, TaskStatus};

use super::*;

#[test]
fn a_moment_is_shown_to_the_minute() {
    assert_eq!(minute(At(1_763_238_155_123)), "2025-11-15T20:22Z");
    assert_eq!(minute(At(0)), "1970-01-01T00:00Z");
    assert_eq!(minute(At(i64::MAX)), format!("{} ms since 1970", i64::MAX));
}

#[test]
fn a_result_of_which_only_head_and_tail_are_there_says_how_to_read_the_whole() {
    let call = CallId::from_bits(7);
    let whole = Some(longhaul_protocol::BlobRef::to(b"all of it", "text/plain"));
    let finished =
        ToolFinished { whole, is_error: true, ..ToolFinished::new(call, "ex\nec", "head … tail") };

    let shown = RecordView::of(SessionRecord::ToolFinished(finished));

    let who = format!(
        "result of ex ec, which failed (head and tail; read_file with the path \"output:{call}\" reads the whole)"
    );
    assert_eq!(shown, Some(RecordView { who, text: "head … tail".to_owned() }));
}

#[test]
fn the_end_of_a_task_is_shown_with_the_last_that_it_printed() {
    let ended = TaskEnded {
        task_id: CallId::from_bits(7).into(),
        status: TaskStatus::Failed,
        exit_code: Some(2),
        duration_ms: 5,
        output: None,
        tail: "no such file".to_owned(),
        message: None,
        unasked: false,
        session: None,
    };

    let shown = RecordView::of(SessionRecord::TaskEnded(ended));

    let who =
        format!("task {} ended: failed, exit code 2", longhaul_protocol::TaskId::from(CallId::from_bits(7)));
    assert_eq!(shown, Some(RecordView { who, text: "no such file".to_owned() }));
}

#[test]
fn what_only_keeps_the_books_shows_nothing() {
    let started = SessionRecord::StepStarted(longhaul_protocol::StepStarted::new(1));

    assert_eq!(RecordView::of(started), None);
}
