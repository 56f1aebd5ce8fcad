//! When a context is made smaller and when not: settings, failures, refusals, and what is too large for any window.

use longhaul_agent::{Config, Session};
use longhaul_protocol::{CompactedBy, EventKind, Outcome, SessionRecord};
use longhaul_testkit::{TestHome, collect_until, ended_turn};
use serde_json::{Value, json};

use crate::compaction::{compactions, config, open, summary, text, texts};
use crate::sound_records;
use crate::staged::Staged;
use crate::wire::facts;

/// Sends these, one after the other: how the compactions before and within each turn went.
async fn send_all(session: &Session, inputs: &[String]) -> Vec<Vec<String>> {
    let mut watcher = session.watch();
    let mut told = Vec::new();
    for input in inputs {
        session.send(input.clone()).await.unwrap();
        told.push(compactions(&collect_until(&mut watcher, ended_turn).await));
    }
    told
}

/// A large window, in which only this many tokens make a context large before a turn.
fn large_at(place: &TestHome, tokens: u64) -> Config {
    let mut config = config(place, 100_000);
    config.settings.context.compact_at_tokens = Some(tokens);
    config
}

/// What system prompt and tools take.
pub(crate) async fn fixed() -> usize {
    let place = TestHome::in_memory();
    let model = Staged::new(&json!(["One."]), vec![]).shared();
    let runtime = open(config(&place, 8_000), model.clone()).await;
    runtime.session("a").await.unwrap().send("first").await.unwrap();
    let first = model.requests().pop().unwrap();
    usize::try_from(longhaul_context::estimate(&first.system, &first.tools, &[])).unwrap()
}

fn failed() -> Value {
    json!({"error": "no"})
}

