//! `longhaul answer`: settles a question, whoever runs the session.

use std::sync::Arc;

use longhaul_agent::{Client, redactor};
use longhaul_journal::Error;
use longhaul_protocol::QuestionId;
use serde_json::json;

use crate::args::{AnswerOptions, GlobalArgs};
use crate::output::{json, line, note, safe, shortened};
use crate::questions::{OpenQuestion, yes_or_no};
use crate::session_lookup::{find_session, refuse_trashed};
use crate::short_id::{IdMatch, find};
use crate::suggested_command::quoted;
use crate::{BadUsage, config, exit, suggested_command};

pub(crate) async fn run(globals: &GlobalArgs, options: &AnswerOptions) -> anyhow::Result<u8> {
    let key = &options.session;
    let redactor = redactor(&config::load(globals)?)?;
    let Some(journal) = globals.open_journal().await? else {
        return Err(Error::NoSuchSession { key: key.clone() }.into());
    };
    let entry = find_session(&journal, key).await?;
    let key = &entry.key;
    refuse_trashed(&journal, key).await?;
    let session = Client::new(Arc::new(journal), redactor.clone()).session(key).await?;
    let open: Vec<OpenQuestion> = session.open_questions().await?.iter().map(OpenQuestion::from).collect();
    let (question, words) = match &options.words[..] {
        [name, words] => (named(&open, name)?, words),
        [words] if words.parse::<QuestionId>().is_ok() => {
            let hint = format!("what is the answer? longhaul answer -s {} {words} yes|no|TEXT", quoted(key));
            return Err(BadUsage(hint).into());
        }
        [words] => (only(&open, key)?, words),
        _ => return Err(BadUsage("say yes, no, or words".to_owned()).into()),
    };
    if words.trim().is_empty() {
        return Err(BadUsage("the answer is empty: say yes, no, or words".to_owned()).into());
    }
    let words = yes_or_no(words).map_or_else(|| redactor.redact(words).into_owned(), str::to_owned);
    session.answer(question, &words).await?;
    if options.json {
        json(&json!({"session": key, "id": question, "answer": words}))?;
    } else {
        line(format!("answered {question}: {}", shortened(&words, 80)))?;
    }
    if !session.is_running().await? {
        let resume = suggested_command::resume(globals, key);
        note(format!("the answer is saved, and nobody runs the session; to go on: {resume}"));
    }
    session.journal().close().await;
    Ok(exit::DONE)
}

/// The question that a name means. What is no open question is for the journal to explain.
fn named(open: &[OpenQuestion], name: &str) -> anyhow::Result<QuestionId> {
    match (find(open.iter().map(|open| open.id), name), name.trim().to_ascii_uppercase().parse()) {
        (IdMatch::One(id), _) | (IdMatch::Nothing, Ok(id)) => Ok(id),
        (IdMatch::Several(_), _) => {
            Err(BadUsage(format!("{name:?} fits several questions{}", listed(open))).into())
        }
        (IdMatch::Nothing, Err(_)) => {
            Err(BadUsage(format!("there is no open question {name:?}{}", listed(open))).into())
        }
    }
}

/// The only question that is open.
fn only(open: &[OpenQuestion], key: &str) -> anyhow::Result<QuestionId> {
    match open {
        [one] => Ok(one.id),
        [] => Err(BadUsage(format!("no question of {} is open", shortened(key, 80))).into()),
        _ => {
            let hint = "several questions are open; name one: longhaul answer -s KEY ID yes|no|TEXT";
            Err(BadUsage(format!("{hint}{}", listed(open))).into())
        }
    }
}

fn listed(open: &[OpenQuestion]) -> String {
    if open.is_empty() {
        return "; none is open".to_owned();
    }
    let lines = open.iter().map(|open| format!("\n  {}  {}", open.id, safe(open.text.trim_end())));
    format!(":{}", lines.collect::<String>())
}
