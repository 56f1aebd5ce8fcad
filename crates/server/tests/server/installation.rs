//! Questions, models, status, config and checks over HTTP.

use longhaul_agent::config::{Approval, ApprovalRule};
use longhaul_agent::mcp::ServerSettings;
use longhaul_protocol::PermissionMode;
use serde_json::{Value, json};

use crate::test_server::TestServer;

/// H3, P4: the questions of all sessions are found, also after they were answered and after more happened.
#[tokio::test(flavor = "multi_thread")]
async fn open_questions_of_all_sessions_are_listed_until_they_are_answered() {
    let call = json!({"calls": [{"name": "exec", "arguments": {"command": "touch pushed"}}]});
    let script = json!([call, "Done."]).to_string();
    let server = TestServer::with_settings(&script, |config| {
        let (tool, command) = ("exec".to_owned(), Some("touch *".to_owned()));
        config.settings.approval.rule =
            vec![ApprovalRule { tool, command, host: None, action: Approval::Ask }];
    })
    .await;
    assert_eq!(server.get("/api/questions").await.1["items"], json!([]));
    let mut sending = Vec::new();
    for key in ["a", "b"] {
        let session = server.runtime.session(key).await.unwrap();
        let asking = session.clone();
        sending.push(tokio::spawn(async move { asking.send("go").await }));
    }

    let both = server.poll("/api/questions", |list| list["items"].as_array().unwrap().len() == 2).await;
    let items = both["items"].as_array().unwrap();
    assert!(items[0]["text"].as_str().unwrap().contains("touch pushed"), "{both}");
    let (_, first_page) = server.get("/api/questions?limit=1").await;
    assert_eq!(first_page["next"], items[0]["id"]);
    let after = format!("/api/questions?after={}", items[0]["id"].as_str().unwrap());
    assert_eq!(server.get(&after).await.1["items"], json!([items[1]]));
    for item in items {
        let session = server.runtime.session(item["session"].as_str().unwrap()).await.unwrap();
        session.answer(item["id"].as_str().unwrap().parse().unwrap(), "no").await.unwrap();
    }

    assert_eq!(server.get("/api/questions").await.1["items"], json!([]), "an answer in the inbox counts");
    for sent in sending {
        sent.await.unwrap().unwrap();
    }
    assert_eq!(server.get("/api/questions").await.1["items"], json!([]));
    server.shutdown().await;
}

