//! Styled lines of the crate `transcript` as lines of ratatui.

use longhaul_transcript as transcript;
use longhaul_transcript::{StyledLine, truncate_line};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

pub(crate) fn to_line(line: StyledLine) -> Line<'static> {
    let spans = line.spans.into_iter();
    Line::from(spans.map(|span| Span::styled(span.content, to_style(span.style))).collect::<Vec<_>>())
}

pub(crate) fn to_lines(lines: Vec<StyledLine>) -> Vec<Line<'static>> {
    lines.into_iter().map(to_line).collect()
}

/// Lines cut to one row each, with `…` where something is cut off.
pub(crate) fn to_rows(lines: &[StyledLine], width: u16) -> Vec<Line<'static>> {
    lines.iter().map(|line| to_line(truncate_line(line, width))).collect()
}

fn to_style(style: transcript::Style) -> Style {
    let modifiers = [
        (style.bold, Modifier::BOLD),
        (style.dim, Modifier::DIM),
        (style.italic, Modifier::ITALIC),
        (style.underlined, Modifier::UNDERLINED),
        (style.crossed_out, Modifier::CROSSED_OUT),
    ];
    let set = modifiers.into_iter().filter_map(|(is_set, modifier)| is_set.then_some(modifier));
    Style { fg: style.color.map(to_color), ..Style::new() }.add_modifier(set.collect::<Modifier>())
}

fn to_color(color: transcript::Color) -> Color {
    match color {
        transcript::Color::Red => Color::Red,
        transcript::Color::Green => Color::Green,
        transcript::Color::Yellow => Color::Yellow,
        transcript::Color::Blue => Color::Blue,
        transcript::Color::Magenta => Color::Magenta,
        transcript::Color::Cyan => Color::Cyan,
    }
}
