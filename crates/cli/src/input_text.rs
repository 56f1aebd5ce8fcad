//! The text of an input, from an argument or from standard input.

use std::io::Read;

use crate::bad_usage;

const MAX_INPUT_BYTES: u64 = 8 << 20;

/// The text of an input for the agent, which must not be empty.
pub(crate) fn read_prompt(argument: String) -> anyhow::Result<String> {
    let text = read_text(argument)?;
    if text.trim().is_empty() {
        return Err(bad_usage("nothing to send: the text is empty"));
    }
    Ok(text)
}

/// The argument itself, or standard input where it is `-`.
pub(crate) fn read_text(argument: String) -> anyhow::Result<String> {
    let text = if argument == "-" {
        let mut read = String::new();
        std::io::stdin()
            .take(MAX_INPUT_BYTES + 1)
            .read_to_string(&mut read)
            .map_err(|error| bad_usage(format!("can't read standard input: {error}")))?;
        read
    } else {
        argument
    };
    if text.len() as u64 > MAX_INPUT_BYTES {
        let most = MAX_INPUT_BYTES >> 20;
        return Err(bad_usage(format!(
            "the message is larger than {most} MiB; put it in a file and name the file instead"
        )));
    }
    Ok(text)
}
