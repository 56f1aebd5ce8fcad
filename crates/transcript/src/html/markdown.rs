//! Markdown as HTML, from the same block parser as the terminal's.

use super::fragment::{cut_middle, escape, push, push_line};
use super::inline::push_markdown;
use crate::highlight::Highlighter;
use crate::markdown::{ContainerKind, ContainerMark, PartContent, parse_blocks};
use crate::style::{Color, Span};

/// Bytes of a text that are shown.
const MAX_MARKDOWN_BYTES: usize = 256 << 10;
/// Bytes of code in one text that are highlighted. The rest is plain.
const MAX_HIGHLIGHTED_BYTES: usize = 64 << 10;

/// Bytes of the HTML of one text, and bytes of it for each byte of the text.
const MAX_MARKDOWN_HTML: usize = 900 << 10;
const MAX_EXPANSION: usize = 18;
/// Bytes of a text that are shown without its markup.
const MAX_PLAIN_BYTES: usize = 128 << 10;
/// Cells of all tables of a text, with those that no row has but a parser adds.
const MAX_CELLS: usize = 20_000;

/// Markdown from anywhere as a fragment of HTML without markup from the text. The headings begin with `h3`. A text that would become much
/// larger by its markup is shown as it was written.
pub fn markdown_html(text: &str) -> String {
    let text = cut_middle(text, MAX_MARKDOWN_BYTES);
    render_markdown(&text).unwrap_or_else(|| {
        let mut html = String::new();
        push_line(&mut html, "note", "[too much markup: shown as it was written]");
        let source = escape(&cut_middle(&text, MAX_PLAIN_BYTES));
        push(&mut html, format_args!("<pre class=\"source\" dir=\"auto\">{source}</pre>\n"));
        html
    })
}

/// None if the HTML would be too large.
fn render_markdown(text: &str) -> Option<String> {
    let max_bytes = MAX_MARKDOWN_HTML.min(text.len().saturating_mul(MAX_EXPANSION) + 2_048);
    let (highlight_left, cells_left) = (MAX_HIGHLIGHTED_BYTES, MAX_CELLS);
    let mut html = MarkdownHtml { highlight_left, cells_left, ..MarkdownHtml::default() };
    for part in parse_blocks(text) {
        html.push_part(&part.prefixes.containers, &part.content);
        if html.html.len() > max_bytes || html.cells_left == 0 {
            return None;
        }
    }
    Some(html.finish()).filter(|html| html.len() <= max_bytes)
}

#[derive(Default)]
struct MarkdownHtml {
    html: String,
    /// Quotes and list items that are open, the outermost first.
    open: Vec<ContainerMark>,
    /// The code block that is open.
    code: Option<Highlighter>,
    has_code_lines: bool,
    highlight_left: usize,
    /// Cells that tables may still have. At 0 the HTML is not complete.
    cells_left: usize,
}

impl MarkdownHtml {
    fn push_part(&mut self, containers: &[ContainerMark], content: &PartContent) {
        if let (PartContent::Code(line), true) = (content, self.code.is_some()) {
            return self.push_code_line(line);
        }
        self.end_code();
        self.enter(containers);
        match content {
            // The table of a split table has its head again.
            PartContent::Text(source) | PartContent::TableContinuation(source) => {
                push_markdown(&mut self.html, source, false, &mut self.cells_left);
            }
            PartContent::Continuation(source) => {
                push_markdown(&mut self.html, source, true, &mut self.cells_left);
            }
            PartContent::LongLine(text) => {
                push(&mut self.html, format_args!("<p dir=\"auto\">{}</p>\n", escape(text)));
            }
            PartContent::Rule => self.html.push_str("<hr/>\n"),
            PartContent::CodeStart { language } => self.start_code(language),
            PartContent::Code(line) => {
                self.start_code("");
                self.push_code_line(line);
            }
        }
    }

