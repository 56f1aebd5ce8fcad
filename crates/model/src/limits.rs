//! What a refusal says about how much a model takes, and what follows from it. Pure.

/// The limits that a server states in a refusal, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatedLimits {
    /// The context: prompt and answer together.
    pub window: Option<u64>,
    /// The answer.
    pub answer: Option<u64>,
}

/// What stands before the size of the context. vLLM, OpenAI, OpenRouter and SGLang; llama.cpp; LM Studio; xAI; TGI; Gemini.
const BEFORE_WINDOW: &[&str] = &[
    "maximum context length is",
    "maximum context length of",
    "context size (",
    "context length (",
    "context length of only",
    "context window of",
    "context window is",
    "max_model_len",
    "maximum prompt length is",
    "`max_new_tokens` must be <=",
    "`inputs` must have less than",
    "number of tokens allowed (",
];
/// Anthropic: what was asked for, then `>` and the size of the context.
const COMPARED_WINDOW: &[&str] = &["context limit:", "prompt is too long"];
/// What stands before the longest answer. OpenAI; Groq; DeepSeek, whose range begins with 1.
const BEFORE_ANSWER: &[&str] =
    &["supports at most", "must be less than or equal to", "range of max_tokens is [1,"];
/// Anthropic: what was asked for, then `>` and the longest answer.
const COMPARED_ANSWER: &[&str] = &["max_tokens:"];

/// A number stands at most so many bytes behind the words that announce it.
const NEARBY: usize = 40;

/// What the words of a refusal say.
pub(crate) fn stated_limits(message: &str) -> StatedLimits {
    let text = message.to_lowercase();
    let announced = |words: &[&str]| words.iter().find_map(|words| number_after(&text, words));
    let compared = |words: &[&str]| {
        let place = words.iter().find_map(|words| text.find(words))?;
        number_after(&text[place..], ">")
    };
    let window = announced(BEFORE_WINDOW).or_else(|| compared(COMPARED_WINDOW));
    let is_about_answers = text.contains("max_tokens") || text.contains("completion tokens");
    let answer = if window.is_none() && is_about_answers {
        announced(BEFORE_ANSWER).or_else(|| compared(COMPARED_ANSWER))
    } else {
        None
    };
    StatedLimits { window, answer }
}

/// The first number that stands shortly after these words. It may have commas in it, and a unit (`128k`, `1M`). One that can't be
/// read with certainty is none: a window that is taken for too small would be kept.
fn number_after(text: &str, words: &str) -> Option<u64> {
    let rest = &text[text.find(words)? + words.len()..];
    let start = rest.find(|c: char| c.is_ascii_digit()).filter(|start| *start <= NEARBY)?;
    let rest = &rest[start..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(rest.len());
    let (digits, rest) = rest.split_at(end);
    let number: u64 = digits.replace(',', "").parse().ok()?;
    if rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return None;
    }
    let unit = match rest.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default() {
        "" | "tokens" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        _ => return None,
    };
    number.checked_mul(unit).filter(|number| *number > 0)
}

/// A request that was refused as too long.
#[derive(Debug, Clone, Copy)]
pub struct RefusedSize {
    /// Tokens of the prompt, as far as they can be estimated.
    pub prompt: u64,
    /// Tokens that the answer was allowed to have.
    pub answer: u64,
}

/// What is believed about a model after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorrectedLimits {
    /// The size of the context before and now.
    pub window: (u64, u64),
    /// The longest answer, if the server named one.
    pub answer: Option<u64>,
}

/// The window that a model has after it refused a request: the one that its refusal or its server states; where neither does and the
/// prompt was small, half of what was refused. Nothing, where the window is not what was wrong.
pub(crate) fn corrected_window(now: u64, stated: Option<u64>, size: RefusedSize) -> Option<u64> {
    if stated.is_some() {
        return stated.filter(|stated| *stated < now);
    }
    let usable = now.saturating_sub(size.answer);
    if size.prompt > usable / 2 {
        return None;
    }
    // A quarter of the window is for the answer, so this leaves room for the prompt.
    let least = size.prompt.saturating_mul(3) / 2;
    let refused = size.prompt.saturating_add(size.answer).min(now);
    Some((refused / 2).max(least)).filter(|window| *window < refused)
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
