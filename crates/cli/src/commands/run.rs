//! `longhaul run`: one turn; the answer on standard output, the outcome as exit code.

use std::path::{Path, PathBuf};

use longhaul_agent::tools::Attachment;
use longhaul_agent::{AttachedImage, Request, UserMessage};

use crate::args::{GlobalArgs, RunOptions};
use crate::bad_usage;
use crate::event_printer::Form;
use crate::folder_session::run_key;
use crate::input_text::read_prompt_and_pipe;
use crate::one_shot::{OneShot, Stay};
use crate::session_lookup::{NO_SESSION_HERE, last_session_of_folder};

pub(crate) async fn run(globals: &GlobalArgs, options: RunOptions) -> anyhow::Result<u8> {
    let RunOptions { go_on, json, wait, images, prompt } = options;
    let stay = if wait { Stay::ForTasks } else { Stay::ForTurn };
    let images = read_images(&images)?;
    let is_typed = prompt.as_deref().is_some_and(|prompt| prompt != "-");
    let message = UserMessage { text: read_prompt_and_pipe(prompt)?, images };
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
