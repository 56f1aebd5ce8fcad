//! What a single line of Markdown is: a list marker, a fence, a rule, a heading.

/// Leading spaces. Tabs were expanded before.
pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Replaces tabs by spaces up to the next multiple of four.
pub(super) fn expand_tabs(line: &str) -> String {
    let mut expanded = String::with_capacity(line.len());
    let mut column = 0;
    for letter in line.chars() {
        match letter {
            '\t' => {
                let spaces = 4 - column % 4;
                expanded.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            letter => {
                expanded.push(letter);
                column += 1;
            }
        }
    }
    expanded
}

pub(super) fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// The text behind the quote mark, if the line has one.
pub(super) fn strip_quote(line: &str) -> Option<&str> {
    let quoted = line.trim_start_matches(' ').strip_prefix('>').filter(|_| indent(line) < 4)?;
    Some(quoted.strip_prefix(' ').unwrap_or(quoted))
}

/// The marker of a list item.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListMarker<'a> {
    /// The bullet, or the character behind the number. Items with the same one belong to the same list.
    pub(super) list: char,
    pub(super) number: Option<u64>,
    /// Columns of the marker and of the item's content.
    pub(super) indent: usize,
    pub(super) content_indent: usize,
    pub(super) content: &'a str,
}

impl ListMarker<'_> {
    /// Whether the marker may interrupt a paragraph. A number other than 1 may not: it is usually prose.
    pub(super) fn interrupts(&self) -> bool {
        !is_blank(self.content) && self.number.is_none_or(|number| number == 1)
    }
}

pub(super) fn parse_list_marker(line: &str) -> Option<ListMarker<'_>> {
    let begins = indent(line);
    let text = &line[begins..];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let list = text[digits..].chars().next()?;
    let number = match (digits, list) {
        (0, '-' | '*' | '+') => None,
        (1..=9, '.' | ')') => Some(text[..digits].parse().ok()?),
        _ => return None,
    };
    let after = &text[digits + 1..];
    if is_rule(line) || !(after.is_empty() || after.starts_with(' ')) {
        return None;
    }
    let spaces = match indent(after) {
        spaces @ 1..=4 if !is_blank(after) => spaces,
        _ => 1,
    };
    let content = after.get(spaces..).unwrap_or_default();
    Some(ListMarker { list, number, indent: begins, content_indent: begins + digits + 1 + spaces, content })
}

/// Whether the task box at the beginning of an item is ticked, and the text behind it.
pub(super) fn strip_task_box(content: &str) -> Option<(bool, &str)> {
    let rest = content.strip_prefix('[')?;
    let is_done = match rest.chars().next()? {
        ' ' => false,
        'x' | 'X' => true,
        _ => return None,
    };
    Some((is_done, rest[1..].strip_prefix("] ")?))
}

pub(super) fn is_rule(line: &str) -> bool {
    let text = line.trim();
    let Some(first @ ('-' | '*' | '_')) = text.chars().next() else { return false };
    let marks = text.chars().filter(|letter| *letter == first).count();
    indent(line) < 4 && marks >= 3 && text.chars().all(|letter| letter == first || letter == ' ')
}

/// A line that makes the paragraph above it a heading.
pub(super) fn is_setext_underline(line: &str) -> bool {
    let text = line.trim();
    let is_all = |mark: char| text.chars().all(|letter| letter == mark);
    indent(line) < 4 && !text.is_empty() && (is_all('=') || is_all('-'))
}

pub(super) fn is_heading(line: &str) -> bool {
    let text = line.trim_start_matches(' ');
    let after = text.trim_start_matches('#');
    let level = text.len() - after.len();
    indent(line) < 4 && (1..=6).contains(&level) && (after.is_empty() || after.starts_with(' '))
}

/// The line between the head of a table and its rows.
pub(super) fn is_table_delimiter(line: &str) -> bool {
    let is_part = |letter| matches!(letter, '|' | '-' | ':' | ' ');
    line.contains('|') && line.contains('-') && line.chars().all(is_part)
}

/// The opening fence of a code block.
#[derive(Debug, Clone)]
pub(super) struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    pub(super) language: String,
}

impl Fence {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let information = text.trim_start_matches(mark);
        let length = text.len() - information.len();
        if indent(line) >= 4 || length < 3 || (mark == '`' && information.contains('`')) {
            return None;
        }
        let is_end = |letter: char| letter.is_whitespace() || matches!(letter, ',' | '{' | ':');
        let language = information.trim().split(is_end).next().unwrap_or_default().to_owned();
        Some(Self { mark, length, indent: indent(line), language })
    }

    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim();
        indent(line) < 4 && text.len() >= self.length && text.chars().all(|letter| letter == self.mark)
    }

    /// A line of the code without the indentation of the fence.
    pub(super) fn content<'a>(&self, line: &'a str) -> &'a str {
        &line[indent(line).min(self.indent)..]
    }
}

/// Whether a line outside of the open paragraph's container starts a block, so that it can't continue the paragraph.
pub(super) fn starts_block(line: &str) -> bool {
    strip_quote(line).is_some()
        || is_rule(line)
        || is_heading(line)
        || Fence::parse(line).is_some()
        || parse_list_marker(line).is_some_and(|marker| indent(line) < 4 && marker.interrupts())
}
