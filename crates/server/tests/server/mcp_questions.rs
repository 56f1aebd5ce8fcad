//! E3, P4: questions of a turn that another agent has begun.

use longhaul_server::Scope;
use longhaul_testkit::TestHome;
use serde_json::{Value, json};

use crate::mcp::Agent;
use crate::test_server::TestServer;

/// A turn that asks before its command.
const SCRIPT: &str = r#"[
    {"calls": [{"name": "exec", "arguments": {"command": "echo ran >> ran.txt"}}]},
    "It ran.", "Again."
]"#;

const BUILDER: &str = "builder";

/// A server with a token that may act, whose commands need approval.
async fn asking_server() -> TestServer {
    let server = TestServer::with_tokens(SCRIPT, &[(BUILDER, Scope::Act)]).await;
    let folder = json!({"key": "a", "work_dir": server.home.work()});
    assert_eq!(server.post("/api/sessions", &folder).await.0, 201);
    let (status, _) = crate::test_server::json_answer(
        server
            .request(reqwest::Method::PATCH, "/api/sessions/a")
            .header("content-type", "application/json")
            .body(json!({"mode": "ask"}).to_string()),
    )
    .await;
    assert_eq!(status, 200);
    server
}

fn runs(home: &TestHome) -> usize {
    std::fs::read_to_string(home.work().join("ran.txt")).map_or(0, |text| text.lines().count())
}

/// The only question of a task, with its id.
fn form(task: &Value) -> (String, Value) {
    let requests = task["inputRequests"].as_object().unwrap_or_else(|| panic!("{task}"));
    assert_eq!(requests.len(), 1, "{task}");
    let (id, request) = requests.iter().next().unwrap();
    (id.clone(), request.clone())
}

/// E3: a client with forms asks its user.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_comes_as_a_form_and_its_answer_lets_the_turn_go_on() {
    let server = asking_server().await;
    let agent = Agent::new(&server, BUILDER);
    let sent = agent.send("a", "Run it.", None).await;

    let asking = agent.poll(&sent, |task| task["status"] == "input_required").await;
    let (id, request) = form(&asking);
    let answer = |answer: &str| json!({&id: {"action": "accept", "content": {"answer": answer}}});
    let update = async |responses: Value| {
        agent.call("tasks/update", json!({"taskId": sent["taskId"], "inputResponses": responses})).await
    };
    let for_the_project = update(answer("project")).await;
    let incomplete = update(json!({&id: {"action": "accept"}})).await;
    let unknown = update(json!({"other": {"action": "accept"}})).await;
    let answered = update(answer("yes")).await;
    let again = update(answer("yes")).await;
    let ended = agent.poll(&sent, |task| task["status"] == "completed").await;

    let choices = request["params"]["requestedSchema"]["properties"]["answer"]["enum"].as_array().unwrap();
    assert!(choices.contains(&json!("yes")) && !choices.contains(&json!("project")), "{request}");
    assert!(for_the_project.1["error"]["message"].as_str().unwrap().contains("whole project"));
    assert!(incomplete.1["error"]["message"].as_str().unwrap().contains("content.answer is missing"));
    for acknowledged in [unknown, answered, again] {
        assert_eq!((acknowledged.0, &acknowledged.1["result"]["resultType"]), (200, &json!("complete")));
    }
    assert_eq!((&ended["result"]["content"][0]["text"], runs(&server.home)), (&json!("It ran."), 1));
    server.shutdown().await;
}

/// E3: a client without tasks gets the question, and answers it with a tool.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_tasks_gets_the_question_and_answers_it() {
    let server = asking_server().await;
    let agent = Agent::plain(&server, BUILDER);

    let asked = agent.send("a", "Run it.", None).await;
    let question = asked["structuredContent"]["questions"][0]["id"].clone();
    let read = agent.tool("session_read", json!({"session": "a"})).await;
    let answer = async |answer: &str| {
        let arguments = json!({"session": "a", "question": question, "answer": answer});
        agent.tool("session_answer", arguments).await
    };
    let for_the_project = answer("project").await;
    let answered = answer("yes").await;
    let again = answer("yes").await;
    let too_late = answer("no").await;

    assert_eq!(
        (&asked["structuredContent"]["outcome"], &asked["isError"]),
        (&json!("question"), &json!(false))
    );
    assert_eq!(read["structuredContent"]["questions"][0]["id"], question);
    assert_eq!(for_the_project["isError"], true, "{for_the_project}");
    assert_eq!((&answered["content"][0]["text"], runs(&server.home)), (&json!("It ran."), 1));
    assert_eq!(
        (&again["isError"], &too_late["isError"]),
        (&json!(false), &json!(true)),
        "{again} {too_late}"
    );
    server.shutdown().await;
}

