//! M12, M14, C1: a server whose context is smaller than the config says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use longhaul_agent::Config;
use longhaul_model::{Protocol, WindowSource};
use longhaul_protocol::{Outcome, SessionRecord};
use longhaul_testkit::TestHome;
use longhaul_testkit::wire::{ReceivedRequest, Reply, Script, ScriptedAnswer};
use serde_json::{Value, json};

use crate::sound_records;
use crate::wire::{config, facts, open};

const CHAT: Protocol = Protocol::OpenaiChat;
/// What the server really has, and what the longest answer is where that alone is limited.
const WINDOW: u64 = 10_000;
const LONGEST_ANSWER: u64 = 4_096;

fn asked_for(body: &Value) -> u64 {
    body["max_tokens"].as_u64().unwrap()
}

/// Tokens of a prompt, as the server counts them.
fn prompt(body: &Value) -> u64 {
    ["messages", "tools"].iter().map(|part| body[*part].to_string().len() as u64 / 4).sum()
}

/// A server with this window, which counts prompt and answer together and refuses in its own words; and how often it did.
fn server(refuses: impl Fn(u64, u64) -> Option<Reply> + Send + 'static) -> (Script, Arc<AtomicUsize>) {
    let refused = Arc::new(AtomicUsize::new(0));
    let count = refused.clone();
    let script = Script::by(move |seen: &ReceivedRequest| {
        if seen.method == "GET" {
            return Reply::error(404, "{}");
        }
        let body = seen.json();
        let (prompt, answer) = (prompt(&body), asked_for(&body));
        if let Some(reply) = refuses(prompt, answer) {
            count.fetch_add(1, Ordering::SeqCst);
            return reply;
        }
        Reply::frames(ScriptedAnswer::text("Hello.").usage(prompt, 5).frames(CHAT))
    });
    (script, refused)
}

fn words(status: u16, error: &Value) -> Reply {
    Reply::error(status, json!({ "error": error }).to_string())
}

type Words = fn(u64, u64) -> Reply;

/// How servers refuse what is longer than their context.
const WORDS: [(&str, Words); 5] = [
    ("vllm", |prompt, answer| {
        let message = format!(
            "This model's maximum context length is {WINDOW} tokens. However, you requested {} tokens ({prompt} in the messages, \
             {answer} in the completion). Please reduce the length of the messages or completion.",
            prompt + answer
        );
        words(400, &json!({"message": message, "type": "BadRequestError", "code": 400}))
    }),
    ("llama.cpp", |prompt, _| {
        let message = "the request exceeds the available context size, try increasing it";
        let kind = "exceed_context_size_error";
        words(400, &json!({"message": message, "type": kind, "n_prompt_tokens": prompt, "n_ctx": WINDOW}))
    }),
    ("tgi", |prompt, answer| {
        let message = format!(
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {WINDOW}. Given: {prompt} `inputs` tokens and \
             {answer} `max_new_tokens`"
        );
        Reply::error(422, json!({"error": message, "error_type": "validation"}).to_string())
    }),
    ("openrouter", |prompt, answer| {
        let message = format!(
            "This endpoint's maximum context length is {WINDOW} tokens. However, you requested about {} tokens ({prompt} of text \
             input, {answer} in the output). Please reduce the length of either one",
            prompt + answer
        );
        words(400, &json!({"message": message, "code": 400}))
    }),
    ("groq", |_, _| {
        let message = "Please reduce the length of the messages or completion.";
        words(400, &json!({"message": message, "code": "context_length_exceeded"}))
    }),
];

fn too_large(place: &TestHome) -> Config {
    config(place, CHAT)
}

