//! Block structure, line by line: quotes and lists are containers, and hold paragraphs, tables and code.

use crate::style::Span;

use super::MAX_OPEN_BYTES;
use super::lines::{
    Fence, ListMarker, expand_tabs, indent, is_blank, is_heading, is_rule, is_setext_underline,
    is_table_delimiter, parse_list_marker, starts_block, strip_quote, strip_task_box,
};

/// Deeper nesting is taken for text: no terminal has room for it.
const MAX_NESTING: usize = 12;

/// How a pushed text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    Newline,
    /// The line is too long, and goes on.
    Cut,
}

/// A part of a block that can't change any more and is finished to render.
#[derive(Debug, Clone)]
pub(crate) struct BlockPart {
    pub(crate) prefixes: Prefixes,
    pub(crate) content: PartContent,
}

#[derive(Debug, Clone)]
pub(crate) enum PartContent {
    /// A paragraph, a heading, a table, or HTML.
    Text(String),
    /// The rest of a paragraph that was split because of its length. It starts no block, whatever it looks like.
    Continuation(String),
    /// More rows of a table that was split. The source repeats the head, which was rendered before.
    TableContinuation(String),
    /// A part of a line that is too long to be parsed as a whole.
    LongLine(String),
    Rule,
    CodeStart {
        language: String,
    },
    Code(String),
}

/// A quote or a list item around a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerMark {
    /// Counts the containers of a text.
    pub(crate) id: u64,
    pub(crate) kind: ContainerKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContainerKind {
    Quote,
    Item {
        /// The items of a list have the same number here: the `id` of the first one.
        list: u64,
        /// None in a list without numbers.
        number: Option<u64>,
        /// None if the item is no task.
        is_done: Option<bool>,
    },
}

impl ContainerMark {
    /// The list that it is an item of.
    pub(crate) fn list(&self) -> Option<u64> {
        match self.kind {
            ContainerKind::Quote => None,
            ContainerKind::Item { list, .. } => Some(list),
        }
    }
}

/// What stands before the rows of a block: list marks, quote bars, indentation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefixes {
    /// The outermost first.
    pub(crate) containers: Vec<ContainerMark>,
    /// Set if a blank row comes first: the prefix of that row.
    pub(super) gap: Option<Vec<Span>>,
    pub(super) first: Vec<Span>,
    pub(super) others: Vec<Span>,
}

impl Prefixes {
    fn for_continuation(&self) -> Self {
        Self { gap: None, first: self.others.clone(), ..self.clone() }
    }
}

#[derive(Debug, Clone)]
struct Container {
    id: u64,
    /// None for a quote.
    item: Option<ListItem>,
    /// Its mark was rendered with a block inside it.
    is_used: bool,
}

#[derive(Debug, Clone)]
struct ListItem {
    list: char,
    /// The container with the first item of the list.
    list_id: u64,
    is_done: Option<bool>,
    number: Option<u64>,
    mark: String,
    indent: usize,
    content_indent: usize,
    /// The list has an item before this one.
    follows_item: bool,
}

impl Container {
    fn mark(&self) -> ContainerMark {
        let kind = match &self.item {
            None => ContainerKind::Quote,
            Some(ListItem { list_id, number, is_done, .. }) => {
                ContainerKind::Item { list: *list_id, number: *number, is_done: *is_done }
            }
        };
        ContainerMark { id: self.id, kind }
    }

    /// The rest of a line behind this container's indentation or mark, if the line belongs to it.
    fn strip_container<'a>(&self, line: &'a str) -> Option<&'a str> {
        let Some(item) = &self.item else { return strip_quote(line) };
        let indent = indent(line);
        // Models often indent nested lists less than CommonMark asks for.
        let is_nested = || indent >= item.indent + 2 && parse_list_marker(line).is_some();
        match indent >= item.content_indent || is_blank(line) || is_nested() {
            true => Some(&line[indent.min(item.content_indent)..]),
            false => None,
        }
    }
}

