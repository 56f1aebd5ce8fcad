//! Where blocks begin and end, line by line: quotes and lists as containers, and in them paragraphs, tables and code.

use ratatui::style::{Style, Stylize};
use ratatui::text::Span;

use super::LONGEST;
use super::lines::{
    Fence, Marker, begins_a_block, expanded, indent, is_blank, is_delimiter, is_heading, is_rule,
    is_underline, marker, quoted, task,
};

/// What is nested deeper is taken for text: no terminal has room for it.
const DEEPEST: usize = 12;

/// How a text ends that is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    OfLine,
    /// The line is too long, and goes on.
    Cut,
}

/// Something to draw, that won't change any more.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) place: Place,
    pub(super) content: Content,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    /// A paragraph, a heading, or HTML.
    Text(String),
    /// A further part of a paragraph: it does not begin a block, whatever it looks like.
    More(String),
    /// A part of a line that is too long to be looked at as a whole.
    Plain(String),
    Table(String),
    /// Further rows of a table, with its head, which was shown before.
    MoreOfTable(String),
    Rule,
    CodeBegins {
        language: String,
    },
    Code(String),
}

/// Where something stands.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// If a blank row comes before it: what stands in that.
    pub(super) gap: Option<Vec<Span<'static>>>,
    /// What stands before its first row, and before the others.
    pub(super) first: Vec<Span<'static>>,
    pub(super) others: Vec<Span<'static>>,
}

impl Place {
    fn of_more(&self) -> Self {
        Self { gap: None, first: self.others.clone(), others: self.others.clone() }
    }
}

#[derive(Debug, Clone)]
struct Container {
    kind: Kind,
    /// Something in it was given a place, so that its mark was shown.
    is_used: bool,
}

#[derive(Debug, Clone)]
enum Kind {
    Quote,
    Item(Item),
}

#[derive(Debug, Clone)]
struct Item {
    list: char,
    number: Option<u64>,
    mark: String,
    indent: usize,
    content_indent: usize,
    /// There was an item of the same list before it.
    is_further: bool,
}

impl Container {
    /// What is left of a line if it belongs to this container.
    fn inside<'a>(&self, line: &'a str) -> Option<&'a str> {
        let Kind::Item(item) = &self.kind else { return quoted(line) };
        let indent = indent(line);
        // Lists inside of lists are often less indented than they should be.
        let is_nested = || indent >= item.indent + 2 && marker(line).is_some();
        match indent >= item.content_indent || is_blank(line) || is_nested() {
            true => Some(&line[indent.min(item.content_indent)..]),
            false => None,
        }
    }

    fn item(&self) -> Option<&Item> {
        match &self.kind {
            Kind::Item(item) => Some(item),
            Kind::Quote => None,
        }
    }
}

/// The block that has not ended.
#[derive(Debug, Clone, Default)]
enum Leaf {
    #[default]
    None,
    Text {
        source: String,
        place: Place,
        is_more: bool,
    },
    Table {
        source: String,
        place: Place,
        /// The length of the head and the line below it.
        head: usize,
        is_more: bool,
    },
    Fenced {
        fence: Fence,
        place: Place,
    },
    Indented {
        blanks: usize,
        place: Place,
    },
}

/// Goes through a text line by line.
#[derive(Debug, Clone, Default)]
pub(super) struct Blocks {
    containers: Vec<Container>,
    leaf: Leaf,
    /// Since the last block there was a blank line.
    is_after_blank: bool,
    /// The line that is being taken was cut.
    is_cut: bool,
    ready: Vec<Piece>,
}

