//! `longhaul run`: one turn; the answer on standard output, the outcome as exit code.

use std::path::{Path, PathBuf};

use longhaul_agent::skills::{SkillState, find_skills, skill_request};
use longhaul_agent::tools::Attachment;
use longhaul_agent::{AttachedImage, Config, Request, UserMessage};

use crate::args::{GlobalArgs, RunOptions};
use crate::bad_usage;
use crate::event_printer::Form;
use crate::folder_session::run_key;
use crate::input_text::read_prompt_and_pipe;
use crate::one_shot::{OneShot, Stay};
use crate::output::note;
use crate::session_lookup::{NO_SESSION_HERE, last_session_of_folder};

pub(crate) async fn run(globals: &GlobalArgs, options: RunOptions) -> anyhow::Result<u8> {
    let RunOptions { go_on, json, wait, images, prompt } = options;
    let stay = if wait { Stay::ForTasks } else { Stay::ForTurn };
    let images = read_images(&images)?;
    let is_typed = prompt.as_deref().is_some_and(|prompt| prompt != "-");
    let text = read_prompt_and_pipe(prompt)?;
    let text = if is_typed { start_skill(globals, text)? } else { text };
    let message = UserMessage { text, images };
    let (key, is_new) = match &globals.session {
        Some(key) => (key.clone(), false),
        None if go_on => {
            (last_session_of_folder(globals).await?.ok_or_else(|| bad_usage(NO_SESSION_HERE))?, false)
        }
        None => (run_key(), true),
    };
    OneShot { globals, key, is_new, is_typed, form: Form::of_answer(json), stay }
        .carry_out(Request::Send(message))
        .await
}

/// The message for a text that begins with `/NAME` of a skill; any other text as it is.
fn start_skill(globals: &GlobalArgs, text: String) -> anyhow::Result<String> {
    let Some(line) = text.strip_prefix('/') else { return Ok(text) };
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    // A path, or a prompt of an MCP server.
    if name.is_empty() || name.contains(['/', ':']) {
        return Ok(text);
    }
    let config = Config::load(globals.home_dir()?, &globals.sources()?)?;
    let library = find_skills(&config, &config.work_dir);
    let named: Vec<_> = library.skills.iter().filter(|skill| skill.name == name).collect();
    if named.iter().any(|skill| skill.state == SkillState::Ready) {
        return Ok(skill_request(name, arguments.trim()));
    }
    if let Some(skill) = named.first() {
        note(format!("the skill {name} can't be used: {}; the text is sent as it is", skill.reason));
    }
    Ok(text)
}

fn read_images(files: &[PathBuf]) -> anyhow::Result<Vec<AttachedImage>> {
    let most = AttachedImage::MAX_PER_MESSAGE;
    if files.len() > most {
        return Err(bad_usage(format!("a message may have {most} images")));
    }
    files.iter().map(|file| read_image(file)).collect()
}

fn read_image(file: &Path) -> anyhow::Result<AttachedImage> {
    match Attachment::read_image(file) {
        Ok(Attachment::Image { media_type, bytes }) => {
            Ok(AttachedImage { media_type: media_type.to_owned(), bytes: bytes.into() })
        }
        Ok(Attachment::Text(_)) => Err(bad_usage("--image takes an image")),
        Err(why) => Err(bad_usage(format!("{why}; nothing was sent"))),
    }
}
