//! What a line names and sends along: `@file`, and the path of an image as a terminal pastes it when a file is dropped on it. Only lines
//! that a person types are looked through.

use std::path::{Path, PathBuf};

use longhaul_agent::tools::{Attachment, Scope};
use longhaul_agent::{AttachedImage, UserMessage};
use longhaul_context::{marked_block, with_blocks};
use percent_encoding::percent_decode_str;

/// Files that one message may name.
const MAX_ATTACHMENTS: usize = 20;
/// In a longer text, which was pasted, the paths of images are only words.
const MAX_TYPED_BYTES: usize = 4_096;
const IMAGE_ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// A word of a line.
#[derive(Debug, PartialEq, Eq)]
enum NamedFile {
    /// `@src/main.rs` or `@"a name.txt"`.
    At(String),
    /// `/home/me/picture.png`, `'/a name.png'`, `/a\ name.png` or `file:///a%20name.png`.
    ImagePath(String),
}

/// Whether a line may name files.
pub(super) fn may_name_files(text: &str) -> bool {
    !named_files(text).is_empty()
}

/// The message of a line: its text with the text files that it names as marked blocks below it, and the images that it names. A word that
/// names no file is only a word. The error says why a file can't be sent along.
pub(super) fn message_of_line(text: String, scope: &Scope) -> Result<UserMessage, String> {
    let (mut blocks, mut images, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for named in named_files(&text) {
        let Some((path, attachment)) = read_named(&named, scope)? else { continue };
        if seen.contains(&path) {
            continue;
        }
        match attachment {
            Attachment::Text(content) => blocks.push(marked_block(&format!("file {path}"), &content)),
            Attachment::Image { media_type, bytes } => {
                images.push(AttachedImage { media_type: media_type.to_owned(), bytes: bytes.into() });
            }
        }
        seen.push(path);
        if seen.len() > MAX_ATTACHMENTS {
            return Err(format!("a message may name {MAX_ATTACHMENTS} files"));
        }
    }
    let text = if blocks.is_empty() { text } else { with_blocks(&text, &blocks) };
    Ok(UserMessage { text, images })
}

/// The file that a word names, and its content; `None` if it names none.
fn read_named(named: &NamedFile, scope: &Scope) -> Result<Option<(String, Attachment)>, String> {
    match named {
        NamedFile::At(path) => {
            // `@src/main.rs.` ends a sentence.
            let trimmed = path.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
            let path = [path.as_str(), trimmed].into_iter().find(|path| is_file(scope.work_dir(), path));
            let Some(path) = path else { return Ok(None) };
            Ok(Some((path.to_owned(), Attachment::read_in_scope(scope, path)?)))
        }
        NamedFile::ImagePath(path) => {
            if !is_file(scope.work_dir(), path) {
                return Ok(None);
            }
            let file = expand(scope.work_dir(), path);
            Ok(Some((path.clone(), Attachment::read_image(&file)?)))
        }
    }
}

fn is_file(work_dir: &Path, path: &str) -> bool {
    !path.is_empty() && expand(work_dir, path).is_file()
}

fn expand(work_dir: &Path, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => work_dir.join(path),
    }
}

/// The words of a line that could name a file.
fn named_files(text: &str) -> Vec<NamedFile> {
    let may_have_images = text.len() <= MAX_TYPED_BYTES;
    let mut named = Vec::new();
    for word in words(text) {
        if let Some(path) = word.strip_prefix('@') {
            named.push(NamedFile::At(unquote(path)));
        } else if may_have_images {
            let path = match word.strip_prefix("file://") {
                Some(address) => percent_decode_str(address).decode_utf8_lossy().into_owned(),
                None => unquote(word),
            };
            let is_whole = path.starts_with('/') || path.starts_with("~/");
            let lower = path.to_lowercase();
            if is_whole && IMAGE_ENDINGS.iter().any(|ending| lower.ends_with(ending)) {
                named.push(NamedFile::ImagePath(path));
            }
        }
    }
    named
}

/// Splits a line into words at white space that is neither quoted nor behind a backslash.
fn words(text: &str) -> Vec<&str> {
    let (mut words, mut start, mut quote, mut is_escaped) = (Vec::new(), None, None, false);
    for (place, letter) in text.char_indices() {
        let is_end = letter.is_whitespace() && !is_escaped && (quote.is_none() || letter == '\n');
        if is_end {
            words.extend(start.take().map(|start: usize| &text[start..place]));
            quote = None;
        } else {
            let is_first = start.is_none();
            let word_start = *start.get_or_insert(place);
            let opens = is_first || &text[word_start..place] == "@";
            match letter {
                '\'' | '"' if !is_escaped && opens => quote = Some(letter),
                letter if quote == Some(letter) => quote = None,
                _ => {}
            }
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    words.extend(start.map(|start| &text[start..]));
    words
}

/// A word without its quotes, or without its backslashes.
fn unquote(word: &str) -> String {
    for quote in ['\'', '"'] {
        if let Some(inside) = word.strip_prefix(quote) {
            return inside.split(quote).next().unwrap_or_default().to_owned();
        }
    }
    let mut letters = word.chars();
    let mut unquoted = String::new();
    while let Some(letter) = letters.next() {
        unquoted.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    unquoted
}

#[cfg(test)]
#[path = "attachments_tests.rs"]
mod tests;
