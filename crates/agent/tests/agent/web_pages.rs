//! E7, P5: pages through the whole runtime, and what the permission modes do with them.

use longhaul_agent::{Config, Runtime, Session};
use longhaul_journal::Journal;
use longhaul_protocol::{Answer, Effect, Outcome, PermissionMode, Question, SessionRecord};
use longhaul_testkit::{RecordingModel, TestHome, WebReply, WebServer, web_page, web_redirect};
use serde_json::{Value, json};

use crate::wire::facts;
use crate::{eventually, results, script, sends, sound_records};

fn fetch(url: &str) -> Value {
    json!({"calls": [{"name": "web_fetch", "arguments": {"url": url}}]})
}

fn config(place: &TestHome, mode: PermissionMode) -> Config {
    let mut config = place.config();
    config.settings.web.allow = vec!["127.0.0.0/8".to_owned()];
    config.settings.approval.mode = mode;
    config
}

async fn open(config: Config, answers: &Value) -> Runtime {
    Runtime::with_model(config, RecordingModel::new(script(answers))).await.unwrap()
}

async fn question(session: &Session) -> Question {
    eventually("a question is open", || async { !session.state().await.unwrap().questions.is_empty() }).await;
    session.state().await.unwrap().questions.remove(0)
}

/// E7, C8: a long page is cut, the whole of it is kept, and the marker says how to read it.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_page_is_cut_and_the_whole_of_it_can_be_read() {
    let place = TestHome::new();
    let rows: String = (0..5_000).map(|row| format!("<p>row {row}</p>")).collect();
    let server = WebServer::of_page(&rows).await;
    let runtime =
        open(config(&place, PermissionMode::Auto), &json!([fetch(&server.url("/")), "Read."])).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let facts = facts(&records);
    let started = facts.iter().find_map(|fact| match fact {
        SessionRecord::ToolStarted(started) => Some(started.effect),
        _ => None,
    });
    let finished = facts.iter().find_map(|fact| match fact {
        SessionRecord::ToolFinished(finished) => Some(finished),
        _ => None,
    });
    let finished = finished.unwrap();
    assert_eq!(started, Some(Effect::Read));
    assert!(finished.content.contains("row 0\n") && finished.content.contains("row 4999"));
    assert!(!finished.content.contains("row 2500\n"));
    assert!(finished.content.contains(&format!("read_file with the path \"output:{}\"", finished.call)));
    let journal = place.journal().await;
    let whole = journal.blob(finished.whole.as_ref().unwrap().hash).await.unwrap();
    journal.close().await;
    assert!(String::from_utf8(whole.to_vec()).unwrap().contains("row 2500\n"));
}

/// P5: without `web.allow`, the runtime's own machine is out of reach, and the model is told so.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_on_this_machine_is_refused_unless_it_was_allowed() {
    let place = TestHome::new();
    let server = WebServer::of_page("secret").await;
    let answers = json!([fetch(&server.url("/")), "Refused."]);
    let runtime = open(place.config(), &answers).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    let (_, is_error, content) = results(&sound_records(&place, &session).await).remove(0);
    let host = server.url("").replace("http://", "");
    assert!(is_error && content.contains(&format!("web.allow = [{host:?}] to config.toml")), "{content}");
    assert_eq!(server.connections(), 0);
}

/// P4, P5: the address of a page can carry secrets out, so all modes but `auto` ask, once for each host.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_asked_about_and_always_is_about_its_host() {
    for mode in [PermissionMode::Ask, PermissionMode::AutoEdit, PermissionMode::Plan] {
        let place = TestHome::new();
        let server = WebServer::of_page("hello").await;
        let other =
            WebServer::start_on("127.0.0.2:0", |_| WebReply::Bytes(web_page("text/plain", b"other"))).await;
        let answers = json!([
            fetch(&server.url("/a?key=1")),
            fetch(&server.url("/b")),
            fetch(&other.url("/")),
            "Done."
        ]);
        let runtime = open(config(&place, mode), &answers).await;
        let session = runtime.session("a").await.unwrap();
        let sending = sends(&session, "go");

        let first = question(&session).await;
        let before = server.connections();
        session.answer(first.id, Answer::Always.word()).await.unwrap();
        eventually("the next host is asked about", || async {
            session.state().await.unwrap().questions.iter().any(|open| open.id != first.id)
        })
        .await;
        let second = question(&session).await;
        session.answer(second.id, "no").await.unwrap();

        assert_eq!(sending.await.unwrap().unwrap().outcome, Outcome::Completed);
        let shown = format!("May web_fetch fetch:\n│ {}\n", server.url("/a?key=1"));
        assert!(first.text.starts_with(&shown), "{}", first.text);
        assert!(first.text.contains("always allows: web_fetch from 127.0.0.1"), "{}", first.text);
        assert_eq!((before, server.requests().len(), other.connections()), (0, 2, 0));
        runtime.shutdown().await.unwrap();
        let results = results(&sound_records(&place, &session).await);
        assert_eq!(
            results.iter().map(|(_, is_error, _)| *is_error).collect::<Vec<_>>(),
            [false, false, true]
        );
    }
}

/// P4, P5: a yes to one host is no yes to another that it redirects to.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_a_host_that_would_be_asked_about_is_told_and_not_followed() {
    for (mode, is_followed) in [(PermissionMode::Auto, true), (PermissionMode::Ask, false)] {
        let place = TestHome::new();
        let other =
            WebServer::start_on("127.0.0.2:0", |_| WebReply::Bytes(web_page("text/plain", b"other"))).await;
        let target = other.url("/");
        let server = WebServer::start(move |_| WebReply::Bytes(web_redirect(&target))).await;
        let runtime = open(config(&place, mode), &json!([fetch(&server.url("/")), "Done."])).await;
        let session = runtime.session("a").await.unwrap();
        let sending = sends(&session, "go");

        if !is_followed {
            let asked = question(&session).await;
            session.answer(asked.id, "yes").await.unwrap();
        }
        sending.await.unwrap().unwrap();

        runtime.shutdown().await.unwrap();
        let (_, is_error, content) = results(&sound_records(&place, &session).await).remove(0);
        assert_eq!((is_error, other.connections()), (!is_followed, usize::from(is_followed)));
        assert!(
            is_followed || content.contains(&format!("redirects to {}; fetch that address", other.url("/"))),
            "{content}"
        );
    }
}

/// P7: a mistake in `[web]` is an error that names the key.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_setting_is_an_error_that_names_its_key() {
    for (key, set) in [
        (
            "web.allow",
            (|config: &mut Config| config.settings.web.allow = vec!["http://x".to_owned()])
                as fn(&mut Config),
        ),
        ("web.proxy", |config: &mut Config| config.settings.web.proxy = "socks5://x".to_owned()),
        ("web.search", |config: &mut Config| config.settings.web.search = "google".to_owned()),
    ] {
        let place = TestHome::new();
        let mut config = place.config();
        set(&mut config);

        let error = Runtime::with_model(config, RecordingModel::new(script(&json!([])))).await.err().unwrap();

        assert!(error.to_string().contains(key), "{error}");
    }
}