/// The block that is still open.
#[derive(Debug, Clone, Default)]
enum Leaf {
    #[default]
    None,
    Text(TextLeaf),
    Code {
        /// None for indented code.
        fence: Option<Fence>,
        /// Blank lines after indented code. They belong to it if more code follows.
        blanks: usize,
        prefixes: Prefixes,
    },
}

/// A paragraph or a table.
#[derive(Debug, Clone)]
struct TextLeaf {
    source: String,
    prefixes: Prefixes,
    /// The length of a table's head and the line below it; 0 for a paragraph.
    table_head: usize,
    is_continuation: bool,
}

impl TextLeaf {
    /// What follows where the block is split because of its length. A table repeats its head.
    fn continuation(&self) -> Self {
        Self {
            source: self.source[..self.table_head].to_owned(),
            prefixes: self.prefixes.for_continuation(),
            table_head: self.table_head,
            is_continuation: true,
        }
    }

    fn into_part(self) -> BlockPart {
        let content = match (self.is_continuation, self.table_head) {
            (false, _) => PartContent::Text(self.source),
            (true, 0) => PartContent::Continuation(self.source),
            (true, _) => PartContent::TableContinuation(self.source),
        };
        BlockPart { prefixes: self.prefixes, content }
    }
}

/// Parses a text line by line.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockParser {
    containers: Vec<Container>,
    leaf: Leaf,
    /// A blank line followed the last block.
    is_after_blank: bool,
    /// The last pushed text was only a part of its line.
    is_cut: bool,
    last_container: u64,
    finished: Vec<BlockPart>,
}

impl BlockParser {
    /// Finished parts, each returned once.
    pub(super) fn take_finished(&mut self) -> Vec<BlockPart> {
        std::mem::take(&mut self.finished)
    }

    /// A copy without the finished parts, to see how the open block would end.
    pub(super) fn clone_unfinished(&self) -> Self {
        Self { finished: Vec::new(), ..self.clone() }
    }

    /// The next line, or a part of one that is too long.
    pub(super) fn push_line(&mut self, text: &str, end: LineEnd) {
        let was_cut = std::mem::replace(&mut self.is_cut, end == LineEnd::Cut);
        if was_cut {
            return self.push_rest_of_line(text);
        }
        self.parse_line(&expand_tabs(text));
        if self.is_cut && matches!(self.leaf, Leaf::Text(_)) {
            self.end_leaf();
        }
    }

    /// Ends the text.
    pub(super) fn finish(&mut self) {
        self.end_leaf();
        self.leave_containers(0);
    }

    fn push_rest_of_line(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let (prefixes, content) = match &self.leaf {
            Leaf::Code { prefixes, .. } => (prefixes.for_continuation(), PartContent::Code(text.to_owned())),
            _ => (self.next_prefixes().for_continuation(), PartContent::LongLine(text.to_owned())),
        };
        self.finished.push(BlockPart { prefixes, content });
    }

    fn parse_line(&mut self, line: &str) {
        let (mut rest, mut inside) = (line, 0);
        for container in &self.containers {
            let Some(content) = container.strip_container(rest) else { break };
            (rest, inside) = (content, inside + 1);
        }
        let is_inside = inside == self.containers.len();
        if is_inside && self.push_code_line(rest) {
            return;
        }
        if is_blank(rest) {
            self.end_leaf();
            self.leave_containers(inside);
            self.is_after_blank = true;
            return;
        }
        let failing = self.containers.get(inside).and_then(|container| container.item.as_ref());
        let mut sibling = failing.map(|item| (item.list, item.number, item.list_id));
        if !is_inside {
            let is_item = sibling.is_some() && parse_list_marker(rest).is_some();
            if self.is_in_paragraph() && !is_item && !starts_block(rest) {
                return self.push_text_line(rest);
            }
            self.end_leaf();
            self.leave_containers(inside);
        }
        while let Some(content) = self.enter_container(rest, sibling.take()) {
            rest = content;
        }
        if !is_blank(rest) {
            self.start_leaf(rest);
        }
    }

    fn is_in_paragraph(&self) -> bool {
        matches!(&self.leaf, Leaf::Text(text) if text.table_head == 0)
    }

