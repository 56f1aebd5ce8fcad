//! The examples of `docs/http.md` are run as they stand there.

use std::process::Command;

use crate::test_server::{ADMIN_TOKEN, TestServer};

/// H3.
#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_page_work() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/http.md");
    let page = std::fs::read_to_string(page).unwrap();
    let examples: Vec<&str> =
        page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 4);
    let server = TestServer::with_script(r#"["Hello.", "Again."]"#).await;

    for example in examples {
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", &leave_streams(example)]);
        shell.env("URL", server.url("")).env("TOKEN", ADMIN_TOKEN).env("OUT", server.home.work());
        let output = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{example}\n{said}");
    }

    let exported = server.home.file("demo.jsonl");
    assert!(exported.lines().count() > 5, "{exported}");
    server.shutdown().await;
}

/// `sed` ends before `curl` does, which `pipefail` would count as a failure of `curl`.
fn leave_streams(example: &str) -> String {
    let line = |line: &str| match line.contains("| sed") {
        true => format!("( set +o pipefail; {line} )\n"),
        false => format!("{line}\n"),
    };
    example.lines().map(line).collect()
}
