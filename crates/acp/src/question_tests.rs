use longhaul_protocol::{Question, QuestionId, QuestionKind};
use serde_json::json;

use super::{Decision, Form, decision, options};
use longhaul_jsonrpc::RpcError;

fn question(kind: QuestionKind, choices: &[&str]) -> Question {
    let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
    Question { choices, ..Question::new(QuestionId::from_bits(1), kind, "May it?") }
}

/// P4.
#[test]
fn the_options_are_the_answers_that_exist() {
    let options = options(&question(QuestionKind::Approval, &["yes", "always", "project", "no"]));

    let shown: Vec<_> = options.iter().map(|option| (option.option_id.as_str(), option.kind)).collect();
    let all = [
        ("yes", "allow_once"),
        ("always", "allow_always"),
        ("project", "allow_always"),
        ("no", "reject_once"),
    ];
    assert_eq!(shown, all);
}

/// E8: "no" to a server's question is a refusal; to the agent's own question, it is a word like any other.
#[test]
fn no_to_a_servers_question_is_a_refusal() {
    let kinds =
        |kind| options(&question(kind, &["yes", "no"])).iter().map(|option| option.kind).collect::<Vec<_>>();

    assert_eq!(kinds(QuestionKind::Elicitation), ["allow_once", "reject_once"]);
    assert_eq!(kinds(QuestionKind::Ask), ["allow_once", "allow_once"]);
}

#[test]
fn a_question_of_an_earlier_version_has_yes_and_no() {
    let question = question(QuestionKind::Budget, &[]);

    assert_eq!(
        options(&question).iter().map(|option| option.kind).collect::<Vec<_>>(),
        ["allow_once", "reject_once"]
    );
    assert_eq!(Form::of(&question, true), Form::Options);
}

#[test]
fn only_a_chosen_option_is_an_answer() {
    let selected = json!({"outcome": {"outcome": "selected", "optionId": "always"}});
    let error = RpcError::new(-32_601, "no such method");

    assert_eq!(
        decision(QuestionKind::Approval, Form::Options, Ok(selected)),
        Decision::Answer("always".to_owned())
    );
    assert_eq!(
        decision(QuestionKind::Approval, Form::Options, Ok(json!({"outcome": {"outcome": "cancelled"}}))),
        Decision::Cancel
    );
    assert_eq!(
        decision(QuestionKind::Approval, Form::Options, Err(error)),
        Decision::Unable("no such method".to_owned())
    );
    assert!(matches!(
        decision(QuestionKind::Approval, Form::Options, Ok(json!({"outcome": "yes"}))),
        Decision::Unable(_)
    ));
    let form = json!({"action": "accept", "content": {"answer": "blue"}});
    assert_eq!(
        decision(QuestionKind::Approval, Form::TextField, Ok(form)),
        Decision::Answer("blue".to_owned())
    );
}

/// E8: who declines the form of a question has not said no to it.
#[test]
fn a_declined_form_is_no_answer_to_the_question() {
    let declined = |kind| decision(kind, Form::TextField, Ok(json!({"action": "decline"})));

    let answer = "The user declined to answer.";
    assert_eq!(declined(QuestionKind::Ask), Decision::Answer(answer.to_owned()));
    assert_eq!(declined(QuestionKind::Elicitation), Decision::Answer("decline".to_owned()));
    assert_eq!(declined(QuestionKind::Approval), Decision::Answer("no".to_owned()));
}
