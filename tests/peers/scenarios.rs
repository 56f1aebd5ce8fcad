//! The same stories in each wire format, told to a server that is not ours. It keeps a journal of what it was asked.

use serde_json::{Value, json};

use crate::desk::{Desk, Ran};
use crate::servers::Server;

#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn every_story_ends_well_over_openai_chat() {
    Stage::new("openai-chat", "/v1").play();
}

#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn every_story_ends_well_over_openai_responses() {
    Stage::new("openai-responses", "/v1").play();
}

#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn every_story_ends_well_over_anthropic() {
    Stage::new("anthropic", "/v1").play();
}

#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn every_story_ends_well_over_gemini() {
    Stage::new("gemini", "/v1beta").play();
}

/// A server with its script, and somebody to ask it.
struct Stage {
    server: Server,
    desk: Desk,
}

/// One story: how the turn went, and what the server was asked meanwhile.
struct Told {
    ran: Ran,
    requests: Vec<Value>,
}

impl Stage {
    fn new(protocol: &str, path: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fixtures.json");
        std::fs::write(&file, fixtures().to_string()).unwrap();
        let server = Server::scripted(&file);
        let base_url = format!("{}{path}", server.url());
        let desk = Desk::new(&format!(
            "[model]\nname = 'scripted-server/m'\nprotocol = '{protocol}'\nbase_url = '{base_url}'\n\
             api_key_env = 'PEERS_KEY'\ncontext_window = 100000\n\
             [retry]\nbase_ms = 5\ncap_ms = 20\n"
        ));
        std::fs::write(desk.work().join("seen.txt"), "").unwrap();
        Self { server, desk }
    }

    fn play(&self) {
        self.a_text_takes_one_request();
        self.a_call_and_its_result_take_two();
        self.a_server_that_asks_for_time_gets_it();
        self.a_cut_answer_is_asked_for_again();
        self.a_server_that_fails_is_asked_again();
    }

    fn tell(&self, prompt: &str) -> Told {
        let before = self.journal().len();
        let ran = self.desk.run(prompt);
        assert_eq!(ran.code, Some(0), "{prompt}: {:?} {}", ran.events, ran.errors);
        Told { ran, requests: self.journal().split_off(before) }
    }

    fn journal(&self) -> Vec<Value> {
        let journal = self.server.json("/__aimock/journal?limit=1000");
        let entries = journal.as_array().or_else(|| journal["entries"].as_array());
        entries.unwrap_or_else(|| panic!("{journal}")).clone()
    }

    fn a_text_takes_one_request(&self) {
        let told = self.tell("hello");

        assert_eq!(told.answer(), "Hello to you.");
        assert_eq!(told.statuses(), [200]);
    }

    /// The result goes back, and nothing is asked in between.
    fn a_call_and_its_result_take_two(&self) {
        let told = self.tell("which files are there?");

        assert_eq!(told.answer(), "One file.");
        assert_eq!(told.statuses(), [200, 200]);
        let finished = told.ran.events("tool_finished");
        assert_eq!((finished.len(), &finished[0]["name"]), (1, &json!("list_files")));
        assert!(told.requests[1]["body"].to_string().contains("seen.txt"), "{}", told.requests[1]);
    }

    /// M5.
    fn a_server_that_asks_for_time_gets_it(&self) {
        let told = self.tell("limited");

        assert_eq!(told.answer(), "Now there is room.");
        assert_eq!(told.statuses(), [429, 200]);
        told.asked_the_same_again("throttled");
        assert_eq!(told.ran.events("retry_wait")[0]["delay_ms"], 1000);
        let at = |place: usize| told.requests[place]["timestamp"].as_u64().unwrap();
        assert!(at(1) - at(0) >= 1000, "{} {}", at(0), at(1));
    }

    /// M8, M9: nothing of the half answer is left in the whole one.
    fn a_cut_answer_is_asked_for_again(&self) {
        let told = self.tell("cut");

        assert_eq!(told.answer(), "The whole of it.");
        assert_eq!(told.requests.len(), 2);
        told.asked_the_same_again("broken_stream");
        assert_eq!(told.ran.events("attempt_discarded").len(), 1);
    }

    /// M3.
    fn a_server_that_fails_is_asked_again(&self) {
        let told = self.tell("broken");

        assert_eq!(told.answer(), "Mended.");
        assert_eq!(told.statuses(), [500, 200]);
        told.asked_the_same_again("server_error");
    }
}

impl Told {
    fn answer(&self) -> &str {
        self.ran.end()["text"].as_str().unwrap()
    }

    fn statuses(&self) -> Vec<u64> {
        self.requests.iter().map(|request| request["response"]["status"].as_u64().unwrap()).collect()
    }

    /// One wait of this class, and the same body before and after it.
    fn asked_the_same_again(&self, class: &str) {
        let waits = self.ran.events("retry_wait");
        assert_eq!((waits.len(), &waits[0]["class"]), (1, &json!(class)), "{waits:?}");
        let [first, second] = &self.requests[..] else { panic!("{:?}", self.requests) };
        assert_eq!(first["body"], second["body"]);
        assert_eq!(first["headers"]["content-length"], second["headers"]["content-length"]);
    }
}

/// What the server says to whom; the first that fits.
fn fixtures() -> Value {
    let first = |words: &str| json!({"userMessage": words, "sequenceIndex": 0});
    let then =
        |words: &str, answer: &str| json!({"match": {"userMessage": words}, "response": {"content": answer}});
    let half = "This is an answer that is cut off somewhere in the middle of its words.";
    let call = json!({"toolCalls": [{"name": "list_files", "arguments": "{}"}]});
    json!({"fixtures": [
        {"match": {"userMessage": "files", "hasToolResult": false}, "response": call},
        {"match": {"userMessage": "files", "hasToolResult": true}, "response": {"content": "One file."}},
        {"match": first("limited"), "response": {"error": {"message": "slow down"}, "status": 429, "retryAfter": 1}},
        then("limited", "Now there is room."),
        {"match": first("cut"), "response": {"content": half}, "chunkSize": 8, "latency": 5, "truncateAfterChunks": 4},
        then("cut", "The whole of it."),
        {"match": first("broken"), "response": {"error": {"message": "it is broken"}, "status": 500}},
        then("broken", "Mended."),
        {"match": {}, "response": {"content": "Hello to you."}},
    ]})
}
