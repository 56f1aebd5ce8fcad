//! The key bindings of the input field, in one table.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::text::{KillSide, WordRule};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyAction {
    Type(char),
    Enter,
    NewLine,
    /// Accept the completion, or look for one.
    Complete,
    DeleteBefore,
    DeleteAfter,
    /// Delete, or end of input in an empty field.
    DeleteOrEnd,
    Move(Motion),
    Up,
    Down,
    PreviousCompletion,
    /// Search the history, or go on to an older match.
    SearchHistory,
    Kill(Kill),
    Yank,
    Interrupt,
    Escape,
    /// A key release.
    Nothing,
    /// A key that the field does not use.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Motion {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    Start,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kill {
    LineStart,
    LineEnd,
    WordBefore(WordRule),
    WordAfter,
}

impl Kill {
    pub(super) fn side(self) -> KillSide {
        match self {
            Self::LineStart | Self::WordBefore(_) => KillSide::Before,
            Self::LineEnd | Self::WordAfter => KillSide::After,
        }
    }
}

pub(super) fn key_action(key: &KeyEvent) -> KeyAction {
    if key.kind == KeyEventKind::Release {
        return KeyAction::Nothing;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    if key.modifiers.intersects(KeyModifiers::SUPER | KeyModifiers::HYPER | KeyModifiers::META) {
        return KeyAction::Other;
    }
    match (key.code, control, alt) {
        (KeyCode::Char(character), false, false) => typed(character),
        (KeyCode::Char(character), true, false) => with_control(character.to_ascii_lowercase()),
        (KeyCode::Char(character), false, true) => with_alt(character.to_ascii_lowercase()),
        (KeyCode::Enter, false, false) if !key.modifiers.contains(KeyModifiers::SHIFT) => KeyAction::Enter,
        (KeyCode::Enter, _, _) => KeyAction::NewLine,
        (KeyCode::Tab, false, false) => KeyAction::Complete,
        (KeyCode::BackTab, false, false) => KeyAction::PreviousCompletion,
        (KeyCode::Backspace, false, false) => KeyAction::DeleteBefore,
        (KeyCode::Backspace, _, _) => KeyAction::Kill(Kill::WordBefore(WordRule::Plain)),
        (KeyCode::Delete, false, false) => KeyAction::DeleteAfter,
        (KeyCode::Delete, _, _) => KeyAction::Kill(Kill::WordAfter),
        (KeyCode::Left, false, false) => KeyAction::Move(Motion::Left),
        (KeyCode::Left, _, _) => KeyAction::Move(Motion::WordLeft),
        (KeyCode::Right, false, false) => KeyAction::Move(Motion::Right),
        (KeyCode::Right, _, _) => KeyAction::Move(Motion::WordRight),
        (KeyCode::Home, false, false) => KeyAction::Move(Motion::LineStart),
        (KeyCode::Home, _, _) => KeyAction::Move(Motion::Start),
        (KeyCode::End, false, false) => KeyAction::Move(Motion::LineEnd),
        (KeyCode::End, _, _) => KeyAction::Move(Motion::End),
        (KeyCode::Up, false, false) => KeyAction::Up,
        (KeyCode::Down, false, false) => KeyAction::Down,
        (KeyCode::Esc, false, false) => KeyAction::Escape,
        _ => KeyAction::Other,
    }
}

/// A character without control or alt. Some terminals send control characters as they are.
fn typed(character: char) -> KeyAction {
    match character {
        '\n' => KeyAction::NewLine,
        '\r' => KeyAction::Enter,
        '\t' => KeyAction::Complete,
        _ if character.is_control() => KeyAction::Nothing,
        _ => KeyAction::Type(character),
    }
}

fn with_control(character: char) -> KeyAction {
    match character {
        'a' => KeyAction::Move(Motion::LineStart),
        'e' => KeyAction::Move(Motion::LineEnd),
        'b' => KeyAction::Move(Motion::Left),
        'f' => KeyAction::Move(Motion::Right),
        'c' => KeyAction::Interrupt,
        'd' => KeyAction::DeleteOrEnd,
        'h' => KeyAction::DeleteBefore,
        'i' => KeyAction::Complete,
        'j' => KeyAction::NewLine,
        'k' => KeyAction::Kill(Kill::LineEnd),
        'm' => KeyAction::Enter,
        'n' => KeyAction::Down,
        'p' => KeyAction::Up,
        'r' => KeyAction::SearchHistory,
        'u' => KeyAction::Kill(Kill::LineStart),
        'w' => KeyAction::Kill(Kill::WordBefore(WordRule::Spaced)),
        'y' => KeyAction::Yank,
        _ => KeyAction::Other,
    }
}

fn with_alt(character: char) -> KeyAction {
    match character {
        'b' => KeyAction::Move(Motion::WordLeft),
        'f' => KeyAction::Move(Motion::WordRight),
        'd' => KeyAction::Kill(Kill::WordAfter),
        '\r' | '\n' => KeyAction::NewLine,
        '\u{7f}' | '\u{8}' => KeyAction::Kill(Kill::WordBefore(WordRule::Plain)),
        _ => KeyAction::Other,
    }
}