/// M12, M14, C1: after the refusal both the window and the room for the answer are the server's, the request is made again, and the
/// next process knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_is_configured_too_large_is_corrected_by_the_first_refusal() {
    for (name, say) in WORDS {
        let place = TestHome::new();
        let (script, refused) =
            server(move |prompt, answer| (prompt + answer > WINDOW).then(|| say(prompt, answer)));
        let (runtime, wire) = open(too_large(&place), script.clone()).await;
        let session = runtime.session("a").await.unwrap();

        let ended = session.send("hello").await.unwrap();

        assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Hello."), "{name}: {ended:?}");
        assert_eq!(refused.load(Ordering::SeqCst), 1, "{name}");
        let window = runtime.model().await.1.window.unwrap();
        let stated = name != "groq";
        assert_eq!(window.source, WindowSource::Refusal, "{name}");
        assert!(if stated { window.tokens == WINDOW } else { window.tokens < WINDOW }, "{name}: {window:?}");
        let room = asked_for(&wire.requests().last().unwrap().json());
        assert!(room <= window.tokens / 4, "{name}: {room}");
        runtime.shutdown().await.unwrap();
        let warnings: Vec<String> = facts(&sound_records(&place, &session).await)
            .into_iter()
            .filter_map(|fact| match fact {
                SessionRecord::Warning(warning) if warning.code == "limits_corrected" => Some(warning.text),
                _ => None,
            })
            .collect();
        assert_eq!(warnings.len(), 1, "{name}");
        assert!(
            warnings[0].contains(&window.tokens.to_string()) && warnings[0].contains("100000"),
            "{warnings:?}"
        );

        let (runtime, _) = open(too_large(&place), script).await;
        let again = runtime.session("b").await.unwrap().send("hello").await.unwrap();
        assert_eq!(
            (again.outcome, refused.load(Ordering::SeqCst)),
            (Outcome::Completed, if stated { 1 } else { 2 }),
            "{name}: what the server stated is remembered, a guess is made again"
        );
        runtime.shutdown().await.unwrap();
    }
}

/// M14: who sets another window since has done what was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_is_set_anew_counts_more_than_an_old_refusal() {
    let place = TestHome::new();
    let (_, say) = WORDS[0];
    let (script, _) = server(move |prompt, answer| (prompt + answer > WINDOW).then(|| say(prompt, answer)));
    let (runtime, _) = open(too_large(&place), script.clone()).await;
    runtime.session("a").await.unwrap().send("hello").await.unwrap();
    runtime.shutdown().await.unwrap();

    let mut config = too_large(&place);
    config.settings.model.context_window = Some(50_000);
    let (runtime, _) = open(config, script).await;

    let window = runtime.model().await.1.window.unwrap();
    assert_eq!((window.tokens, window.source), (50_000, WindowSource::Config));
    runtime.shutdown().await.unwrap();
}

/// C1: a server that limits the answer alone is asked for no more than it gives.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_longer_than_the_server_gives_is_asked_for_shorter() {
    let place = TestHome::new();
    let (script, refused) = server(|_, answer| {
        let message = format!(
            "max_tokens is too large: {answer}. This model supports at most {LONGEST_ANSWER} completion tokens, whereas you \
             provided {answer}."
        );
        (answer > LONGEST_ANSWER).then(|| words(400, &json!({"message": message, "code": "invalid_value"})))
    });
    let (runtime, wire) = open(too_large(&place), script.clone()).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("hello").await.unwrap();

    assert_eq!((ended.outcome, refused.load(Ordering::SeqCst)), (Outcome::Completed, 1));
    assert_eq!(asked_for(&wire.requests().last().unwrap().json()), LONGEST_ANSWER);
    runtime.shutdown().await.unwrap();
    let (runtime, _) = open(too_large(&place), script).await;
    runtime.session("b").await.unwrap().send("hello").await.unwrap();
    assert_eq!(refused.load(Ordering::SeqCst), 1, "it is remembered");
    runtime.shutdown().await.unwrap();
}

/// M12: corrections end. A context that the server can't hold at all is said to be too long, with the arithmetic or the server's words.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_whatever_it_is_sent_ends_the_turn_after_a_few_requests() {
    for (message, most) in
        [("maximum context length is 100 tokens", 1), ("Please reduce the length of the messages", 3)]
    {
        let place = TestHome::new();
        let (script, refused) = server(move |_, _| Some(words(400, &json!({ "message": message }))));
        let (runtime, _) = open(too_large(&place), script).await;

        let ended = runtime.session("a").await.unwrap().send("hello").await.unwrap();

        assert_eq!((ended.outcome, ended.code.as_deref()), (Outcome::Failed, Some("context_too_long")));
        assert!(refused.load(Ordering::SeqCst) <= most, "{message}: {refused:?}");
        runtime.shutdown().await.unwrap();
    }
}