/// C5: three failures in a row open the breaker; it is tried again after five hundredths of what is usable have come.
#[tokio::test(flavor = "multi_thread")]
async fn after_three_failures_it_is_not_tried_again_before_more_has_come() {
    let place = TestHome::in_memory();
    let mut answers: Vec<String> = (0..8).map(|number| format!("Answer {number}.")).collect();
    answers[5] = text(4_800);
    let model = Staged::new(&json!(answers), vec![failed(), failed(), failed(), summary("at last")]).shared();
    let runtime = open(large_at(&place, 100), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    // Usable are 100,000 less 8,192 for the answer; a twentieth of that is 4,590.
    let inputs = vec!["more".to_owned(); 7];

    let told = send_all(&session, &inputs).await;

    let reasons: Vec<&str> = told
        .iter()
        .map(|told| match &told[..] {
            [] => "nothing",
            [start, end] if start == "start before_turn" && end.starts_with("failed") => "failed",
            [_, done] if done == "done 2 Model" => "done",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(reasons, ["nothing", "failed", "failed", "failed", "nothing", "nothing", "done"]);
    assert_eq!(model.asked().iter().filter(|asked| **asked == "summary").count(), 4);
    sound_records(&place, &session).await;
}

/// C6: a summary that says nothing, or that can't be read, is asked for once more, and then is a failure.
#[tokio::test(flavor = "multi_thread")]
async fn a_summary_without_content_or_form_is_asked_for_once_more() {
    let call = |arguments: Value| json!({"calls": [{"name": "write_summary", "arguments": arguments}]});
    let bad = [call(json!({})), call(json!("{\"goal\": ")), call(json!("[1]")), json!("")];

    for bad in bad {
        for is_better in [false, true] {
            let place = TestHome::in_memory();
            let second = if is_better { summary("better") } else { bad.clone() };
            let model = Staged::new(&json!(["One.", "Two."]), vec![bad.clone(), second]).shared();
            let runtime = open(config(&place, 100_000), model.clone()).await;
            let session = runtime.session("a").await.unwrap();
            session.send("first").await.unwrap();

            let done = session.compact().await;

            assert_eq!(done.is_ok_and(|done| done.is_some()), is_better, "{bad}");
            assert_eq!(model.asked(), ["step", "summary", "summary"], "{bad}");
            let ended = session.send("second").await.unwrap();
            assert_eq!(ended.text, "Two.");
            assert_eq!(session.state().await.unwrap().compaction.failures, u32::from(!is_better));
            sound_records(&place, &session).await;
        }
    }
}

/// What a small model writes that can't do better.
const PROSE: &str = "The user said first and the agent said one, and after that nothing else was said.";

/// C6: a few words in place of a summary, twice, are none: a refusal, a greeting.
#[tokio::test(flavor = "multi_thread")]
async fn who_only_says_a_few_words_has_written_no_summary() {
    let place = TestHome::in_memory();
    let talk = json!("I'm sorry, I can't help with that.");
    let model = Staged::new(&json!(["One."]), vec![talk.clone(), talk]).shared();
    let runtime = open(config(&place, 100_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();

    let refused = session.compact().await.unwrap_err().to_string();

    assert!(refused.contains("a few words"), "{refused}");
    assert_eq!(session.state().await.unwrap().compaction.count, 0);
}

/// C6: talk is no summary, and neither is half of one: each is asked for once more. Who only ever writes prose is believed then.
#[tokio::test(flavor = "multi_thread")]
async fn prose_and_what_was_cut_off_are_asked_for_once_more_and_then_taken() {
    let talk = json!("Sure! Let me read the next file.");
    let cut = json!({"text": "# Goal\nreach the", "stop": "length"});
    let headed = json!("# Goal\nbetter");
    let stories = [
        (vec![talk.clone(), headed.clone()], "better", ""),
        (vec![talk.clone(), summary("better")], "better", ""),
        (vec![talk.clone(), json!(PROSE)], "", PROSE),
        (vec![cut.clone(), headed.clone()], "better", ""),
        (vec![cut.clone(), cut.clone()], "reach the", ""),
        (vec![headed], "better", ""),
    ];

    for (summaries, goal, notes) in stories {
        let place = TestHome::in_memory();
        let asked = summaries.len();
        let model = Staged::new(&json!(["One.", "Two."]), summaries.clone()).shared();
        let runtime = open(config(&place, 100_000), model.clone()).await;
        let session = runtime.session("a").await.unwrap();
        session.send("first").await.unwrap();

        session.compact().await.unwrap().unwrap();

        assert_eq!(model.asked(), [vec!["step"], vec!["summary"; asked]].concat(), "{summaries:?}");
        let written = session.state().await.unwrap().summary.unwrap();
        assert_eq!((written.goal.as_str(), written.notes.as_str()), (goal, notes), "{summaries:?}");
        let requests = model.requests();
        assert!(!requests[1].tools.is_empty(), "first it may call");
        assert!(requests[2..].iter().all(|request| request.tools.is_empty()), "then it is to write");
        assert_eq!(session.send("second").await.unwrap().text, "Two.");
        sound_records(&place, &session).await;
    }
}

/// C6: a summary that is longer than the window is shortened, and what it makes is smaller all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_huge_summary_is_shortened() {
    let place = TestHome::in_memory();
    let model = Staged::new(&json!([text(3_200), "Two."]), vec![summary(&text(20_000))]).shared();
    let runtime = open(config(&place, 8_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();

    let told = send_all(&session, &["first".to_owned(), text(400)]).await;

    assert_eq!(told[1], ["start before_turn", "done 2 Model"]);
    assert_eq!(model.asked(), ["step", "summary", "step"]);
    let records = sound_records(&place, &session).await;
    let done = facts(&records).into_iter().find_map(|fact| match fact {
        SessionRecord::CompactDone(done) => Some(done),
        _ => None,
    });
    let done = done.unwrap();
    assert!(done.after <= done.before / 10 * 7 && done.after < 6_000 / 10 * 6, "{done:?}");
}

/// C6: a second compaction without an answer between them only if it would not fit, and a third never.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_compaction_without_an_answer_is_not_made_for_nothing() {
    let place = TestHome::in_memory();
    let model = Staged::new(&json!([text(3_200), "Two.", "Three."]), vec![summary("once")]).shared();
    let mut config = config(&place, 8_000);
    // Whatever is there is too much before a turn, and within one.
    config.settings.context.compact_at_tokens = Some(1);
    config.settings.context.compact_now_at_tokens = Some(1);
    let runtime = open(config, model.clone()).await;
    let session = runtime.session("a").await.unwrap();

    let told = send_all(&session, &["first".to_owned(), text(400)]).await;

    assert_eq!(told, [vec![], vec!["start before_turn".to_owned(), "done 2 Model".to_owned()]]);
    assert_eq!(
        model.asked(),
        ["step", "summary", "step"],
        "the epoch has no finished step when it is looked again"
    );
    sound_records(&place, &session).await;
}

/// C2: 0 turns a check off and leaves the others; a number of tokens takes the place of a share.
#[tokio::test(flavor = "multi_thread")]
async fn each_check_can_be_set_in_tokens_and_turned_off_alone() {
    type Set = fn(&mut longhaul_agent::config::ContextSettings);
    let table: [(&str, Set, &[&str]); 6] = [
        ("as it is", |_| {}, &["start before_turn", "done 2 Model"]),
        ("before a turn off", |context| context.compact_at = 0.0, &[]),
        ("before a turn off in tokens", |context| context.compact_at_tokens = Some(0), &[]),
        ("much later in tokens", |context| context.compact_at_tokens = Some(5_900), &[]),
        (
            "before a turn off, within one sooner",
            |context| (context.compact_at, context.compact_now_at) = (0.0, 0.5),
            &["start before_turn", "done 2 Model"],
        ),
        (
            "both off, and the idle one is not asked",
            |context| {
                (context.compact_at, context.compact_now_at, context.compact_idle_at) = (0.0, 0.0, 0.01);
            },
            &[],
        ),
    ];

    // Of a window of 8,000, 6,000 are usable: this is a little over 0.85 of them, and less than 0.92.
    let large = text(5_200 - fixed().await);
    for (name, set, expected) in table {
        let place = TestHome::in_memory();
        std::fs::write(place.work().join("a.txt"), "a").unwrap();
        let read = json!({"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]});
        let model = Staged::new(&json!([large, read, "Two."]), vec![summary("s")]).shared();
        let mut config = config(&place, 8_000);
        set(&mut config.settings.context);
        let runtime = open(config, model.clone()).await;
        let session = runtime.session("a").await.unwrap();

        let told = send_all(&session, &["first".to_owned(), "second".to_owned()]).await;

        assert_eq!(told[1], expected, "{name}");
        sound_records(&place, &session).await;
    }
}

/// C2: with every check off, a request that would not fit is made to.
#[tokio::test(flavor = "multi_thread")]
async fn what_would_not_fit_is_made_smaller_although_the_checks_are_off() {
    let place = TestHome::in_memory();
    let model = Staged::new(&json!([text(3_500), "Two."]), vec![summary("s")]).shared();
    let mut config = config(&place, 8_000);
    let context = &mut config.settings.context;
    (context.compact_at, context.compact_now_at, context.compact_idle_at) = (0.0, 0.0, 0.0);
    let runtime = open(config, model.clone()).await;
    let session = runtime.session("a").await.unwrap();

    let told = send_all(&session, &["first".to_owned(), text(1_000)]).await;

    assert_eq!(told[1], ["start before_turn", "done 2 Model"]);
    sound_records(&place, &session).await;
}

/// C5, C7: where it would not fit, and no summary comes, the oldest goes by rule.
#[tokio::test(flavor = "multi_thread")]
async fn what_would_not_fit_goes_by_rule_when_no_summary_comes() {
    let place = TestHome::in_memory();
    let model = Staged::new(&json!([text(3_500), "Two."]), vec![failed()]).shared();
    let runtime = open(config(&place, 8_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();

    let told = send_all(&session, &["first".to_owned(), text(1_000)]).await;

    assert_eq!(told[1], ["start before_turn", "done 2 Rule"]);
    assert_eq!(model.asked(), ["step", "summary", "step"]);
    let last = texts(model.requests().last().unwrap());
    assert!(last[0].contains("dropped by rule") && last.last() == Some(&text(1_000)), "{last:?}");
    sound_records(&place, &session).await;
}

/// M12: a prompt that the model refuses is never sent again as it is: one compaction, and the same turn goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_prompt_leads_to_one_compaction_and_the_turn_goes_on() {
    let place = TestHome::in_memory();
    std::fs::write(place.work().join("a.txt"), "what is in the file").unwrap();
    let read = json!({"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]});
    let steps = json!([text(1_000), read, "Two."]);
    let model = Staged::new(&steps, vec![summary("s")]).refusing(1..2).shared();
    let runtime = open(config(&place, 100_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    session.send("first").await.unwrap();
    collect_until(&mut watcher, ended_turn).await;

    let ended = session.send("second").await.unwrap();

    let events = collect_until(&mut watcher, ended_turn).await;
    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Two."));
    assert_eq!(compactions(&events), ["start overflow", "done 2 Model"]);
    assert_eq!(model.asked(), ["step", "step", "summary", "step", "step"]);
    let last = texts(model.requests().last().unwrap());
    assert!(last.contains(&"second".to_owned()), "{last:?}");
    assert!(last.iter().any(|text| text.contains("what is in the file")), "the result is there: {last:?}");
    let waits = events.iter().filter(|event| matches!(event.kind, EventKind::RetryWait { .. })).count();
    assert_eq!(waits, 0);
    sound_records(&place, &session).await;
}

/// M12: a model that always refuses: the turn ends with what it says. What a provider's refusal is told as has the advice: see
/// `failures`.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_always_refuses_is_asked_once_more_and_then_the_turn_ends_with_its_words() {
    let place = TestHome::in_memory();
    let model = Staged::new(&json!([text(1_000)]), vec![summary("s")]).refusing(1..99).shared();
    let runtime = open(config(&place, 100_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    session.send("first").await.unwrap();
    collect_until(&mut watcher, ended_turn).await;

    let ended = session.send("second").await.unwrap();

    let events = collect_until(&mut watcher, ended_turn).await;
    assert_eq!((ended.outcome, ended.code.as_deref()), (Outcome::Failed, Some("context_too_long")));
    assert_eq!(ended.error.as_deref(), Some("the prompt is too long"));
    assert_eq!(compactions(&events), ["start overflow", "done 2 Model"]);
    assert_eq!(model.asked(), ["step", "step", "summary", "step"]);
    let records = sound_records(&place, &session).await;
    assert!(matches!(facts(&records).last(), Some(SessionRecord::TurnEnded(_))));
}

/// M12: a message that is larger than the window by itself is not cut and not sent: its turn ends with the arithmetic, and the next one
/// makes room for itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_larger_than_the_window_ends_its_turn_and_the_session_goes_on() {
    for (history, by) in [(0, CompactedBy::Model), (1, CompactedBy::Rule)] {
        let place = TestHome::in_memory();
        let steps = if history == 0 { json!(["Read."]) } else { json!([text(500), "Read."]) };
        let given = if by == CompactedBy::Model { summary("s") } else { failed() };
        let model = Staged::new(&steps, vec![given]).shared();
        let runtime = open(config(&place, 8_000), model.clone()).await;
        let session = runtime.session("a").await.unwrap();
        let mut inputs = vec!["first".to_owned(); history];
        inputs.push(text(20_000));
        inputs.push("and now?".to_owned());

        let told = send_all(&session, &inputs).await;

        assert_eq!(told[history], Vec::<String>::new());
        assert_eq!(told[history + 1], ["start before_turn".to_owned(), format!("done 2 {by:?}")]);
        let records = sound_records(&place, &session).await;
        let ends: Vec<_> = facts(&records)
            .into_iter()
            .filter_map(|fact| if let SessionRecord::TurnEnded(ended) = fact { Some(ended) } else { None })
            .collect();
        assert_eq!(ends[history].code.as_deref(), Some("context_too_long"));
        assert!(
            ends[history].error.as_ref().unwrap().contains("the message is too long for the model"),
            "{ends:?}"
        );
        assert_eq!(
            (ends[history + 1].outcome, ends[history + 1].text.as_str()),
            (Outcome::Completed, "Read.")
        );
        assert_eq!(model.asked()[history..], ["summary", "step"]);
    }
}

/// C7: where not even the least fits, the turn ends with the arithmetic, and no model is asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_is_too_small_for_anything_is_said_with_the_arithmetic() {
    let place = TestHome::in_memory();
    let model = Staged::new(&json!([]), vec![]).shared();

    // System prompt and tools alone take more than is usable of it.
    let refused = longhaul_agent::Runtime::with_model(config(&place, 1_500), model.clone()).await;

    let error = refused.err().unwrap().to_string();
    assert!(error.contains("model.context_window") && error.contains("1125 are available"), "{error}");
    assert_eq!(model.asked(), Vec::<&str>::new());
}
