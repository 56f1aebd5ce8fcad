//! A paragraph, a heading or a table of Markdown as HTML.

use pulldown_cmark::{Alignment, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};

use super::fragment::{escape, push};
use crate::markdown::WORD_JOINER;

/// Deeper elements are left out: they mean nothing to a reader, and browsers have bounds of their own.
const MAX_DEPTH: usize = 32;

/// Renders the source of one block. With `as_paragraph` it is text, whatever it begins with. Stops when no cells are left.
pub(super) fn push_markdown(html: &mut String, source: &str, as_paragraph: bool, cells_left: &mut usize) {
    // As in the terminal: what looks like the definition of a link reference is shown as it is.
    let is_guarded = as_paragraph || source.starts_with('[');
    let guarded = if is_guarded { format!("{WORD_JOINER}{source}") } else { String::new() };
    let source = if is_guarded { &guarded } else { source };
    let mut renderer = InlineRenderer {
        html,
        closers: Vec::new(),
        alignments: vec![],
        column: 0,
        cell: None,
        empty_cells: 0,
        links: 0,
    };
    for event in Parser::new_ext(source, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        if matches!(event, Event::Start(Tag::TableCell)) {
            *cells_left = cells_left.saturating_sub(1);
        }
        if *cells_left == 0 {
            return;
        }
        renderer.push_event(event);
    }
}

struct InlineRenderer<'a> {
    html: &'a mut String,
    /// What closes each open tag.
    closers: Vec<String>,
    alignments: Vec<Alignment>,
    column: usize,
    /// Where the HTML of the open cell begins, and where its content does.
    cell: Option<(usize, usize)>,
    /// Empty cells of the row since the last one with a content. They are written when another one follows: the parser fills each row up
    /// to the length of the head.
    empty_cells: usize,
    /// Links that are open. One in another is text.
    links: usize,
}