    /// Takes the line as code if a code block is open. True if it was taken, also as the closing fence.
    fn push_code_line(&mut self, line: &str) -> bool {
        let Leaf::Code { fence, blanks, prefixes } = &mut self.leaf else { return false };
        let content = match fence {
            Some(fence) if fence.is_closed_by(line) => {
                self.leaf = Leaf::None;
                return true;
            }
            Some(fence) => fence.content(line),
            None if is_blank(line) => {
                *blanks += 1;
                return true;
            }
            None if indent(line) >= 4 => &line[4..],
            None => return false,
        };
        let prefixes = prefixes.for_continuation();
        for line in std::iter::repeat_n("", std::mem::take(blanks)).chain([content]) {
            let content = PartContent::Code(line.to_owned());
            self.finished.push(BlockPart { prefixes: prefixes.clone(), content });
        }
        true
    }

    /// Enters a quote or a list item that begins with this line, and returns the rest of the line.
    fn enter_container<'a>(
        &mut self,
        line: &'a str,
        sibling: Option<(char, Option<u64>, u64)>,
    ) -> Option<&'a str> {
        if self.containers.len() >= MAX_NESTING {
            return None;
        }
        if let Some(content) = strip_quote(line) {
            self.end_leaf();
            self.last_container += 1;
            self.containers.push(Container { id: self.last_container, item: None, is_used: false });
            return Some(content);
        }
        let is_in_paragraph = self.is_in_paragraph();
        let found = parse_list_marker(line)
            .filter(|found| found.indent < 4 && (!is_in_paragraph || found.interrupts()))?;
        self.end_leaf();
        self.last_container += 1;
        let id = self.last_container;
        let sibling = sibling.filter(|(list, ..)| *list == found.list);
        let (mut item, content) = list_item(&found, sibling.map(|(_, number, _)| number));
        item.list_id = sibling.map_or(id, |(.., list_id)| list_id);
        self.containers.push(Container { id, item: Some(item), is_used: false });
        Some(content)
    }

    /// Ends all containers except the first `stay`.
    fn leave_containers(&mut self, stay: usize) {
        if self.containers.iter().skip(stay).any(|container| !container.is_used) {
            // An empty item still shows its mark.
            let prefixes = self.next_prefixes();
            self.finished.push(BlockPart { prefixes, content: PartContent::Text(String::new()) });
        }
        self.containers.truncate(stay);
    }

    /// Takes a line that is not blank, after its containers were entered.
    fn start_leaf(&mut self, line: &str) {
        let is_in_paragraph = self.is_in_paragraph();
        if is_in_paragraph && is_setext_underline(line) {
            self.push_text_line(line);
            self.end_leaf();
        } else if is_rule(line) {
            self.end_leaf();
            let prefixes = self.next_prefixes();
            self.finished.push(BlockPart { prefixes, content: PartContent::Rule });
        } else if is_heading(line) {
            self.end_leaf();
            self.push_text_line(line);
            self.end_leaf();
        } else if let Some(fence) = Fence::parse(line) {
            self.start_code(Some(fence));
        } else if !is_in_paragraph && indent(line) >= 4 {
            self.start_code(None);
            self.push_code_line(line);
        } else if !self.start_table(line) {
            self.push_text_line(line);
        }
    }

    fn start_code(&mut self, fence: Option<Fence>) {
        self.end_leaf();
        let prefixes = self.next_prefixes();
        let language = fence.as_ref().map(|fence| fence.language.clone()).unwrap_or_default();
        let content = PartContent::CodeStart { language };
        self.finished.push(BlockPart { prefixes: prefixes.clone(), content });
        self.leaf = Leaf::Code { fence, blanks: 0, prefixes };
    }

    /// Adds a line to the open paragraph or table, or opens a paragraph.
    fn push_text_line(&mut self, line: &str) {
        let line = line.trim_start_matches(' ');
        let mut text = match std::mem::take(&mut self.leaf) {
            Leaf::Text(text) if text.table_head == 0 || line.contains('|') => text,
            other => {
                self.leaf = other;
                self.end_leaf();
                let prefixes = self.next_prefixes();
                TextLeaf { source: String::new(), prefixes, table_head: 0, is_continuation: false }
            }
        };
        if text.source.len() + line.len() > MAX_OPEN_BYTES + text.table_head && !text.source.is_empty() {
            let continuation = text.continuation();
            self.finished.push(text.into_part());
            text = continuation;
        }
        text.source.push_str(line);
        text.source.push('\n');
        self.leaf = Leaf::Text(text);
    }

    /// Starts a table if this line is a delimiter and the last line of the paragraph is its head.
    fn start_table(&mut self, line: &str) -> bool {
        let Leaf::Text(paragraph) = &mut self.leaf else { return false };
        let text = paragraph.source.trim_end_matches('\n');
        let at = text.rfind('\n').map_or(0, |at| at + 1);
        if paragraph.table_head > 0 || !is_table_delimiter(line) || !text[at..].contains('|') {
            return false;
        }
        let source = format!("{}{}\n", paragraph.source.split_off(at), line.trim());
        let prefixes = match at {
            0 => paragraph.prefixes.clone(),
            _ => {
                self.end_leaf();
                self.next_prefixes()
            }
        };
        let table_head = source.len();
        self.leaf = Leaf::Text(TextLeaf { source, prefixes, table_head, is_continuation: false });
        true
    }

    fn end_leaf(&mut self) {
        match std::mem::take(&mut self.leaf) {
            Leaf::Text(text) => self.finished.push(text.into_part()),
            Leaf::Code { blanks, .. } => self.is_after_blank |= blanks > 0,
            Leaf::None => {}
        }
    }

    /// The prefixes of a block that begins here. They include the marks of containers that were not shown yet.
    fn next_prefixes(&mut self) -> Prefixes {
        let mut prefixes = Prefixes { gap: self.has_gap().then(Vec::new), ..Prefixes::default() };
        for container in &mut self.containers {
            let (first, others) = match &container.item {
                None => (Span::dim("▌ "), Span::dim("▌ ")),
                Some(item) => {
                    let blank = Span::raw(" ".repeat(item.mark.chars().count()));
                    let mark = Span::raw(item.mark.clone());
                    (if container.is_used { blank.clone() } else { mark }, blank)
                }
            };
            if let Some(gap) = prefixes.gap.as_mut().filter(|_| container.is_used) {
                gap.push(others.clone());
            }
            prefixes.first.push(first);
            prefixes.others.push(others);
            prefixes.containers.push(container.mark());
            container.is_used = true;
        }
        self.is_after_blank = false;
        prefixes
    }

    /// A blank row separates blocks; inside lists only where the source has one.
    fn has_gap(&self) -> bool {
        let is_in_item =
            self.containers.iter().any(|container| container.is_used && container.item.is_some());
        let new = self.containers.iter().find(|container| !container.is_used);
        let follows_item = new.and_then(|new| new.item.as_ref()).is_some_and(|item| item.follows_item);
        self.is_after_blank || !(is_in_item || follows_item)
    }
}

/// A new list item and the rest of its line. `before` is the number of the item before it in the same list.
fn list_item<'a>(found: &ListMarker<'a>, before: Option<Option<u64>>) -> (ListItem, &'a str) {
    let number = match before {
        Some(Some(before)) => Some(before.saturating_add(1)),
        _ => found.number,
    };
    let mut mark = number.map_or_else(|| "• ".to_owned(), |number| format!("{number}. "));
    let mut content = found.content;
    let task = strip_task_box(content);
    if let Some((is_done, rest)) = task {
        let tick = if is_done { "☑ " } else { "☐ " };
        mark = number.map_or_else(|| tick.to_owned(), |number| format!("{number}. {tick}"));
        content = rest;
    }
    let item = ListItem {
        list: found.list,
        list_id: 0,
        is_done: task.map(|(is_done, _)| is_done),
        number,
        mark,
        indent: found.indent,
        content_indent: found.content_indent,
        follows_item: before.is_some(),
    };
    (item, content)
}
