//! Parses a paragraph, a heading or a table into styled text, before it is wrapped into rows.

use pulldown_cmark::{CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};

use super::table::Table;
use crate::style::{Color, Span, Style};

/// A line of styled text that may be longer than a row.
pub(super) type Spans = Vec<Span>;

#[derive(Debug)]
pub(super) enum InlinePart {
    Line(Spans),
    Table(Table),
}

/// Put before a text that must be parsed as a paragraph: it has no width, and no block begins with it.
pub(crate) const WORD_JOINER: char = '\u{2060}';

/// Parses the source of one block.
pub(super) fn parse_inline(source: &str) -> Vec<InlinePart> {
    // A streamed text has no link references; what looks like the definition of one is shown as it is.
    match source.starts_with('[') {
        true => parse_paragraph(source),
        false => parse_markdown(source),
    }
}

/// Parses a text as a paragraph, whatever it begins with.
pub(super) fn parse_paragraph(source: &str) -> Vec<InlinePart> {
    let mut parts = parse_markdown(&format!("{WORD_JOINER}{source}"));
    if let Some(InlinePart::Line(spans)) = parts.first_mut()
        && let Some(first) = spans.first_mut()
    {
        first.content = first.content.trim_start_matches(WORD_JOINER).to_owned();
    }
    parts
}

fn parse_markdown(source: &str) -> Vec<InlinePart> {
    let mut text = InlineBuilder::default();
    for event in Parser::new_ext(source, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        text.push_event(event);
    }
    text.end_line();
    text.parts
}

#[derive(Debug, Default)]
struct InlineBuilder {
    parts: Vec<InlinePart>,
    line: Spans,
    /// The style of each open tag.
    styles: Vec<Style>,
    links: Vec<Link>,
    table: Option<Table>,
    row: Vec<Spans>,
}

#[derive(Debug)]
struct Link {
    url: String,
    /// Its visible text so far.
    text: String,
}

impl InlineBuilder {
    fn push_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.push(&text, Style::new()),
            Event::Code(text) => self.push(&text, Style::new().fg(Color::Cyan)),
            Event::InlineHtml(tag) if is_break(&tag) && self.table.is_none() => self.end_line(),
            Event::InlineHtml(tag) if is_break(&tag) => self.push(" ", Style::new()),
            Event::Html(text) | Event::InlineHtml(text) => self.push(&text, dim()),
            Event::SoftBreak => self.push(" ", Style::new()),
            Event::HardBreak => self.end_line(),
            Event::Rule => self.push("───", dim()),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.push(&text, Style::new());
            }
            Event::TaskListMarker(is_done) => self.push(if is_done { "☑ " } else { "☐ " }, Style::new()),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let plain = Style::new();
        let style = match tag {
            Tag::Heading { level: HeadingLevel::H1, .. } => plain.bold().underlined(),
            Tag::Heading { .. } | Tag::Strong | Tag::TableHead => plain.bold(),
            Tag::Emphasis => plain.italic(),
            Tag::Strikethrough => plain.crossed_out(),
            Tag::Link { link_type, dest_url, .. } => {
                self.links.push(Link { url: url(link_type, &dest_url), text: String::new() });
                plain.underlined()
            }
            Tag::Image { link_type, dest_url, .. } => {
                self.push("[image: ", plain);
                self.links.push(Link { url: url(link_type, &dest_url), text: String::new() });
                plain
            }
            Tag::Table(alignments) => {
                self.end_line();
                self.table = Some(Table { alignments, ..Table::default() });
                plain
            }
            Tag::Item => {
                self.end_line();
                self.push("• ", plain);
                plain
            }
            Tag::Paragraph | Tag::TableRow | Tag::TableCell => plain,
            _ => {
                self.end_line();
                plain
            }
        };
        let around = self.styles.last().copied().unwrap_or_default();
        self.styles.push(around.patch(style));
    }

    fn end(&mut self, tag: TagEnd) {
        self.styles.pop();
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {}
            TagEnd::Link => self.end_link(),
            TagEnd::Image => {
                self.push("]", Style::new());
                self.end_link();
            }
            TagEnd::TableCell => self.row.push(std::mem::take(&mut self.line)),
            TagEnd::TableHead => {
                let row = std::mem::take(&mut self.row);
                self.table.get_or_insert_default().head = row;
            }
            TagEnd::TableRow => {
                let row = std::mem::take(&mut self.row);
                self.table.get_or_insert_default().rows.push(row);
            }
            TagEnd::Table => self.parts.extend(self.table.take().map(InlinePart::Table)),
            _ => self.end_line(),
        }
    }

    fn end_link(&mut self) {
        let Some(link) = self.links.pop() else { return };
        let text = link.text.trim();
        let is_shown = text == link.url || link.url.strip_suffix('/') == Some(text);
        if !link.url.is_empty() && !is_shown {
            let gap = if text.is_empty() { "" } else { " " };
            self.push(&format!("{gap}({})", link.url), dim());
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        for link in &mut self.links {
            link.text.push_str(text);
        }
        let style = self.styles.last().copied().unwrap_or_default().patch(style);
        let mut lines = text.split('\n');
        self.push_span(lines.next().unwrap_or_default(), style);
        for line in lines {
            self.end_line();
            self.push_span(line, style);
        }
    }

    fn push_span(&mut self, text: &str, style: Style) {
        match self.line.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.style == style => last.content.push_str(text),
            _ => self.line.push(Span::styled(text, style)),
        }
    }

    fn end_line(&mut self) {
        if !self.line.is_empty() {
            self.parts.push(InlinePart::Line(std::mem::take(&mut self.line)));
        }
    }
}

/// The one HTML tag that models write often: a line break, mostly in tables.
fn is_break(tag: &str) -> bool {
    matches!(tag, "<br>" | "<br/>" | "<br />")
}

fn dim() -> Style {
    Style::new().dim()
}

/// The target of a link; empty if its text is the target anyway.
fn url(kind: LinkType, url: &CowStr<'_>) -> String {
    match kind {
        LinkType::Autolink | LinkType::Email => String::new(),
        _ => url.to_string(),
    }
}
