use std::sync::Arc;

use longhaul_protocol::{Item, Role};

use super::*;

fn said(role: Role, text: &str) -> Arc<Item> {
    Arc::new(Item::Text { role, text: text.to_owned() })
}

async fn play(model: &ScriptedModel, items: Vec<Arc<Item>>) -> (Vec<AnswerPart>, Option<ModelFailure>) {
    play_for(model, items, Purpose::default()).await
}

async fn summarise(
    model: &ScriptedModel,
    summaries_before: usize,
) -> (Vec<AnswerPart>, Option<ModelFailure>) {
    play_for(model, vec![said(Role::User, "hi")], Purpose::Summary { summaries_before }).await
}

async fn play_for(
    model: &ScriptedModel,
    items: Vec<Arc<Item>>,
    purpose: Purpose,
) -> (Vec<AnswerPart>, Option<ModelFailure>) {
    let mut answer = match model
        .ask(
            Request { items, purpose, ..Request::default() },
            &CallPermit::unreserved(longhaul_protocol::Cause::Turn),
        )
        .await
    {
        Ok(answer) => answer,
        Err(error) => return (vec![], Some(error)),
    };
    let mut parts = Vec::new();
    loop {
        match answer.next().await {
            Ok(part @ AnswerPart::End(_)) => {
                parts.push(part);
                return (parts, None);
            }
            Ok(part) => parts.push(part),
            Err(error) => return (parts, Some(error)),
        }
    }
}

#[tokio::test]
async fn an_answer_comes_in_pieces_with_its_calls_and_its_usage() {
    let script = r#"[{"reasoning": "hm", "text": "I look.", "usage": {"input": 7},
        "calls": [{"id": "c1", "name": "read_file", "arguments": {"path": "a"}}, {"name": "odd", "arguments": "{no json"}]}]"#;
    let model = ScriptedModel::from_json(script).unwrap();

    let (parts, error) = play(&model, vec![]).await;

    let expected = [
        AnswerPart::ReasoningStart,
        AnswerPart::ReasoningDelta("hm".into()),
        AnswerPart::ReasoningStop { signature: None },
        AnswerPart::TextStart,
        AnswerPart::TextDelta("I ".into()),
        AnswerPart::TextDelta("look.".into()),
        AnswerPart::TextStop,
        AnswerPart::CallStart { wire_id: Some("c1".into()), name: "read_file".into() },
        AnswerPart::ArgumentsDelta(r#"{"path":"a"}"#.into()),
        AnswerPart::CallStop { signature: None },
        AnswerPart::CallStart { wire_id: None, name: "odd".into() },
        AnswerPart::ArgumentsDelta("{no json".into()),
        AnswerPart::CallStop { signature: None },
        AnswerPart::Usage(TokenCounts { input: Some(7), ..TokenCounts::default() }),
        AnswerPart::End(StopReason::new(StopKind::Finished, "tool_calls")),
    ];
    assert_eq!((parts, error), (expected.to_vec(), None));
}

#[tokio::test]
async fn a_new_process_goes_on_in_the_list_by_the_steps_that_are_finished() {
    let script = r#"{"answers": ["one", "two"]}"#;
    let after_one = vec![
        said(Role::User, "hi"),
        Arc::new(Item::Reasoning { text: "hm".into(), signature: None }),
        said(Role::Assistant, "one"),
        said(Role::User, "and?"),
    ];

    let (parts, _) = play(&ScriptedModel::from_json(script).unwrap(), after_one).await;

    assert_eq!(parts[1], AnswerPart::TextDelta("two".into()));
}

