//! A page as text for the model: HTML becomes Markdown, other text stays as it is.

use std::rc::Rc;
use std::time::Duration;

use encoding_rs::Encoding;
use htmd::{HtmlToMarkdown, Node};
use html5ever::tendril::StrTendril;
use markup5ever_rcdom::NodeData;
use reqwest::Url;

use super::WebResponse;
use super::page_table::convert_table;
use super::page_tree::{ParsedPage, parse_page};

/// Elements below this depth are left out, because the conversion goes down into the page by recursion. Real pages have 30 levels.
const MAX_DEPTH: usize = 200;
/// For that depth, also in a build without optimisation.
const CONVERSION_STACK_BYTES: usize = 32 << 20;
/// How long the parser may take.
const PARSE_TIME: Duration = Duration::from_secs(5);
/// Bytes of all links after they were made absolute: a short page can have a long base.
const MAX_LINK_BYTES: usize = 32 << 20;
/// Bytes with which all lines in lists and quotations are indented, at most.
const MAX_INDENT_BYTES: usize = 64 << 20;
/// What a list or a quotation indents its lines by, at most.
const INDENT_BYTES: usize = 10;
/// A list that begins with a number of more digits begins with 1.
const MAX_LIST_START_DIGITS: usize = 4;
/// The conversion joins neighbours such as `<b>a</b><b>b</b>`, each time with all that follows, so only among so many children.
const MAX_JOINED_CHILDREN: usize = 200;
/// Where a page that names its charset itself does so.
const MAX_CHARSET_OFFSET: usize = 1_024;
const MAX_TITLE_CHARS: usize = 200;

/// Elements that hold nothing to read, or lead elsewhere.
const SKIPPED_TAGS: [&str; 18] = [
    "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "nav", "footer",
    "dialog", "button", "input", "select", "textarea", "head", "audio",
];

/// What a page says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PageText {
    /// On one line; empty if there is none.
    pub(super) title: String,
    pub(super) text: String,
}