/// E3: a client with forms and without tasks repeats its call with the answer. That sends nothing again.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_repeated_with_the_answer_to_its_question() {
    let server = asking_server().await;
    let agent =
        Agent { capabilities: json!({"elicitation": {"form": {}}}), ..Agent::plain(&server, BUILDER) };
    let asked = agent.send("a", "Run it.", None).await;
    let repeat = async |responses: Value| {
        let params = json!({
            "name": "session_send",
            "arguments": {"session": "a", "text": "Run it."},
            "requestState": asked["requestState"],
            "inputResponses": responses,
        });
        agent.call("tools/call", params).await.1["result"].clone()
    };

    let (id, _) = form(&asked);
    let unanswered = repeat(json!({})).await;
    let answered = repeat(json!({id: {"action": "accept", "content": {"answer": "yes"}}})).await;

    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(unanswered["inputRequests"], asked["inputRequests"], "{unanswered}");
    assert_eq!((&answered["content"][0]["text"], runs(&server.home)), (&json!("It ran."), 1), "{answered}");
    let (_, session) = server.get("/api/sessions/a").await;
    assert_eq!(session["turns"], 1);
    server.shutdown().await;
}

/// P8: what reaches beyond the session is the user's to allow, over each surface.
#[tokio::test(flavor = "multi_thread")]
async fn no_agent_gives_itself_a_schedule() {
    let add = json!({"action": "add", "name": "upkeep", "every": "60s", "prompt": "Go on."});
    let script = json!([{"calls": [{"name": "schedule", "arguments": add}]}, "Added."]).to_string();
    let server = TestServer::with_tokens(&script, &[(BUILDER, Scope::Act)]).await;
    let folder = json!({"key": "a", "work_dir": server.home.work()});
    assert_eq!(server.post("/api/sessions", &folder).await.0, 201);
    let agent = Agent::plain(&server, BUILDER);

    let asked = agent.send("a", "Go on by yourself.", None).await;
    let question = &asked["structuredContent"]["questions"][0]["id"];
    let over_mcp =
        agent.tool("session_answer", json!({"session": "a", "question": question, "answer": "yes"})).await;
    let answer = json!({"question": question, "answer": "yes"}).to_string();
    let acting = server.anonymous(reqwest::Method::POST, "/api/sessions/a/answers").bearer_auth(BUILDER);
    let acting = acting.header("content-type", "application/json").body(answer.clone());
    let (over_http, problem) = crate::test_server::json_answer(acting).await;
    let before = server.get("/api/schedules").await.1;
    let of_the_user = server.post("/api/sessions/a/answers", &serde_json::from_str(&answer).unwrap()).await;
    let after = server.poll("/api/schedules", |list| !list["items"].as_array().unwrap().is_empty()).await;

    assert_eq!(over_mcp["isError"], true, "{over_mcp}");
    assert!(over_mcp["content"][0]["text"].as_str().unwrap().contains("beyond the session"), "{over_mcp}");
    assert_eq!((over_http, &problem["code"]), (403, &json!("scope")), "{problem}");
    assert_eq!((before["items"].as_array().unwrap().len(), of_the_user.0), (0, 202));
    assert_eq!(after["items"][0]["name"], "upkeep");
    server.shutdown().await;
}

/// E3: a message that waits behind a question is accepted, and its sender learns what it waits for.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_behind_an_open_question_says_what_it_waits_for() {
    let server = asking_server().await;
    let agent = Agent::plain(&server, BUILDER);
    let asked = agent.send("a", "Run it.", None).await;

    let behind = agent.send("a", "And again.", Some("second")).await;
    let question = asked["structuredContent"]["questions"][0].clone();
    agent.tool("session_answer", json!({"session": "a", "question": question["id"], "answer": "no"})).await;
    let later = agent.send("a", "And again.", Some("second")).await;

    assert_eq!(behind["structuredContent"]["questions"], json!([question]));
    assert_eq!(later["structuredContent"]["outcome"], "completed", "{later}");
    let (_, session) = server.get("/api/sessions/a").await;
    assert_eq!(session["turns"], 2);
    server.shutdown().await;
}