#[tokio::test]
async fn answers_that_a_compaction_took_out_of_the_context_still_count() {
    let model = ScriptedModel::from_json(r#"["one", "two", "three"]"#).unwrap();
    let after_two =
        vec![said(Role::User, "[summary]"), said(Role::Assistant, "two"), said(Role::User, "and?")];

    let (parts, _) = play_for(&model, after_two, Purpose::Step { answers_before: 1 }).await;

    assert_eq!(parts[1], AnswerPart::TextDelta("three".into()));
}

#[tokio::test]
async fn summaries_are_a_list_of_their_own() {
    let script = r#"["one", {"calls": [{"name": "write_summary", "arguments": {"goal": "a"}}]},
        {"text": "plain", "summary": true}, "two"]"#;
    let model = ScriptedModel::from_json(script).unwrap();
    let after_one = vec![said(Role::User, "hi"), said(Role::Assistant, "one"), said(Role::User, "and?")];

    let (second_step, _) = play(&model, after_one).await;
    let (called, _) = summarise(&model, 0).await;
    let (plain, _) = summarise(&model, 1).await;
    let (_, used_up) = summarise(&model, 2).await;

    assert_eq!(second_step[1], AnswerPart::TextDelta("two".into()));
    assert_eq!(called[1], AnswerPart::ArgumentsDelta(r#"{"goal":"a"}"#.into()));
    assert_eq!(plain[1], AnswerPart::TextDelta("plain".into()));
    let message = "scripted/script has only 2 summaries, but number 3 was requested; add one to the script and start again";
    assert_eq!(used_up, Some(ModelFailure::new(FailureClass::Script, message)));
}

#[tokio::test]
async fn a_summary_can_be_made_to_fail_and_to_break_off() {
    let script =
        r#"[{"summary": true, "error": "overloaded"}, {"summary": true, "text": "so", "cut": true}]"#;
    let model = ScriptedModel::from_json(script).unwrap();

    let (_, failed) = summarise(&model, 0).await;
    let (_, broken) = summarise(&model, 1).await;

    assert_eq!(failed, Some(ModelFailure::new(FailureClass::Script, "the model failed: overloaded")));
    assert_eq!(broken.map(|failure| failure.class), Some(FailureClass::Broken));
}

#[tokio::test]
async fn a_script_without_summaries_answers_one_in_its_own_words() {
    let model = ScriptedModel::from_json(r#"["one"]"#).unwrap();

    let (parts, error) = summarise(&model, 7).await;

    let words: String = parts
        .iter()
        .filter_map(|part| match part {
            AnswerPart::TextDelta(word) => Some(word.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!((words.as_str(), error), ("# Goal\nThe script has no summary for this.", None));
}

#[tokio::test]
async fn a_script_that_is_used_up_says_so() {
    let model = ScriptedModel::from_json(r#"["one"]"#).unwrap();

    let (_, error) = play(&model, vec![said(Role::User, "hi"), said(Role::Assistant, "one")]).await;

    let message = "scripted/script has only 1 answers, but number 2 was requested; add one to the script and start again";
    assert_eq!((error, model.calls()), (Some(ModelFailure::new(FailureClass::Script, message)), 1));
}

#[tokio::test]
async fn a_script_can_fail_and_break_off() {
    let script = r#"[{"text": "so", "error": "overloaded"}, {"text": "so", "cut": true}]"#;
    let model = ScriptedModel::from_json(script).unwrap();

    let (said_before, failed) = play(&model, vec![]).await;
    let (_, broken) = play(&model, vec![said(Role::Assistant, "x"), said(Role::User, "y")]).await;

    assert_eq!(said_before.len(), 3);
    assert_eq!(failed, Some(ModelFailure::new(FailureClass::Script, "the model failed: overloaded")));
    assert_eq!(broken.map(|failure| failure.class), Some(FailureClass::Broken));
}

#[test]
fn a_bad_script_is_told_with_the_answer_that_does_not_fit() {
    let reason = |text: &str| ScriptedModel::from_json(text).unwrap_err().to_string();

    let unknown = reason(r#"["fine", {"txt": "no"}]"#);
    assert!(
        unknown.starts_with("script is not a script: answer 2 is invalid: unknown field `txt`"),
        "{unknown}"
    );
    assert_eq!(reason("7"), "script is not a script: it must be a list of answers");
    assert!(reason("[").contains("EOF"), "{}", reason("["));
}
