//! Styled lines of the transcript as lines of ratatui, and back.

use longhaul_transcript as transcript;
use longhaul_transcript::StyledLine;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// Colours of the transcript and of ratatui.
const COLORS: [(transcript::Color, Color); 16] = [
    (transcript::Color::Black, Color::Black),
    (transcript::Color::Red, Color::Red),
    (transcript::Color::Green, Color::Green),
    (transcript::Color::Yellow, Color::Yellow),
    (transcript::Color::Blue, Color::Blue),
    (transcript::Color::Magenta, Color::Magenta),
    (transcript::Color::Cyan, Color::Cyan),
    (transcript::Color::Gray, Color::Gray),
    (transcript::Color::DarkGray, Color::DarkGray),
    (transcript::Color::LightRed, Color::LightRed),
    (transcript::Color::LightGreen, Color::LightGreen),
    (transcript::Color::LightYellow, Color::LightYellow),
    (transcript::Color::LightBlue, Color::LightBlue),
    (transcript::Color::LightMagenta, Color::LightMagenta),
    (transcript::Color::LightCyan, Color::LightCyan),
    (transcript::Color::White, Color::White),
];

pub(crate) fn to_line(line: StyledLine) -> Line<'static> {
    let spans = line.spans.into_iter();
    Line::from(spans.map(|span| Span::styled(span.content, to_style(span.style))).collect::<Vec<_>>())
}

pub(crate) fn to_lines(lines: Vec<StyledLine>) -> Vec<Line<'static>> {
    lines.into_iter().map(to_line).collect()
}

/// Breaks a line at words into rows of at most `width` columns; rows after the first begin with `indent`.
pub(crate) fn wrap_line(line: &Line<'_>, width: u16, indent: &str) -> Vec<Line<'static>> {
    to_lines(transcript::wrap_line(&from_line(line), width, indent))
}

/// Cuts a line to one row, with `…` where something is cut off.
pub(crate) fn truncate_line(line: &Line<'_>, width: u16) -> Line<'static> {
    to_line(transcript::truncate_line(&from_line(line), width))
}

fn from_line(line: &Line<'_>) -> StyledLine {
    let span = |span: &Span<'_>| {
        transcript::Span::styled(span.content.as_ref(), from_style(line.style.patch(span.style)))
    };
    StyledLine::from(line.spans.iter().map(span).collect::<Vec<_>>())
}

fn to_style(style: transcript::Style) -> Style {
    let modifiers = [
        (style.bold, Modifier::BOLD),
        (style.dim, Modifier::DIM),
        (style.italic, Modifier::ITALIC),
        (style.underlined, Modifier::UNDERLINED),
        (style.crossed_out, Modifier::CROSSED_OUT),
        (style.reversed, Modifier::REVERSED),
    ];
    let set = modifiers.into_iter().filter_map(|(is_set, modifier)| is_set.then_some(modifier));
    let color = COLORS.into_iter().find(|(color, _)| Some(*color) == style.color);
    Style { fg: color.map(|(_, color)| color), ..Style::new() }.add_modifier(set.collect::<Modifier>())
}

fn from_style(style: Style) -> transcript::Style {
    let has = |modifier| style.add_modifier.contains(modifier);
    transcript::Style {
        color: COLORS.into_iter().find(|(_, color)| Some(*color) == style.fg).map(|(color, _)| color),
        bold: has(Modifier::BOLD),
        dim: has(Modifier::DIM),
        italic: has(Modifier::ITALIC),
        underlined: has(Modifier::UNDERLINED),
        crossed_out: has(Modifier::CROSSED_OUT),
        reversed: has(Modifier::REVERSED),
    }
}
