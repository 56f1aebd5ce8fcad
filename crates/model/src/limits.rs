//! The limits that a server states when it refuses a request, and the window that follows from them. Pure.

/// The limits that a server states in a refusal, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatedLimits {
    /// The context window: prompt and answer together.
    pub window: Option<u64>,
    /// The longest answer.
    pub answer: Option<u64>,
}

/// Phrases before the size of the window. vLLM, OpenAI, OpenRouter and SGLang; llama.cpp; LM Studio; xAI; TGI; Gemini.
const WINDOW_PHRASES: &[&str] = &[
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
/// Anthropic: the requested size, then `>` and the size of the window.
const WINDOW_COMPARISONS: &[&str] = &["context limit:", "prompt is too long"];
/// Phrases before the longest answer. OpenAI; Groq; DeepSeek, whose range begins with 1.
const ANSWER_PHRASES: &[&str] =
    &["supports at most", "must be less than or equal to", "range of max_tokens is [1,"];
/// Anthropic: the requested size, then `>` and the longest answer.
const ANSWER_COMPARISONS: &[&str] = &["max_tokens:"];

const MAX_GAP_BYTES: usize = 40;

/// The limits in the message of a refusal.
pub(crate) fn stated_limits(message: &str) -> StatedLimits {
    let text = message.to_lowercase();
    let announced = |words: &[&str]| words.iter().find_map(|words| number_after(&text, words));
    let compared = |words: &[&str]| {
        let place = words.iter().find_map(|words| text.find(words))?;
        number_after(&text[place..], ">")
    };
    let window = announced(WINDOW_PHRASES).or_else(|| compared(WINDOW_COMPARISONS));
    let is_about_answers = text.contains("max_tokens") || text.contains("completion tokens");
    let answer = if window.is_none() && is_about_answers {
        announced(ANSWER_PHRASES).or_else(|| compared(ANSWER_COMPARISONS))
    } else {
        None
    };
    StatedLimits { window, answer }
}

/// The first number shortly after a phrase. It may have commas and a unit (`128k`, `1M`). An ambiguous number is
/// ignored, because a window that is too small would stay in use.
fn number_after(text: &str, words: &str) -> Option<u64> {
    let rest = &text[text.find(words)? + words.len()..];
    let start = rest.find(|c: char| c.is_ascii_digit()).filter(|start| *start <= MAX_GAP_BYTES)?;
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

/// The size of a request that was refused as too long.
#[derive(Debug, Clone, Copy)]
pub struct RefusedSize {
    /// Estimated tokens of the prompt.
    pub prompt: u64,
    pub answer: u64,
}

/// The limits of a model after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorrectedLimits {
    /// The context window before the refusal and after it.
    pub window: (u64, u64),
    pub answer: Option<u64>,
}

/// The window after a refusal: the one that the refusal or the server states. If neither states one and the prompt
/// was small, half of the refused size. `None` if the window was not the problem.
pub(crate) fn corrected_window(now: u64, stated: Option<u64>, size: RefusedSize) -> Option<u64> {
    if stated.is_some() {
        return stated.filter(|stated| *stated < now);
    }
    let usable = now.saturating_sub(size.answer);
    if size.prompt > usable / 2 {
        return None;
    }
    // A quarter of the window is for the answer. So the window must be at least this large for the prompt to fit.
    let least = size.prompt.saturating_mul(3) / 2;
    let refused = size.prompt.saturating_add(size.answer).min(now);
    Some((refused / 2).max(least)).filter(|window| *window < refused)
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
