//! Styles as SGR escape sequences.

use std::fmt::Write;

use ratatui::style::{Color, Modifier, Style};

/// Whether colours are used. No information is in the colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    Shown,
    Hidden,
}

impl Colours {
    /// Respects `NO_COLOR`.
    pub(crate) fn from_environment() -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if is_set("NO_COLOR") { Self::Hidden } else { Self::Shown }
    }
}

/// Writes the sequence that sets exactly this style.
pub(crate) fn write_style(out: &mut String, style: Style, colours: Colours) {
    out.push_str("\x1b[0");
    let modifiers = [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
        (Modifier::CROSSED_OUT, "9"),
    ];
    let set = style.add_modifier.difference(style.sub_modifier);
    for (modifier, code) in modifiers {
        if set.contains(modifier) {
            let _ = write!(out, ";{code}");
        }
    }
    if colours == Colours::Shown {
        let places = [(style.fg, 30), (style.bg, 40)];
        for code in places.into_iter().filter_map(|(colour, base)| code(colour?, base)) {
            let _ = write!(out, ";{code}");
        }
    }
    out.push('m');
}

/// The SGR code of one of the sixteen colours; `None` for the default colour and others.
fn code(colour: Color, base: u8) -> Option<u8> {
    const BRIGHT: u8 = 60;
    Some(match colour {
        Color::Black => base,
        Color::Red => base + 1,
        Color::Green => base + 2,
        Color::Yellow => base + 3,
        Color::Blue => base + 4,
        Color::Magenta => base + 5,
        Color::Cyan => base + 6,
        Color::Gray => base + 7,
        Color::DarkGray => base + BRIGHT,
        Color::LightRed => base + BRIGHT + 1,
        Color::LightGreen => base + BRIGHT + 2,
        Color::LightYellow => base + BRIGHT + 3,
        Color::LightBlue => base + BRIGHT + 4,
        Color::LightMagenta => base + BRIGHT + 5,
        Color::LightCyan => base + BRIGHT + 6,
        Color::White => base + BRIGHT + 7,
        Color::Reset | Color::Rgb(..) | Color::Indexed(_) => return None,
    })
}

#[cfg(test)]
#[path = "sgr_tests.rs"]
mod tests;
