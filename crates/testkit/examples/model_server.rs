//! A model server on loopback that answers at once, in all four protocols: for trying things by hand, and for benches.
//!
//! `cargo run -p longhaul-testkit --example model_server -- PORT [TEXT]`

use longhaul_testkit::wire::{ModelServer, Reply, Script, ScriptedAnswer};
use serde_json::json;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(port) = arguments.next().and_then(|port| port.parse().ok()) else {
        eprintln!("usage: model_server PORT [TEXT]");
        std::process::exit(2);
    };
    let said = ScriptedAnswer::text(&arguments.next().unwrap_or_else(|| "Hello.".to_owned())).usage(10, 5);
    let script = Script::by(move |seen| match seen.protocol() {
        Some(protocol) => Reply::stream(said.bytes(protocol)),
        None if seen.path == "/v1/models" => {
            let model = json!({"id": "test-model", "object": "model", "owned_by": "nobody"});
            Reply::json(&json!({"object": "list", "data": [model]}))
        }
        None => Reply::error(404, r#"{"error":{"message":"there is no such path"}}"#),
    });
    let server = ModelServer::at(port, script.forgetful());
    println!("listening on {}", server.url());
    loop {
        std::thread::park();
    }
}
