//! The keys that answer a question, and Shift-Tab, which changes the permission mode.
//!
//! One letter answers, but a user may just be typing a word when the question appears. So a letter counts only while nothing is typed, and only
//! when no other key follows it for a moment. Until then it stands in the input line. Enter, or the letter again, answers at once. What is typed
//! on and entered is an answer, too: a no with that reason.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use longhaul_protocol::{Answer, QuestionId};
use longhaul_transcript::{Color, Span, Style, StyledLine, wrap_line};

use crate::questions::OpenQuestion;
use crate::tui::chat::slash::mode::NEXT;

/// How long no other key may follow a letter that answers. People who type a word are faster.
const HOLD_TIME: Duration = Duration::from_millis(500);
/// The same for answers that allow more than one call.
const LASTING_HOLD_TIME: Duration = Duration::from_secs(1);

/// A letter that is an answer if no other key follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldAnswer {
    question: QuestionId,
    letter: char,
    /// The command that answers.
    line: String,
    due: Instant,
}

impl HeldAnswer {
    /// `line` is the command of [`answer_key`]. `None` if the key is no letter and so can't begin a word.
    pub(super) fn new(question: &OpenQuestion, key: KeyEvent, line: &str, now: Instant) -> Option<Self> {
        let KeyCode::Char(letter) = key.code else { return None };
        let is_lasting = matches!(letter.to_ascii_lowercase(), 'a' | 'p');
        let due = now + if is_lasting { LASTING_HOLD_TIME } else { HOLD_TIME };
        Some(Self { question: question.id, letter, line: line.to_owned(), due })
    }

    /// Whether it still answers: the question is open, and nothing but the letter is typed.
    pub(super) fn counts(&self, questions: &[OpenQuestion], typed: &str) -> bool {
        questions.first().is_some_and(|open| open.id == self.question) && typed.chars().eq([self.letter])
    }

    /// Whether the next key answers at once.
    pub(super) fn is_confirmed_by(&self, key: KeyEvent) -> bool {
        matches!(key.code, KeyCode::Enter) || key.code == KeyCode::Char(self.letter)
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    pub(super) fn into_line(self) -> String {
        self.line
    }
}

/// The command of Shift-Tab.
pub(super) fn mode_key(key: KeyEvent) -> Option<String> {
    let is_pressed = key.kind != KeyEventKind::Release;
    (is_pressed && key.code == KeyCode::BackTab).then(|| format!("/mode {NEXT}"))
}

/// The command that answers a question, if the key does.
pub(super) fn answer_key(question: &OpenQuestion, key: KeyEvent) -> Option<String> {
    let with_others =
        key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER);
    if key.kind == KeyEventKind::Release || with_others {
        return None;
    }
    let answer = match key.code {
        // Any other letter begins an answer in the user's own words.
        KeyCode::Char(digit) if question.kind.takes_text() => {
            let number = usize::try_from(digit.to_digit(10)?).ok()?;
            Answer::Text(question.choices.get(number.checked_sub(1)?)?)
        }
        KeyCode::Char(letter) => {
            let letter = letter.to_ascii_lowercase().to_string();
            answers(question).into_iter().find(|answer| answer.word().starts_with(&letter))?
        }
        // Esc ends a turn. A plan has none, so Esc leaves the plan.
        KeyCode::Esc if !question.is_awaited() => Answer::No,
        _ => return None,
    };
    Some(format!("/answer {} {}", question.id, answer.word()))
}

/// The answers that have a key.
fn answers(question: &OpenQuestion) -> Vec<Answer<'_>> {
    let named = question.choices.iter().map(|choice| Answer::parse(choice));
    let named: Vec<_> = named.filter(|answer| !matches!(answer, Answer::Text(_))).collect();
    // Questions of earlier versions name no choices.
    if named.is_empty() { vec![Answer::Yes, Answer::No] } else { named }
}

/// How to answer the first of the open questions. The question itself stands in the transcript; where several are open, its first line says
/// which one is meant.
pub(super) fn answer_lines(question: &OpenQuestion, open: usize, width: u16) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    if open > 1 {
        let text = crate::output::sanitize(question.text.lines().next().unwrap_or_default());
        let line = format!("? {text}  (1 of {open})");
        lines.extend(wrap_line(
            &StyledLine::styled(line, Style::new().fg(Color::Yellow).bold()),
            width,
            "  ",
        ));
    }
    if question.kind.takes_text() {
        lines.extend(wrap_line(&reply_line(question.choices.len()), width, "  "));
        return lines;
    }
    let is_plan = !question.is_awaited();
    let mut spans = vec![Span::raw("  ")];
    for answer in answers(question) {
        let meaning = match answer {
            Answer::Yes if is_plan => "yes, carry it out",
            Answer::Yes => "yes",
            Answer::Always => "always this session",
            Answer::Project => "always this project",
            Answer::No if is_plan => "no, leave it",
            Answer::No => "no",
            Answer::Text(_) => continue,
        };
        let letter = answer.word().chars().take(1).collect::<String>();
        spans.push(Span::colored(letter, Color::Yellow));
        spans.push(Span::dim(format!(" {meaning}  ")));
    }
    // A space begins a text of one letter.
    let words = if is_plan { "or type what to change" } else { "or type why not" };
    spans.push(Span::dim(words));
    lines.extend(wrap_line(&StyledLine::from(spans), width, "  "));
    lines
}

/// How to answer a question of the agent, whose choices are numbered.
fn reply_line(choices: usize) -> StyledLine {
    let keys = match choices {
        0 => return StyledLine::from(vec![Span::dim("  type your answer")]),
        1 => "1".to_owned(),
        several => format!("1–{several}"),
    };
    StyledLine::from(vec![
        Span::raw("  "),
        Span::colored(keys, Color::Yellow),
        Span::dim(" choose  or type your answer"),
    ])
}

#[cfg(test)]
#[path = "permission_keys_tests.rs"]
mod tests;
