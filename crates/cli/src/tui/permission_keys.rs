//! The keys that answer a question, and Shift-Tab, which changes the permission mode.
//!
//! One key answers only while nothing is typed. What is typed and entered is an answer, too: a no with that reason. A space before it lets it
//! begin with any letter.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use longhaul_protocol::Answer;
use longhaul_transcript::{Color, Span, Style, StyledLine, wrap_line};

use crate::questions::OpenQuestion;
use crate::tui::chat::slash::mode::NEXT;

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
    // A space begins a text whose first letter would be an answer.
    let words = if is_plan { "Space: what to change" } else { "Space: why not" };
    spans.push(Span::dim(words));
    lines.extend(wrap_line(&StyledLine::from(spans), width, "  "));
    lines
}

#[cfg(test)]
#[path = "permission_keys_tests.rs"]
mod tests;
