use longhaul_protocol::{At, Event, EventKind};

use super::*;
use crate::fold::Transcript;

fn notices(kind: EventKind, verbosity: Verbosity) -> Option<String> {
    let event = Event { seq: None, at: At(0), session: "s".to_owned(), turn: Some(1), kind };
    Transcript::new().apply(&event).iter().find_map(|update| notice_text(update, verbosity))
}

fn notice(kind: EventKind) -> Option<String> {
    notices(kind, Verbosity::Normal)
}

/// M6
#[test]
fn a_wait_is_told_with_its_class_its_number_and_its_reason() {
    let waiting = |of, delay_ms| EventKind::RetryWait {
        class: "throttled".to_owned(),
        attempt: 1,
        of,
        delay_ms,
        reason: "too many requests".to_owned(),
    };

    assert_eq!(
        notice(waiting(4, 2_700)).as_deref(),
        Some("throttled: waiting 3 s, retry 1 of 4: too many requests")
    );
    assert_eq!(
        notice(waiting(0, 125_000)).as_deref(),
        Some("throttled: waiting 2 min 5 s, retry 1: too many requests")
    );
}

/// A model chooses the names of the tools that it calls.
#[test]
fn the_name_of_a_tool_can_not_drive_a_terminal() {
    let (call_id, content) = (longhaul_protocol::CallId::from_bits(1), "no\r\u{1b}[2J".to_owned());
    let name = "t\u{1b}]0;mine\u{7}\u{202e}".repeat(40);

    let told = notice(EventKind::ToolFinished {
        call_id,
        name,
        is_error: true,
        content,
        diff: None,
        lines: None,
        report: Box::default(),
    })
    .unwrap();

    assert!(!told.chars().any(|character| character.is_control() || character == '\u{202e}'), "{told:?}");
    assert!(told.chars().count() < 300, "{told}");
}

/// K2, K3: a command that goes on as a task has not failed.
#[test]
fn only_a_command_that_did_not_end_well_is_told_of() {
    let told = |status: &str| command_failure_text(&format!("status: {status}\nexit_code: 3\n\nno\n"));

    assert_eq!(["completed", "background_started", "auto_backgrounded"].map(told), [None, None, None]);
    assert_eq!(told("failed").as_deref(), Some("exec failed, exit code 3"));
}

/// K15
#[test]
fn the_end_of_a_task_is_told_by_the_part_of_its_id_that_is_enough() {
    let task_id = longhaul_protocol::CallId::from_bits(0x1234).into();
    let ended = |status, exit_code| notice(EventKind::TaskEnded { task_id, status, exit_code }).unwrap();

    assert_eq!(ended(TaskStatus::Completed, Some(0)), format!("· task {} completed", short_id(task_id)));
    assert!(ended(TaskStatus::Failed, Some(3)).ends_with(" failed, exit code 3"));
    assert!(ended(TaskStatus::Killed, Some(143)).ends_with(" was killed"));
}

/// C3
#[test]
fn a_compaction_is_told_with_its_reason_and_its_figures_and_not_with_its_summary() {
    let start = |reason: &str| notice(EventKind::CompactStart { reason: reason.to_owned() }).unwrap();
    let done = |by| notice(EventKind::CompactDone { epoch: 4, by, before: 81_204, after: 12_330 }).unwrap();
    let summary = EventKind::SystemMessage { content: vec![] };

    assert_eq!(start("overflow"), "compacting the context: too long for the model");
    let codes = ["before_turn", "within_turn", "idle", "overflow", "asked"];
    assert!(!codes.map(start).iter().any(|said| said.contains('_')), "words and no codes");
    assert_eq!(done(CompactedBy::Model), "compacted the context: 81,204 → 12,330 tokens, by a summary");
    assert!(done(CompactedBy::Rule).ends_with(", by dropping old turns"));
    assert_eq!(notices(summary, Verbosity::Verbose), None);
}

/// Y9, Y10: whoever is there learns that memory changed, and where to read on.
#[test]
fn a_change_of_memory_is_told_with_its_pages() {
    let changed = EventKind::MemoryChanged { pages: vec!["core".to_owned(), "build".to_owned()] };
    let extracted = EventKind::ExtractDone { through: 12 };

    assert_eq!(notice(changed).as_deref(), Some("memory: updated core, build (see `longhaul memory log`)"));
    assert_eq!(notice(extracted.clone()), None, "nobody waits for it");
    assert!(notices(extracted, Verbosity::Verbose).unwrap().contains("up to entry 12"));
}
