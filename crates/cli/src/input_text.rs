//! The text of an input, from an argument or from standard input.

use std::io::Read;

use crate::BadUsage;

/// The longest input that is accepted.
const MAX_INPUT_BYTES: u64 = 8 << 20;

/// The words of an input, of which there must be some.
pub(crate) fn words(text: String) -> anyhow::Result<String> {
    let text = given(text)?;
    if text.trim().is_empty() {
        return Err(BadUsage("there is nothing to send: the text is empty".to_owned()).into());
    }
    Ok(text)
}

/// A text: the one that was given, or for `-` that on standard input.
pub(crate) fn given(text: String) -> anyhow::Result<String> {
    let text = if text == "-" {
        let mut read = String::new();
        std::io::stdin()
            .take(MAX_INPUT_BYTES + 1)
            .read_to_string(&mut read)
            .map_err(|error| BadUsage(format!("standard input can't be read: {error}")))?;
        read
    } else {
        text
    };
    if text.len() as u64 > MAX_INPUT_BYTES {
        let most = MAX_INPUT_BYTES >> 20;
        return Err(BadUsage(format!(
            "an input may have {most} MiB; put it into a file, and say where it is"
        ))
        .into());
    }
    Ok(text)
}
