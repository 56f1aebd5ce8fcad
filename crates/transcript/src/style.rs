//! Styled text that knows no terminal and no browser: spans with a colour that every terminal has and a few attributes.

use unicode_width::UnicodeWidthStr;

/// The colours that every terminal has, by their usual names. The reader's terminal decides how they look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

/// How a span looks. The default is plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    pub color: Option<Color>,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underlined: bool,
    pub crossed_out: bool,
}

impl Style {
    pub const fn new() -> Self {
        Self { color: None, bold: false, dim: false, italic: false, underlined: false, crossed_out: false }
    }

    #[must_use]
    pub const fn fg(self, color: Color) -> Self {
        Self { color: Some(color), ..self }
    }

    #[must_use]
    pub const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    #[must_use]
    pub const fn dim(self) -> Self {
        Self { dim: true, ..self }
    }

    #[must_use]
    pub const fn italic(self) -> Self {
        Self { italic: true, ..self }
    }

    #[must_use]
    pub const fn underlined(self) -> Self {
        Self { underlined: true, ..self }
    }

    #[must_use]
    pub const fn crossed_out(self) -> Self {
        Self { crossed_out: true, ..self }
    }

    /// This style with another one inside it: the inner colour wins, attributes add up.
    #[must_use]
    pub fn patch(self, inner: Self) -> Self {
        Self {
            color: inner.color.or(self.color),
            bold: self.bold || inner.bold,
            dim: self.dim || inner.dim,
            italic: self.italic || inner.italic,
            underlined: self.underlined || inner.underlined,
            crossed_out: self.crossed_out || inner.crossed_out,
        }
    }
}

/// Text in one style.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    pub content: String,
    pub style: Style,
}

impl Span {
    pub fn raw(content: impl Into<String>) -> Self {
        Self { content: content.into(), style: Style::new() }
    }

    pub fn styled(content: impl Into<String>, style: Style) -> Self {
        Self { content: content.into(), style }
    }

    pub fn dim(content: impl Into<String>) -> Self {
        Self::styled(content, Style::new().dim())
    }

    pub fn colored(content: impl Into<String>, color: Color) -> Self {
        Self::styled(content, Style::new().fg(color))
    }
}

impl From<&str> for Span {
    fn from(content: &str) -> Self {
        Self::raw(content)
    }
}

/// One line of styled text. After wrapping it is one row of the terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StyledLine {
    pub spans: Vec<Span>,
}

impl StyledLine {
    pub fn raw(content: impl Into<String>) -> Self {
        Self { spans: vec![Span::raw(content)] }
    }

    pub fn styled(content: impl Into<String>, style: Style) -> Self {
        Self { spans: vec![Span::styled(content, style)] }
    }

    pub fn dim(content: impl Into<String>) -> Self {
        Self { spans: vec![Span::dim(content)] }
    }

    /// Columns that the line takes in a terminal.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| span.content.width()).sum()
    }
}

impl From<Vec<Span>> for StyledLine {
    fn from(spans: Vec<Span>) -> Self {
        Self { spans }
    }
}

impl From<Span> for StyledLine {
    fn from(span: Span) -> Self {
        Self { spans: vec![span] }
    }
}

/// The text alone.
impl std::fmt::Display for StyledLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.spans.iter().try_for_each(|span| f.write_str(&span.content))
    }
}
