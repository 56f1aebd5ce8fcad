//! Fuzzy matching of a pattern against a path: the characters of the pattern in their order, ASCII letters without regard to case.
//!
//! A match in the file name beats one in the folders; characters in a row and at the starts of words beat scattered ones.

const MATCHED: i32 = 16;
const CONSECUTIVE: i32 = 14;
const PATH_START: i32 = 12;
const WORD_START: i32 = 8;
const IN_NAME: i32 = 24;
const WHOLE_NAME: i32 = 40;
/// The most that skipped characters between two matched ones cost.
const MAX_GAP_COST: usize = 6;

/// The score of a path for a pattern in lower case. `None` if the path does not have all characters of the pattern in order.
pub(super) fn score(path: &str, pattern: &str) -> Option<i32> {
    let (path, pattern) = (path.as_bytes(), pattern.as_bytes());
    let whole = path.strip_suffix(b"/").unwrap_or(path);
    let name_start = whole.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    if let Some(found) = score_from(path, name_start, pattern) {
        let name = &whole[name_start..];
        let stem = name.iter().rposition(|byte| *byte == b'.').map_or(name, |at| &name[..at]);
        let is_whole = name.eq_ignore_ascii_case(pattern) || stem.eq_ignore_ascii_case(pattern);
        return Some(found + IN_NAME + if is_whole { WHOLE_NAME } else { 0 });
    }
    score_from(path, 0, pattern)
}

/// The score of the tightest match that ends where the first match from `start` on ends.
fn score_from(path: &[u8], start: usize, pattern: &[u8]) -> Option<i32> {
    let mut wanted = pattern.iter();
    let mut next = wanted.next();
    let mut end = start;
    for (at, byte) in path.iter().enumerate().skip(start) {
        if next.is_some_and(|next| byte.eq_ignore_ascii_case(next)) {
            (next, end) = (wanted.next(), at);
        }
        if next.is_none() {
            break;
        }
    }
    if next.is_some() {
        return None;
    }
    // Backwards from the end, each character as late as possible: no match that ends here is shorter.
    let (mut total, mut later) = (0, None);
    let mut at = end;
    for wanted in pattern.iter().rev() {
        while !path[at].eq_ignore_ascii_case(wanted) {
            at = at.checked_sub(1)?;
        }
        total += MATCHED + start_bonus(path, at);
        if let Some(later) = later {
            total += match later - at - 1 {
                0 => CONSECUTIVE,
                gap => -i32::try_from(gap.min(MAX_GAP_COST)).unwrap_or(0),
            };
        }
        later = Some(at);
        at = at.saturating_sub(1);
    }
    Some(total)
}

fn start_bonus(path: &[u8], at: usize) -> i32 {
    match at.checked_sub(1).map(|before| path[before]) {
        None | Some(b'/') => PATH_START,
        Some(b'_' | b'-' | b'.' | b' ') => WORD_START,
        Some(before) if before.is_ascii_lowercase() && path[at].is_ascii_uppercase() => WORD_START,
        Some(_) => 0,
    }
}

/// The bytes of a text as a set of 64: a path without a byte of the pattern is no match.
pub(super) fn byte_set(text: &str) -> u64 {
    text.bytes().fold(0, |set, byte| set | 1 << (byte.to_ascii_lowercase() % 64))
}

#[cfg(test)]
#[path = "fuzzy_tests.rs"]
mod tests;
