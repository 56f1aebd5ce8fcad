use PermissionMode::{Ask, Auto, AutoEdit, Plan};
use longhaul_protocol::{ApprovalGrant, QuestionId};

use super::*;

fn changed(from: PermissionMode, to: PermissionMode) -> ModeChanged {
    ModeChanged { from, to }
}

/// P4
#[test]
fn a_plan_returns_to_the_mode_before_it() {
    let mut state = State::default();
    assert_eq!(mode_after_plan(&state), Auto, "where the session began in plan mode");

    fold_mode(&mut state, changed(Ask, Plan));
    assert_eq!((state.permission.mode, mode_after_plan(&state)), (Some(Plan), Ask));

    fold_mode(&mut state, changed(Plan, AutoEdit));
    fold_mode(&mut state, changed(AutoEdit, Plan));
    assert_eq!(mode_after_plan(&state), AutoEdit);
}

/// P4: the model is told when plan mode begins and ends, and of nothing else.
#[test]
fn the_model_is_told_of_plan_mode_once() {
    let mut state = State::default();
    assert_eq!(mode_note(&state, Ask), None);
    assert_eq!(mode_note(&state, Plan).and_then(|note| note.mode), Some(Plan));

    state.permission.announced = Some(Plan);
    assert_eq!(mode_note(&state, Plan), None);
    assert!(mode_note(&state, Auto).is_some_and(|note| note.text.contains("over")));

    state.permission.announced = Some(Auto);
    assert_eq!(mode_note(&state, AutoEdit), None);
}

/// P4: only `always` and `project` last, and only as what the question showed.
#[test]
fn only_a_lasting_answer_leaves_a_grant() {
    let grant = ApprovalGrant {
        tool: "edit_file".to_owned(),
        command: None,
        line: None,
        work_dir: None,
        host: None,
        reasons: vec![],
    };
    for (answer, lasts) in
        [("yes", false), ("no", false), ("always", true), ("project", true), ("not always", false)]
    {
        let mut state = State::default();
        let question = Question {
            grant: Some(grant.clone()),
            ..Question::new(QuestionId::generate(), QuestionKind::Approval, "May it?")
        };
        let answered = Answered { id: question.id, answer: answer.to_owned(), by: None };

        fold_grant(&mut state, &question, &answered);
        fold_grant(&mut state, &question, &answered);

        assert_eq!(state.permission.grants.len(), usize::from(lasts), "{answer}");
    }
}