impl Blocks {
    /// What is ready to be drawn; each piece is given once.
    pub(super) fn ready(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.ready)
    }

    /// The same, to go on with for a look at how it would end.
    pub(super) fn without_ready(&self) -> Self {
        Self {
            containers: self.containers.clone(),
            leaf: self.leaf.clone(),
            is_after_blank: self.is_after_blank,
            is_cut: self.is_cut,
            ready: Vec::new(),
        }
    }

    /// The next line, or a part of one that is too long.
    pub(super) fn take(&mut self, text: &str, end: End) {
        let was_cut = std::mem::replace(&mut self.is_cut, end == End::Cut);
        if was_cut {
            return self.rest_of_line(text);
        }
        self.line(&expanded(text));
        if self.is_cut && matches!(self.leaf, Leaf::Text { .. } | Leaf::Table { .. }) {
            self.end_leaf();
        }
    }

    /// There are no more lines.
    pub(super) fn finish(&mut self) {
        self.end_leaf();
        self.leave(0);
    }

    fn rest_of_line(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match &self.leaf {
            Leaf::Fenced { place, .. } | Leaf::Indented { place, .. } => {
                let place = place.of_more();
                self.ready.push(Piece { place, content: Content::Code(text.to_owned()) });
            }
            _ => {
                let place = self.place().of_more();
                self.ready.push(Piece { place, content: Content::Plain(text.to_owned()) });
            }
        }
    }

    fn line(&mut self, line: &str) {
        let (mut rest, mut inside) = (line, 0);
        for container in &self.containers {
            let Some(content) = container.inside(rest) else { break };
            (rest, inside) = (content, inside + 1);
        }
        let is_inside = inside == self.containers.len();
        if is_inside && self.goes_on_with_code(rest) {
            return;
        }
        if is_blank(rest) {
            self.end_leaf();
            self.leave(inside);
            self.is_after_blank = true;
            return;
        }
        let failing = self.containers.get(inside).and_then(Container::item);
        let mut sibling = failing.map(|item| (item.list, item.number));
        if !is_inside {
            let is_item = sibling.is_some() && marker(rest).is_some();
            if matches!(self.leaf, Leaf::Text { .. }) && !is_item && !begins_a_block(rest) {
                return self.text(rest);
            }
            self.end_leaf();
            self.leave(inside);
        }
        while let Some(content) = self.enter(rest, sibling.take()) {
            rest = content;
        }
        if !is_blank(rest) {
            self.content(rest);
        }
    }

    /// Takes a line of code, if a block of code is open and does not end here.
    fn goes_on_with_code(&mut self, line: &str) -> bool {
        let (place, content) = match &mut self.leaf {
            Leaf::Fenced { fence, .. } if fence.is_closed_by(line) => {
                self.leaf = Leaf::None;
                return true;
            }
            Leaf::Fenced { fence, place } => (place.of_more(), fence.content(line)),
            Leaf::Indented { blanks, .. } if is_blank(line) => {
                *blanks += 1;
                return true;
            }
            Leaf::Indented { blanks, place } if indent(line) >= 4 => {
                for _ in 0..std::mem::take(blanks) {
                    self.ready.push(Piece { place: place.of_more(), content: Content::Code(String::new()) });
                }
                (place.of_more(), &line[4..])
            }
            _ => return false,
        };
        self.ready.push(Piece { place, content: Content::Code(content.to_owned()) });
        true
    }

    /// Enters a quote or an item that begins with this line; gives what is left of it.
    fn enter<'a>(&mut self, line: &'a str, sibling: Option<(char, Option<u64>)>) -> Option<&'a str> {
        if self.containers.len() >= DEEPEST {
            return None;
        }
        if let Some(content) = quoted(line) {
            self.end_leaf();
            self.containers.push(Container { kind: Kind::Quote, is_used: false });
            return Some(content);
        }
        let is_in_text = matches!(self.leaf, Leaf::Text { .. });
        let found = marker(line).filter(|found| found.indent < 4 && (!is_in_text || found.interrupts()))?;
        self.end_leaf();
        let sibling = sibling.filter(|(list, _)| *list == found.list);
        let (item, content) = item(&found, sibling.map(|(_, number)| number));
        self.containers.push(Container { kind: Kind::Item(item), is_used: false });
        Some(content)
    }

    /// Ends all containers but the first ones.
    fn leave(&mut self, stay: usize) {
        if self.containers.iter().skip(stay).any(|container| !container.is_used) {
            // An item with nothing in it still has its mark.
            let place = self.place();
            self.ready.push(Piece { place, content: Content::Text(String::new()) });
        }
        self.containers.truncate(stay);
    }

    /// A line that is not blank, in the containers that it belongs to.
    fn content(&mut self, line: &str) {
        let is_in_text = matches!(self.leaf, Leaf::Text { .. });
        if is_in_text && is_underline(line) {
            self.text(line);
            self.end_leaf();
        } else if is_rule(line) {
            self.end_leaf();
            let place = self.place();
            self.ready.push(Piece { place, content: Content::Rule });
        } else if is_heading(line) {
            self.end_leaf();
            self.text(line);
            self.end_leaf();
        } else if let Some(fence) = Fence::of(line) {
            self.end_leaf();
            let place = self.place();
            let content = Content::CodeBegins { language: fence.language.clone() };
            self.ready.push(Piece { place: place.clone(), content });
            self.leaf = Leaf::Fenced { fence, place };
        } else if !is_in_text && indent(line) >= 4 {
            self.end_leaf();
            let place = self.place();
            let content = Content::CodeBegins { language: String::new() };
            self.ready.push(Piece { place: place.clone(), content });
            self.leaf = Leaf::Indented { blanks: 0, place };
            self.goes_on_with_code(line);
        } else if !self.begins_table(line) {
            self.text(line);
        }
    }

    /// A line of a paragraph, or of a table if one is open.
    fn text(&mut self, line: &str) {
        let line = line.trim_start_matches(' ');
        if matches!(self.leaf, Leaf::Table { .. }) && !line.contains('|') {
            self.end_leaf();
        }
        match &mut self.leaf {
            Leaf::Text { source, place, .. } if source.len() + line.len() > LONGEST => {
                let place = place.of_more();
                self.end_leaf();
                self.leaf = Leaf::Text { source: format!("{line}\n"), place, is_more: true };
            }
            Leaf::Table { source, place, head, .. } if source.len() + line.len() > LONGEST + *head => {
                let (place, head, heading) = (place.of_more(), *head, source[..*head].to_owned());
                self.end_leaf();
                self.leaf = Leaf::Table { source: format!("{heading}{line}\n"), place, head, is_more: true };
            }
            Leaf::Text { source, .. } | Leaf::Table { source, .. } => {
                source.push_str(line);
                source.push('\n');
            }
            _ => {
                self.end_leaf();
                let place = self.place();
                self.leaf = Leaf::Text { source: format!("{line}\n"), place, is_more: false };
            }
        }
    }

    /// Whether the last line of the paragraph was the head of a table, which begins then.
    fn begins_table(&mut self, line: &str) -> bool {
        let Leaf::Text { source, place, is_more } = &self.leaf else { return false };
        let text = source.trim_end_matches('\n');
        let at = text.rfind('\n').map_or(0, |at| at + 1);
        if !is_delimiter(line) || !text[at..].contains('|') {
            return false;
        }
        let (before, table) = (source[..at].to_owned(), format!("{}{}\n", &source[at..], line.trim()));
        let (place, is_more) = (place.clone(), *is_more);
        let place = match before.is_empty() {
            true => place,
            false => {
                self.leaf = Leaf::Text { source: before, place, is_more };
                self.end_leaf();
                self.place()
            }
        };
        self.leaf = Leaf::Table { head: table.len(), source: table, place, is_more: false };
        true
    }

    fn end_leaf(&mut self) {
        let (place, content) = match std::mem::take(&mut self.leaf) {
            Leaf::Text { source, place, is_more: false } => (place, Content::Text(source)),
            Leaf::Text { source, place, is_more: true } => (place, Content::More(source)),
            Leaf::Table { source, place, is_more: false, .. } => (place, Content::Table(source)),
            Leaf::Table { source, place, is_more: true, .. } => (place, Content::MoreOfTable(source)),
            Leaf::Indented { blanks, .. } => {
                self.is_after_blank |= blanks > 0;
                return;
            }
            Leaf::None | Leaf::Fenced { .. } => return,
        };
        self.ready.push(Piece { place, content });
    }

    /// The place of a block that begins here. With it the marks of its containers are shown.
    fn place(&mut self) -> Place {
        let mut place = Place { gap: self.has_gap().then(Vec::new), ..Place::default() };
        for container in &mut self.containers {
            let (first, others) = match &container.kind {
                Kind::Quote => (Span::from("▌ ").dim(), Span::from("▌ ").dim()),
                Kind::Item(item) => {
                    let blank = Span::from(" ".repeat(item.mark.chars().count()));
                    let mark = Span::styled(item.mark.clone(), Style::new());
                    (if container.is_used { blank.clone() } else { mark }, blank)
                }
            };
            if let Some(gap) = place.gap.as_mut().filter(|_| container.is_used) {
                gap.push(others.clone());
            }
            place.first.push(first);
            place.others.push(others);
            container.is_used = true;
        }
        self.is_after_blank = false;
        place
    }

    /// Whether a blank row comes before the next block: always, but in lists only where the text has one.
    fn has_gap(&self) -> bool {
        let is_in_item =
            self.containers.iter().any(|container| container.is_used && container.item().is_some());
        let new = self.containers.iter().find(|container| !container.is_used).and_then(Container::item);
        self.is_after_blank || !(is_in_item || new.is_some_and(|item| item.is_further))
    }
}

/// An item that begins, with the number of the one before it in its list; and what is left of its line.
fn item<'a>(found: &Marker<'a>, before: Option<Option<u64>>) -> (Item, &'a str) {
    let number = match before {
        Some(Some(before)) => Some(before.saturating_add(1)),
        _ => found.number,
    };
    let mut mark = number.map_or_else(|| "• ".to_owned(), |number| format!("{number}. "));
    let mut content = found.content;
    if let Some((is_done, rest)) = task(content) {
        let tick = if is_done { "☑ " } else { "☐ " };
        mark = number.map_or_else(|| tick.to_owned(), |number| format!("{number}. {tick}"));
        content = rest;
    }
    let item = Item {
        list: found.list,
        number,
        mark,
        indent: found.indent,
        content_indent: found.content_indent,
        is_further: before.is_some(),
    };
    (item, content)
}