    fn start_code(&mut self, language: &str) {
        self.html.push_str("<pre class=\"code\" dir=\"auto\"><code>");
        self.code = Some(Highlighter::new(language));
        self.has_code_lines = false;
    }

    fn push_code_line(&mut self, line: &str) {
        if std::mem::replace(&mut self.has_code_lines, true) {
            self.html.push('\n');
        }
        let is_highlighted = line.len() <= self.highlight_left;
        match self.code.as_mut().filter(|_| is_highlighted) {
            Some(highlighter) => {
                self.highlight_left -= line.len();
                for span in highlighter.highlight_line(line) {
                    push_code_span(&mut self.html, &span);
                }
            }
            None => {
                self.highlight_left = 0;
                self.html.push_str(&escape(line));
            }
        }
    }

    fn end_code(&mut self) {
        if self.code.take().is_some() {
            self.html.push_str("</code></pre>\n");
        }
    }

    /// Closes and opens quotes and list items, until these are open.
    fn enter(&mut self, containers: &[ContainerMark]) {
        let is_same = |(one, other): &(&ContainerMark, &ContainerMark)| one.id == other.id;
        let common = self.open.iter().zip(containers).take_while(is_same).count();
        while self.open.len() > common {
            let Some(closed) = self.open.pop() else { break };
            let next = containers.get(common).filter(|_| self.open.len() == common);
            match (closed.list(), next.and_then(ContainerMark::list)) {
                (Some(one), Some(other)) if one == other => self.html.push_str("</li>\n"),
                _ => self.close(&closed),
            }
            if let Some(next) = next.filter(|next| next.list().is_some() && next.list() == closed.list()) {
                self.open_item(next);
                self.open.push(next.clone());
                break;
            }
        }
        for container in &containers[self.open.len().min(containers.len())..] {
            match &container.kind {
                ContainerKind::Quote => self.html.push_str("<blockquote>\n"),
                ContainerKind::Item { number: None, .. } => self.html.push_str("<ul>\n"),
                ContainerKind::Item { number: Some(1), .. } => self.html.push_str("<ol>\n"),
                ContainerKind::Item { number: Some(number), .. } => {
                    push(&mut self.html, format_args!("<ol start=\"{number}\">\n"));
                }
            }
            self.open_item(container);
            self.open.push(container.clone());
        }
    }

    /// The paragraphs in an item have a direction each. The item has none: a browser would look through everything in it, again for each
    /// element inside that has one.
    fn open_item(&mut self, container: &ContainerMark) {
        let ContainerKind::Item { is_done, .. } = &container.kind else { return };
        self.html.push_str(match is_done {
            None => "<li>",
            Some(true) => "<li class=\"done\"><span class=\"state\">done:</span> ",
            Some(false) => "<li class=\"pending\"><span class=\"state\">open:</span> ",
        });
    }

    fn close(&mut self, container: &ContainerMark) {
        self.html.push_str(match &container.kind {
            ContainerKind::Quote => "</blockquote>\n",
            ContainerKind::Item { number: None, .. } => "</li>\n</ul>\n",
            ContainerKind::Item { number: Some(_), .. } => "</li>\n</ol>\n",
        });
    }

    fn finish(mut self) -> String {
        self.end_code();
        self.enter(&[]);
        self.html
    }
}

/// Highlighted code, with the meaning of the colour as class.
fn push_code_span(html: &mut String, span: &Span) {
    let class = match span.style.color {
        Some(Color::Green) => "hl-string",
        Some(Color::Cyan) => "hl-constant",
        Some(Color::Magenta) => "hl-keyword",
        Some(Color::Blue) => "hl-function",
        Some(Color::Yellow) => "hl-type",
        Some(Color::Red) => "hl-deleted",
        None if span.style.dim => "hl-comment",
        None => return html.push_str(&escape(&span.content)),
    };
    push(html, format_args!("<span class=\"{class}\">{}</span>", escape(&span.content)));
}