impl InlineRenderer<'_> {
    fn push_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => {
                let closer = self.open(tag);
                self.closers.push(closer);
            }
            Event::End(tag) => {
                let closer = self.closers.pop().unwrap_or_default();
                match self.cell.take_if(|_| tag == TagEnd::TableCell) {
                    Some(cell) => self.end_cell(cell, &closer),
                    None => self.html.push_str(&closer),
                }
                if matches!(tag, TagEnd::Link | TagEnd::Image) && closer.ends_with("</a>") {
                    self.links -= 1;
                }
            }
            Event::Text(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.push_text(&text),
            Event::Code(text) => push(self.html, format_args!("<code>{}</code>", escape(&text))),
            Event::InlineHtml(tag) if matches!(&*tag, "<br>" | "<br/>" | "<br />") => {
                self.html.push_str("<br/>");
            }
            Event::Html(text) | Event::InlineHtml(text) => self.push_text(&text),
            Event::SoftBreak => self.html.push('\n'),
            Event::HardBreak => self.html.push_str("<br/>\n"),
            Event::Rule => self.html.push_str("<hr/>\n"),
            Event::TaskListMarker(is_done) => self.push_text(if is_done { "done: " } else { "open: " }),
        }
    }

    fn push_text(&mut self, text: &str) {
        self.html.push_str(&escape(text.trim_start_matches(WORD_JOINER)));
    }

    /// Opens a tag, and returns what closes it.
    fn open(&mut self, tag: Tag<'_>) -> String {
        let (opener, closer) = match tag {
            _ if self.closers.len() >= MAX_DEPTH => ("", ""),
            Tag::Link { link_type, dest_url, .. } => return self.open_link(link_type, &dest_url, ""),
            Tag::Image { link_type, dest_url, .. } => {
                return self.open_link(link_type, &dest_url, "[image: ");
            }
            Tag::Heading { level, .. } => heading_tags(level),
            Tag::Paragraph | Tag::HtmlBlock => ("<p dir=\"auto\">", "</p>\n"),
            Tag::Emphasis => ("<em>", "</em>"),
            Tag::Strong => ("<strong>", "</strong>"),
            Tag::Strikethrough => ("<del>", "</del>"),
            Tag::BlockQuote(_) => ("<blockquote>\n", "</blockquote>\n"),
            Tag::CodeBlock(_) => ("<pre class=\"code\" dir=\"auto\"><code>", "</code></pre>\n"),
            Tag::List(Some(_)) => ("<ol>\n", "</ol>\n"),
            Tag::List(None) => ("<ul>\n", "</ul>\n"),
            Tag::Item => ("<li>", "</li>\n"),
            Tag::Table(alignments) => {
                self.alignments = alignments;
                ("<table>\n", "</tbody>\n</table>\n")
            }
            Tag::TableHead => {
                (self.column, self.empty_cells) = (0, 0);
                ("<thead>\n<tr>", "</tr>\n</thead>\n<tbody>\n")
            }
            Tag::TableRow => {
                (self.column, self.empty_cells) = (0, 0);
                ("<tr>", "</tr>\n")
            }
            Tag::TableCell => return self.open_cell(),
            _ => ("", ""),
        };
        self.html.push_str(opener);
        closer.to_owned()
    }

    fn open_cell(&mut self) -> String {
        let alignment = self.alignments.get(self.column).copied().unwrap_or(Alignment::None);
        self.column += 1;
        let is_head = self.closers.last().is_some_and(|closer| closer.contains("</thead>"));
        let class = match alignment {
            Alignment::Right => " class=\"right\"",
            Alignment::Center => " class=\"center\"",
            Alignment::Left | Alignment::None => "",
        };
        let start = self.html.len();
        let (name, scope) = if is_head { ("th", " scope=\"col\"") } else { ("td", "") };
        push(self.html, format_args!("<{name}{scope}{class} dir=\"auto\">"));
        self.cell = Some((start, self.html.len()));
        format!("</{name}>")
    }

    /// Takes an empty cell back until another one follows it.
    fn end_cell(&mut self, (start, content): (usize, usize), closer: &str) {
        if self.html.len() == content {
            self.html.truncate(start);
            self.empty_cells += 1;
            return;
        }
        self.html.push_str(closer);
        let empty = "<td></td>".repeat(std::mem::take(&mut self.empty_cells));
        self.html.insert_str(start, &empty);
    }

    /// A link to another site or an address. The target of any other is shown as text.
    fn open_link(&mut self, kind: LinkType, target: &str, before: &str) -> String {
        let target = match kind {
            LinkType::Email => format!("mailto:{target}"),
            _ => target.to_owned(),
        };
        let after = if before.is_empty() { "" } else { "]" };
        if self.links == 0 && is_followed(&target) {
            self.links += 1;
            let href = escape(&target);
            push(
                self.html,
                format_args!("<a href=\"{href}\" rel=\"noreferrer noopener\" target=\"_blank\">{before}"),
            );
            return format!("{after}</a>");
        }
        self.html.push_str(before);
        match target.is_empty() {
            true => after.to_owned(),
            false => format!("{after} ({})", escape(&target)),
        }
    }
}

/// Whether a link leads to another site or to a mailbox, so that it can't run anything.
fn is_followed(target: &str) -> bool {
    let is_plain = !target.chars().any(|letter| letter.is_control() || letter.is_whitespace());
    // A browser takes `http:path` on a page of the same scheme for a path on this server.
    let begins_with =
        |start: &str| target.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    is_plain && ["http://", "https://", "mailto:"].into_iter().any(begins_with)
}

/// The page has the headings above these.
fn heading_tags(level: HeadingLevel) -> (&'static str, &'static str) {
    match level {
        HeadingLevel::H1 => ("<h3 dir=\"auto\">", "</h3>\n"),
        HeadingLevel::H2 => ("<h4 dir=\"auto\">", "</h4>\n"),
        HeadingLevel::H3 => ("<h5 dir=\"auto\">", "</h5>\n"),
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => ("<h6 dir=\"auto\">", "</h6>\n"),
    }
}
