/// A text as one word of a shell command, in single quotes. A shell takes nothing in it for a sign of its own.
pub fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
