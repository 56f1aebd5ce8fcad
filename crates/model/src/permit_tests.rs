use longhaul_protocol::Cause;

use super::*;
use crate::ScriptedModel;

/// B1: a permit sees everything that a call is settled by.
#[tokio::test]
async fn a_permit_sees_how_far_a_call_has_come() {
    let model =
        ScriptedModel::from_json(r#"[{"text": "Hello.", "usage": {"input": 10, "output": 2}}]"#).unwrap();
    let permit = CallPermit::unreserved(Cause::Turn);
    let before = permit.progress();

    let mut answer = permit.send(&model, Request::default()).await.unwrap();
    let sent = permit.progress();
    while !matches!(answer.next().await.unwrap(), AnswerPart::End(_)) {}
    let after = permit.progress();

    assert_eq!((before.is_sent, sent.is_sent, sent.has_begun), (false, true, false));
    assert_eq!((after.is_complete, after.received_bytes), (true, 6));
    assert_eq!(after.tokens.unwrap().output, Some(2));
}

/// B1: a call that failed before its first byte is known as such.
#[tokio::test]
async fn a_call_that_fails_at_once_has_not_begun() {
    let model = ScriptedModel::from_json("[]").unwrap();
    let permit = CallPermit::unreserved(Cause::Turn);

    let refused = permit.send(&model, Request::default()).await;

    assert!(refused.is_err());
    let progress = permit.progress();
    assert_eq!((progress.is_sent, progress.has_failed, progress.has_begun), (true, true, false));
}

/// B1: a count that no call can have is not counted, whichever model reports it.
#[tokio::test]
async fn a_count_that_can_not_be_true_is_unknown() {
    let answer = r#"[{"text": "Hello.", "usage": {"input": 18446744073709551615, "output": 2}}]"#;
    let model = ScriptedModel::from_json(answer).unwrap();
    let permit = CallPermit::unreserved(Cause::Turn);

    let mut answer = permit.send(&model, Request::default()).await.unwrap();
    let mut reported = None;
    loop {
        match answer.next().await.unwrap() {
            AnswerPart::Usage(tokens) => reported = Some(tokens),
            AnswerPart::End(_) => break,
            _ => {}
        }
    }

    assert_eq!(reported, Some(TokenCounts { output: Some(2), ..TokenCounts::default() }));
    assert_eq!(permit.progress().tokens, reported);
}