/// Reads the text of a response. The error says what it is instead.
pub(super) fn page_text(response: &WebResponse) -> Result<PageText, String> {
    let media = response.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let bytes = response.body.len();
    match PageFormat::of(&media, &response.body) {
        PageFormat::Html => {
            let (html, base) = (decode_text(response), response.url.clone());
            Ok(convert_on_own_stack(html, base))
        }
        PageFormat::Text => Ok(PageText { title: String::new(), text: decode_text(response) }),
        PageFormat::Image => Err(format!(
            "it is an image ({media}, {bytes} bytes), not a page; to look at it, save it with a command and read the file"
        )),
        PageFormat::Binary => {
            let media = if media.is_empty() { "binary data" } else { &media };
            Err(format!("it is {media} ({bytes} bytes), not text; to use it, save it with a command"))
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageFormat {
    Html,
    Text,
    Image,
    Binary,
}

impl PageFormat {
    fn of(media: &str, body: &[u8]) -> Self {
        let is_text = |media: &str| {
            let (kind, form) = media.split_once('/').unwrap_or_default();
            let forms = [
                "json",
                "xml",
                "javascript",
                "yaml",
                "toml",
                "x-sh",
                "x-yaml",
                "x-ndjson",
                "jsonl",
                "graphql",
            ];
            kind == "text" || forms.contains(&form) || form.ends_with("+json") || form.ends_with("+xml")
        };
        match media {
            "text/html" | "application/xhtml+xml" => Self::Html,
            "image/svg+xml" => Self::Text,
            media if media.starts_with("image/") => Self::Image,
            media if is_text(media) => Self::Text,
            // Servers say this of everything that they don't know.
            "" | "application/octet-stream" | "application/unknown" => Self::sniff(body),
            _ => Self::Binary,
        }
    }

    fn sniff(body: &[u8]) -> Self {
        let start = &body[..body.len().min(8 << 10)];
        let word = String::from_utf8_lossy(start).trim_start().to_ascii_lowercase();
        match () {
            () if start.contains(&0)
                || std::str::from_utf8(start).is_err_and(|error| error.error_len().is_some()) =>
            {
                Self::Binary
            }
            () if word.starts_with("<!doctype html") || word.starts_with("<html") => Self::Html,
            () => Self::Text,
        }
    }
}

/// The text of a body, by the charset that the byte order mark, the header or the page names; else as UTF-8.
fn decode_text(response: &WebResponse) -> String {
    let body = &response.body;
    let header = charset_in(&response.content_type);
    let start = String::from_utf8_lossy(&body[..body.len().min(MAX_CHARSET_OFFSET)]);
    let in_page = || {
        // Plain text may speak of charsets, and a page whose letters are single bytes can't be in UTF-16.
        let is_markup = start.trim_start_matches('\u{feff}').trim_start().starts_with('<');
        charset_in(&start).filter(|encoding| is_markup && encoding.output_encoding() == *encoding)
    };
    let encoding = header.or_else(in_page).unwrap_or(encoding_rs::UTF_8);
    encoding.decode(body).0.into_owned()
}

/// The charset behind `charset=` or an XML declaration's `encoding=`.
fn charset_in(text: &str) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let label = |key: &str| {
        let value = lower.split(key).nth(1)?.trim_start_matches(['"', '\'', ' ']);
        Encoding::for_label(value.split(['"', '\'', ';', ' ', '>', '/', '?']).next()?.as_bytes())
    };
    label("charset=").or_else(|| lower.starts_with("<?xml").then(|| label("encoding="))?)
}

/// Converts a page on a thread with enough stack for it.
fn convert_on_own_stack(html: String, base: Url) -> PageText {
    let thread = std::thread::Builder::new().name("web-page".to_owned()).stack_size(CONVERSION_STACK_BYTES);
    let converted =
        thread.spawn(move || convert_html(&html, &base, PARSE_TIME)).map(std::thread::JoinHandle::join);
    match converted {
        Ok(Ok(page)) => page,
        // The system has no thread left, or the converter panicked.
        _ => PageText { title: String::new(), text: "[this page could not be converted]".to_owned() },
    }
}

fn convert_html(html: &str, base: &Url, parse_time: Duration) -> PageText {
    let converter = HtmlToMarkdown::builder()
        .skip_tags(SKIPPED_TAGS.to_vec())
        .add_handler(vec!["table"], convert_table)
        .build();
    let ParsedPage { document, unparsed } = parse_page(html, parse_time);
    let survey = prepare_tree(&document, base);
    let main = survey.main.as_ref().unwrap_or(&document);
    let mut text = converter.tree_to_markdown(main);
    // A page whose main part is empty until a script fills it still has the rest.
    if text.trim().is_empty() && survey.main.is_some() {
        text = converter.tree_to_markdown(&document);
    }
    if survey.is_too_deep {
        text.push_str(&format!("\n\n[what is nested more than {MAX_DEPTH} elements deep is left out]"));
    }
    if survey.has_bare_links {
        text.push_str(
            "\n\n[its last links have no addresses here, because those of the others are too long]",
        );
    }
    if survey.is_cut {
        text.push_str("\n\n[the rest is left out, because its lists are nested too deep]");
    }
    if unparsed > 0 {
        text.push_str(&format!(
            "\n\n[its last {unparsed} bytes are left out, because the page is too complex]"
        ));
    }
    PageText { title: survey.title, text }
}

/// What was found in the tree of a page.
#[derive(Default)]
struct PageSurvey {
    title: String,
    /// Its main part, if it names one.
    main: Option<Rc<Node>>,
    is_too_deep: bool,
    /// Its end is left out, because it would be indented by too much.
    is_cut: bool,
    /// Its last links lost their addresses, because all together would be too long.
    has_bare_links: bool,
}

/// Makes links absolute, removes what is hidden, too deep or indented by too much, and finds title and main part. Without recursion: a page
/// may be nested as deep as it is long.
fn prepare_tree(document: &Rc<Node>, url: &Url) -> PageSurvey {
    let mut survey = PageSurvey::default();
    let (mut mains, mut articles) = (Vec::new(), Vec::new());
    let mut base = url.clone();
    let (mut link_bytes_left, mut indent_bytes_left) = (MAX_LINK_BYTES, MAX_INDENT_BYTES);
    let mut waiting = vec![(Rc::clone(document), 0, 0)];
    while let Some((node, depth, mut indent)) = waiting.pop() {
        node.children.borrow_mut().retain(|child| !is_hidden(child));
        if depth >= MAX_DEPTH && !node.children.borrow().is_empty() {
            survey.is_too_deep = true;
            node.children.borrow_mut().clear();
        }
        indent_bytes_left = indent_bytes_left.saturating_sub(lines_of(&node) * indent);
        if indent_bytes_left == 0 {
            survey.is_cut = true;
            empty_node(&node);
        }
        keep_apart(&node);
        match tag_of(&node) {
            Some("base") => {
                let found = attribute(&node, "href").and_then(|href| url.join(&href).ok());
                base = found.unwrap_or(base);
            }
            Some("li" | "blockquote") => indent += INDENT_BYTES,
            Some("ol") => limit_list_start(&node),
            Some("title") if survey.title.is_empty() => survey.title = title_text(&node),
            Some("main") => mains.push(Rc::clone(&node)),
            Some("article") => articles.push(Rc::clone(&node)),
            Some(_) if attribute(&node, "role").as_deref() == Some("main") => mains.push(Rc::clone(&node)),
            _ => {}
        }
        make_links_absolute(&node, &base, &mut link_bytes_left);
        // The first child is the next one, so that <base> counts for what follows it.
        let children = node.children.borrow();
        waiting.extend(children.iter().rev().map(|child| (Rc::clone(child), depth + 1, indent)));
    }
    let only = |mut nodes: Vec<Rc<Node>>| if nodes.len() == 1 { nodes.pop() } else { None };
    survey.main = only(mains).or_else(|| only(articles));
    survey.has_bare_links = link_bytes_left == 0;
    survey
}

/// The lines that a node adds to those of its children, at most.
fn lines_of(node: &Node) -> usize {
    match &node.data {
        NodeData::Text { contents } => contents.borrow().bytes().filter(|byte| *byte == b'\n').count(),
        NodeData::Element { .. } => 2,
        _ => 0,
    }
}

fn empty_node(node: &Node) {
    node.children.borrow_mut().clear();
    if let NodeData::Text { contents } = &node.data {
        contents.take();
    }
}

/// Puts a node without content between the elements of a node that has too many of them to be joined.
fn keep_apart(node: &Node) {
    let mut children = node.children.borrow_mut();
    if children.len() > MAX_JOINED_CHILDREN {
        let separator = || Node::new(NodeData::Comment { contents: StrTendril::new() });
        *children = children.drain(..).flat_map(|child| [child, separator()]).collect();
    }
}

/// Each line of a list is indented by as much as its highest number has digits.
fn limit_list_start(list: &Node) {
    let NodeData::Element { attrs, .. } = &list.data else { return };
    let is_usual = |value: &str| value.len() <= MAX_LIST_START_DIGITS;
    attrs.borrow_mut().retain(|attribute| &*attribute.name.local != "start" || is_usual(&attribute.value));
}

pub(super) fn tag_of(node: &Node) -> Option<&str> {
    match &node.data {
        NodeData::Element { name, .. } => Some(&name.local),
        _ => None,
    }
}

fn attribute(node: &Node, name: &str) -> Option<String> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    let attributes = attrs.borrow();
    let found = attributes.iter().find(|attribute| &*attribute.name.local == name);
    found.map(|attribute| attribute.value.to_string())
}

/// Whether a person who looks at the page would not see it.
fn is_hidden(node: &Node) -> bool {
    let style = || attribute(node, "style").unwrap_or_default().replace(' ', "").to_ascii_lowercase();
    tag_of(node).is_some()
        && (attribute(node, "hidden").is_some()
            || attribute(node, "aria-hidden").as_deref() == Some("true")
            || style().contains("display:none")
            || style().contains("visibility:hidden"))
}

/// Links that the model can fetch. Others, such as images inside of the page, lose their address.
fn make_links_absolute(node: &Node, base: &Url, bytes_left: &mut usize) {
    let NodeData::Element { attrs, .. } = &node.data else { return };
    attrs.borrow_mut().retain_mut(|attribute| {
        if !matches!(&*attribute.name.local, "href" | "src") {
            return true;
        }
        if *bytes_left == 0 {
            return false;
        }
        match base.join(&attribute.value) {
            Ok(url) if matches!(url.scheme(), "http" | "https" | "mailto") => {
                *bytes_left = bytes_left.saturating_sub(url.as_str().len());
                attribute.value = url.as_str().into();
                true
            }
            _ => false,
        }
    });
}

fn title_text(node: &Node) -> String {
    let mut title = String::new();
    for child in node.children.borrow().iter() {
        if let NodeData::Text { contents } = &child.data {
            title.push_str(&contents.borrow());
        }
    }
    let words: Vec<&str> = title.split_whitespace().collect();
    words.join(" ").chars().take(MAX_TITLE_CHARS).collect()
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
