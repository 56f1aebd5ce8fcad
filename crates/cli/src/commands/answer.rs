//! `longhaul answer`: answers an open question of a session, whichever process runs it.

use longhaul_agent::config::ModelSettings;
use longhaul_agent::redactor;
use longhaul_protocol::{Answer, QuestionId};
use serde_json::json;

use crate::args::{AnswerOptions, GlobalArgs};
use crate::output::{note, print, sanitize, truncate};
use crate::questions::{OpenQuestion, open_questions};
use crate::session_lookup::{open_live_session, session_name};
use crate::short_id::{IdMatch, find};
use crate::suggested_command::quoted;
use crate::{bad_usage, config, exit, suggested_command};

pub(crate) async fn run(globals: &GlobalArgs, options: &AnswerOptions) -> anyhow::Result<u8> {
    let config = config::load(globals)?;
    let redactor = redactor(&config)?;
    let session = open_live_session(globals, &session_name(globals, None).await?, redactor.clone()).await?;
    let key = session.key();
    let open = open_questions(&session).await?;
    let (question, words) = match &options.words[..] {
        [name, words] => (find_question(&open, name)?, words),
        [words] if words.parse::<QuestionId>().is_ok() => {
            let hint = format!(
                "the answer is missing; usage: longhaul answer -s {} {words} yes|no|TEXT",
                quoted(key)
            );
            return Err(bad_usage(hint));
        }
        [words] => (only_question(&open, key)?, words),
        _ => {
            return Err(bad_usage(
                "the answer is missing; answer yes, always, project, no, or the reason for a no",
            ));
        }
    };
    if words.trim().is_empty() {
        return Err(bad_usage("the answer is empty; answer yes, no, or the reason for a no"));
    }
    let asked = open.iter().find(|open| open.id == question);
    if let Some(problem) = asked.and_then(|asked| asked.unknown_choice(words)) {
        return Err(bad_usage(problem));
    }
    let words = asked.map_or_else(|| Answer::parse(words).word(), |asked| asked.read_answer(words));
    let words = redactor.redact(words).into_owned();
    session.answer(question, &words).await?;
    print(
        options.json,
        || json!({"session": key, "id": question, "answer": words}),
        || vec![format!("answered {question}: {}", truncate(&words, 80))],
    )?;
    if !session.is_running().await? {
        let mut flags = globals.flags();
        // The turn goes on with its own model, which `--model` may have named.
        let ModelSettings { name, fallback, .. } = &config.settings.model;
        let own = session.state().await?.model.filter(|model| model != name && !fallback.contains(model));
        if let (Some(model), false) = (own, flags.iter().any(|(flag, _)| *flag == "--model")) {
            flags.push(("--model", model));
        }
        let resume = suggested_command::with_flags(flags, &["resume", key]);
        note(format!("answer saved, but no process is running the session; to resume: {resume}"));
    }
    session.journal().close().await;
    Ok(exit::DONE)
}

/// The open question that `name` means. A whole id that is not open is passed on: the journal says why it isn't.
fn find_question(open: &[OpenQuestion], name: &str) -> anyhow::Result<QuestionId> {
    match (find(open.iter().map(|open| open.id), name), name.trim().to_ascii_uppercase().parse()) {
        (IdMatch::One(id), _) | (IdMatch::Nothing, Ok(id)) => Ok(id),
        (IdMatch::Several(_), _) => {
            Err(bad_usage(format!("{name:?} matches several questions{}", list_questions(open))))
        }
        (IdMatch::Nothing, Err(_)) => {
            Err(bad_usage(format!("no open question matches {name:?}{}", list_questions(open))))
        }
    }
}

fn only_question(open: &[OpenQuestion], key: &str) -> anyhow::Result<QuestionId> {
    match open {
        [one] => Ok(one.id),
        [] => Err(bad_usage(format!("{} has no open question", truncate(key, 80)))),
        _ => {
            let hint = "several questions are open; name one with `longhaul answer -s KEY ID yes|no|TEXT`";
            Err(bad_usage(format!("{hint}{}", list_questions(open))))
        }
    }
}

fn list_questions(open: &[OpenQuestion]) -> String {
    if open.is_empty() {
        return "; none are open".to_owned();
    }
    let lines = open.iter().map(|open| format!("\n  {}  {}", open.id, sanitize(open.text.trim_end())));
    format!(":{}", lines.collect::<String>())
}
