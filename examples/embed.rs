//! An agent inside a program of your own, in thirty lines: `cargo run -p longhaul-agent --example embed`.

use std::sync::Arc;

use longhaul_agent::model::ScriptedModel;
use longhaul_agent::{Runtime, Watched, keeper};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Commands run under keepers, and a keeper is this program again: this must come before anything else.
    keeper::main_if_asked();
    tokio::runtime::Runtime::new()?.block_on(talk())
}

async fn talk() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join("longhaul-embed");
    std::fs::create_dir_all(&folder)?;
    let script = r#"[
        {"text": "I look at the clock.", "calls": [{"name": "exec", "arguments": {"command": "date"}}]},
        "That was the time."
    ]"#;
    let model = Arc::new(ScriptedModel::from_json(script)?);
    let runtime = Runtime::builder(folder.join("home")).work_dir(&folder).model(model).open().await?;
    let session = runtime.session(&format!("app:{}", std::process::id())).await?;
    let mut events = session.watch();

    let ended = session.send("What time is it?").await?;

    // Everything that led to the outcome was shown before `send` returned.
    while let Some(Watched::Event(event)) = events.try_next() {
        println!("{}", serde_json::to_string(&event)?);
    }
    println!("{}", ended.text);
    runtime.shutdown().await?;
    Ok(())
}
