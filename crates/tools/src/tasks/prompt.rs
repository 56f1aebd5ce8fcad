//! K12: recognises a task that waits for input.

/// Words that ask for an answer, even in a complete line.
const QUESTION_WORDS: [&str; 10] = [
    "[y/n]",
    "(y/n)",
    "[yes/no]",
    "(yes/no)",
    "(yes/no/[fingerprint])",
    "press any key",
    "press enter",
    "press return",
    "hit enter",
    "--more--",
];
/// A line that ends with one of these asks for it.
const ASKED_SECRETS: [&str; 4] = ["password", "passphrase", "username", "verification code"];
/// How the prompt of a shell or interpreter ends.
const SHELL_PROMPTS: [&str; 6] = [">", "> ", "$ ", "# ", "% ", "❯ "];
/// A prompt fits on a screen.
const MAX_PROMPT_BYTES: usize = 400;

/// Whether the last line of an output asks for input. A complete line (with `\n`) counts only if it says so clearly: a
/// program that asks mostly leaves its line open.
pub fn looks_like_a_prompt(last_line: &str) -> bool {
    let is_whole = last_line.ends_with('\n');
    let open = last_line.trim_end_matches(['\n', '\r']);
    let text = open.trim();
    if text.is_empty() || text.len() > MAX_PROMPT_BYTES {
        return false;
    }
    let small = text.to_lowercase();
    if QUESTION_WORDS.iter().any(|question| small.contains(question)) {
        return true;
    }
    let asked = small.trim_end_matches([':', ' ', '?']);
    if ASKED_SECRETS.iter().any(|secret| asked.ends_with(secret)) && asked.len() < small.len() {
        return true;
    }
    if text.ends_with('?') {
        return true;
    }
    // Logs are full of lines that end with a colon; only an open line waits for input.
    !is_whole
        && (text.ends_with(':')
            || SHELL_PROMPTS.iter().any(|shell| open.ends_with(shell)) && !is_progress(text))
}

/// Progress bars are drawn with the characters of shell prompts.
fn is_progress(text: &str) -> bool {
    text.contains("=>") || text.contains("->") || text.contains("[=") || text.ends_with("</") || is_tag(text)
}

/// Whether a line ends with an HTML or XML tag.
fn is_tag(text: &str) -> bool {
    text.ends_with('>')
        && text.rfind('<').is_some_and(|start| !text[start..].contains(' ') || text.starts_with('<'))
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
