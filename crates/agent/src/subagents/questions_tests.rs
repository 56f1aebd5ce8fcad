use longhaul_protocol::{CallId, QuestionKind, ToolFinished};

use serde_json::json;

use super::*;

/// P8: no other agent may say yes at the parent to what it may not allow at the subagent itself.
#[test]
fn what_is_for_the_user_stays_for_the_user_at_the_parent() {
    let asked = Question::new(QuestionId::generate(), QuestionKind::Approval, "Run it outside?");
    let refused: ToolFinished = serde_json::from_value(
        json!({"call": CallId::generate(), "name": "exec", "content": "Permission denied", "is_error": true}),
    )
    .unwrap();
    let refused = Some(Box::new(refused));
    let child = SessionId::generate();

    let plain = shown_question(&asked, child, "reader");
    let outside = shown_question(&Question { refused, ..asked.clone() }, child, "reader");
    let beyond = shown_question(&Question { beyond_session: true, ..asked }, child, "reader");

    assert_eq!([plain, outside, beyond].map(|shown| shown.is_for_user()), [false, true, true]);
}