/// H3, P4: the question about a plan outlives its turn, and is listed until it is answered.
#[tokio::test(flavor = "multi_thread")]
async fn the_question_about_a_plan_is_listed_after_its_turn() {
    let server = TestServer::with_script(r#"["I would write b.txt."]"#).await;
    let session = server.runtime.session("a").await.unwrap();
    session.set_permission_mode(PermissionMode::Plan).await.unwrap();
    session.send("plan").await.unwrap();

    let (_, listed) = server.get("/api/questions").await;
    let asked = &listed["items"][0];
    assert_eq!((&asked["session"], &asked["kind"]), (&json!("a"), &json!("plan")), "{listed}");
    let answer = json!({"question": asked["id"], "answer": "no"});
    assert_eq!(server.post("/api/sessions/a/answers", &answer).await.0, 202);

    assert_eq!(server.get("/api/questions").await.1["items"], json!([]));
    server.shutdown().await;
}

/// H3, S8, J8.
#[tokio::test(flavor = "multi_thread")]
async fn the_installation_is_described_without_secrets() {
    let server = TestServer::with_settings("[]", |config| {
        config.settings.secrets.patterns = vec!["hunter[0-9]".to_owned()];
        config.settings.agent.instructions = "the password is hunter2".to_owned();
    })
    .await;

    let (status, process) = server.get("/api/status").await;
    assert_eq!((status, &process["version"]), (200, &json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!((&process["host"]["hosting"], &process["idle_jobs"]["running"]), (&json!(true), &json!(true)));
    assert_eq!(process["limits"]["steps"], 200);
    let (_, config) = server.get("/api/config?limit=1000").await;
    assert!(!config.to_string().contains("hunter2"), "{config}");
    let keys: Vec<&Value> = config["items"].as_array().unwrap().iter().map(|item| &item["key"]).collect();
    assert!(keys.contains(&&json!("retry.max_retries")), "{keys:?}");
    let (status, checks) = server.get("/api/doctor").await;
    assert_eq!(status, 200);
    let checked: Vec<&Value> =
        checks["items"].as_array().unwrap().iter().map(|item| &item["check"]).collect();
    for check in ["config", "model", "home", "journal", "keepers", "sandbox", "disk"] {
        assert!(checked.contains(&&json!(check)), "{check} in {checked:?}");
    }
    let (_, models) = server.get("/api/models?limit=1").await;
    assert_eq!(
        (models["items"].as_array().unwrap().len(), &models["next"]),
        (1, &models["items"][0]["name"])
    );
    assert_eq!(server.get("/api/models/anthropic").await.1["protocol"], "anthropic");
    assert_eq!(server.get("/api/models/nobody").await.0, 404);
    server.shutdown().await;
}

/// E5, H3: skills are listed with the reason why one is not used, and without secrets.
#[tokio::test(flavor = "multi_thread")]
async fn skills_are_listed_with_what_keeps_them_from_being_used() {
    let server = TestServer::with_settings("[]", |config| {
        config.settings.secrets.patterns = vec!["hunter[0-9]".to_owned()];
        let write = |folder: std::path::PathBuf| {
            std::fs::create_dir_all(&folder).unwrap();
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            let text = format!("---\nname: {name}\ndescription: Use it with hunter2\n---\nDo it.\n");
            std::fs::write(folder.join("SKILL.md"), text).unwrap();
        };
        write(config.work_dir.join(".agents/skills/release"));
        write(config.work_dir.parent().unwrap().join("more/mine"));
        config.settings.skills.paths = vec![config.work_dir.parent().unwrap().join("more")];
    })
    .await;

    let (status, skills) = server.get("/api/skills").await;

    let facts = |index: usize| {
        let skill = &skills["items"][index];
        (skill["name"].clone(), skill["source"].clone(), skill["state"].clone())
    };
    assert_eq!(status, 200);
    assert_eq!(facts(0), (json!("mine"), json!("config"), json!("ready")));
    assert_eq!(facts(1), (json!("release"), json!("project"), json!("untrusted")));
    assert!(
        skills["items"][1]["reason"].as_str().unwrap().contains("longhaul skills trust release"),
        "{skills}"
    );
    assert!(!skills.to_string().contains("hunter2"), "{skills}");
    let (_, page) = server.get("/api/skills?limit=1").await;
    let next = page["next"].as_str().unwrap().replace(' ', "%20").replace('/', "%2F");
    let (_, rest) = server.get(&format!("/api/skills?limit=1&after={next}")).await;
    assert_eq!(rest["items"][0]["name"], "release");
    server.shutdown().await;
}

/// E1, H3: MCP servers are listed with their tools or with what is wrong, and without secrets.
#[tokio::test(flavor = "multi_thread")]
async fn mcp_servers_are_listed_with_their_state_and_without_secrets() {
    let server = TestServer::with_settings(r#"["Done."]"#, |config| {
        config.settings.secrets.patterns = vec!["hunter[0-9]".to_owned()];
        longhaul_testkit::write_mcp_server(&config.work_dir);
        let python = ServerSettings {
            command: "python3".to_owned(),
            args: vec!["server.py".to_owned()],
            ..ServerSettings::default()
        };
        let broken = ServerSettings {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), "echo the password is hunter2 >&2; exit 1".to_owned()],
            ..ServerSettings::default()
        };
        config.settings.mcp.servers = [("broken".to_owned(), broken), ("good".to_owned(), python)].into();
    })
    .await;
    let before = server.get("/api/mcp").await.1;

    server.runtime.session("a").await.unwrap().send("go").await.unwrap();
    let is_settled =
        |list: &Value| list["items"][0]["state"] == "failed" && list["items"][1]["state"] == "ready";
    let listed = server.poll("/api/mcp", is_settled).await;

    assert_eq!(before["items"][1]["state"], "stopped", "{before}");
    let [broken, good] = [&listed["items"][0], &listed["items"][1]];
    assert_eq!(broken["reason"], "it ended with exit code 1: the password is [redacted]");
    assert_eq!((&good["name"], &good["protocol"]), (&json!("good"), &json!("2025-11-25")));
    assert!(good["tools"].as_array().unwrap().contains(&json!("good__echo")), "{good}");
    server.shutdown().await;
}
