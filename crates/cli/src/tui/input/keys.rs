//! What the keys of the input mean, in one table.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::text::{Side, Words};

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Type(char),
    Enter,
    NewLine,
    /// Accept the completion, or ask for some.
    Complete,
    DeleteBefore,
    DeleteAfter,
    /// Delete, or say that this was all if there is nothing.
    DeleteOrEnd,
    Move(Motion),
    Up,
    Down,
    /// The completion before; elsewhere nothing.
    Back,
    Kill(Kill),
    Yank,
    Interrupt,
    Escape,
    /// A key that was let go.
    Nothing,
    /// Not a key of the input.
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
    WordBefore(Words),
    WordAfter,
}

impl Kill {
    /// Where what it kills stands.
    pub(super) fn side(self) -> Side {
        match self {
            Self::LineStart | Self::WordBefore(_) => Side::Before,
            Self::LineEnd | Self::WordAfter => Side::After,
        }
    }
}

/// What a key asks for.
pub(super) fn meaning(key: &KeyEvent) -> Meaning {
    if key.kind == KeyEventKind::Release {
        return Meaning::Nothing;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    if key.modifiers.intersects(KeyModifiers::SUPER | KeyModifiers::HYPER | KeyModifiers::META) {
        return Meaning::Other;
    }
    match (key.code, control, alt) {
        (KeyCode::Char(character), false, false) => typed(character),
        (KeyCode::Char(character), true, false) => with_control(character.to_ascii_lowercase()),
        (KeyCode::Char(character), false, true) => with_alt(character.to_ascii_lowercase()),
        (KeyCode::Enter, false, false) if !key.modifiers.contains(KeyModifiers::SHIFT) => Meaning::Enter,
        (KeyCode::Enter, _, _) => Meaning::NewLine,
        (KeyCode::Tab, false, false) => Meaning::Complete,
        (KeyCode::BackTab, false, false) => Meaning::Back,
        (KeyCode::Backspace, false, false) => Meaning::DeleteBefore,
        (KeyCode::Backspace, _, _) => Meaning::Kill(Kill::WordBefore(Words::Plain)),
        (KeyCode::Delete, false, false) => Meaning::DeleteAfter,
        (KeyCode::Delete, _, _) => Meaning::Kill(Kill::WordAfter),
        (KeyCode::Left, false, false) => Meaning::Move(Motion::Left),
        (KeyCode::Left, _, _) => Meaning::Move(Motion::WordLeft),
        (KeyCode::Right, false, false) => Meaning::Move(Motion::Right),
        (KeyCode::Right, _, _) => Meaning::Move(Motion::WordRight),
        (KeyCode::Home, false, false) => Meaning::Move(Motion::LineStart),
        (KeyCode::Home, _, _) => Meaning::Move(Motion::Start),
        (KeyCode::End, false, false) => Meaning::Move(Motion::LineEnd),
        (KeyCode::End, _, _) => Meaning::Move(Motion::End),
        (KeyCode::Up, false, false) => Meaning::Up,
        (KeyCode::Down, false, false) => Meaning::Down,
        (KeyCode::Esc, false, false) => Meaning::Escape,
        _ => Meaning::Other,
    }
}

/// A character without a modifier that counts. Some terminals send control characters as they are.
fn typed(character: char) -> Meaning {
    match character {
        '\n' => Meaning::NewLine,
        '\r' => Meaning::Enter,
        '\t' => Meaning::Complete,
        _ if character.is_control() => Meaning::Nothing,
        _ => Meaning::Type(character),
    }
}

fn with_control(character: char) -> Meaning {
    match character {
        'a' => Meaning::Move(Motion::LineStart),
        'e' => Meaning::Move(Motion::LineEnd),
        'b' => Meaning::Move(Motion::Left),
        'f' => Meaning::Move(Motion::Right),
        'c' => Meaning::Interrupt,
        'd' => Meaning::DeleteOrEnd,
        'h' => Meaning::DeleteBefore,
        'i' => Meaning::Complete,
        'j' => Meaning::NewLine,
        'k' => Meaning::Kill(Kill::LineEnd),
        'm' => Meaning::Enter,
        'n' => Meaning::Down,
        'p' => Meaning::Up,
        'u' => Meaning::Kill(Kill::LineStart),
        'w' => Meaning::Kill(Kill::WordBefore(Words::Spaced)),
        'y' => Meaning::Yank,
        _ => Meaning::Other,
    }
}

fn with_alt(character: char) -> Meaning {
    match character {
        'b' => Meaning::Move(Motion::WordLeft),
        'f' => Meaning::Move(Motion::WordRight),
        'd' => Meaning::Kill(Kill::WordAfter),
        '\r' | '\n' => Meaning::NewLine,
        '\u{7f}' | '\u{8}' => Meaning::Kill(Kill::WordBefore(Words::Plain)),
        _ => Meaning::Other,
    }
}
