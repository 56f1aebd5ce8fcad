//! Tables of a page as Markdown: one line a row, with all cells in their order.
//!
//! The columns are not aligned. That would cost the model tokens, and a page with one long cell and many short rows would fill the
//! memory with blanks.

use std::rc::Rc;

use htmd::element_handler::{HandlerResult, Handlers};
use htmd::{Element, Node};

use super::page::tag_of;

/// Converts a table that has headers. One without any only arranges the page, and one inside of a cell can't be a table in Markdown.
#[expect(clippy::needless_pass_by_value, reason = "the converter hands elements over like this")]
pub(super) fn convert_table(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let (captions, rows) = parts_of(element.node);
    let is_header = |cell: &Rc<Node>| tag_of(cell) == Some("th");
    let has_headers = rows.iter().any(|row| row.is_of_head || row.cells.iter().any(is_header));
    if !has_headers || is_inside_cell(element.node) {
        return Some(handlers.walk_children(element.node));
    }
    let text_of = |node: &Rc<Node>| {
        let content = handlers.handle(node).map(|result| result.content).unwrap_or_default();
        content.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let columns = rows.iter().map(|row| row.cells.len()).max().unwrap_or_default();
    let mut markdown = "\n\n".to_owned();
    for caption in captions {
        markdown += &text_of(&caption);
        markdown.push('\n');
    }
    for (index, row) in rows.iter().enumerate() {
        for cell in &row.cells {
            markdown += "| ";
            markdown += &text_of(cell).replace('|', "\\|");
            markdown.push(' ');
        }
        // The first row and the line below it say how many columns there are.
        if index == 0 {
            markdown += &"| ".repeat(columns - row.cells.len());
        }
        markdown += "|\n";
        if index == 0 {
            markdown += &"| --- ".repeat(columns);
            markdown += "|\n";
        }
    }
    markdown.push('\n');
    Some(markdown.into())
}

struct TableRow {
    /// It stands in `<thead>`.
    is_of_head: bool,
    cells: Vec<Rc<Node>>,
}

/// The captions of a table, and its rows that have cells.
fn parts_of(table: &Rc<Node>) -> (Vec<Rc<Node>>, Vec<TableRow>) {
    let (mut captions, mut rows) = (Vec::new(), Vec::new());
    for part in table.children.borrow().iter() {
        match tag_of(part) {
            Some("caption") => captions.push(Rc::clone(part)),
            Some("tr") => rows.extend(row_of(part, false)),
            Some(tag @ ("thead" | "tbody" | "tfoot")) => {
                let is_of_head = tag == "thead";
                let of_part = part.children.borrow();
                rows.extend(of_part.iter().filter_map(|row| row_of(row, is_of_head)));
            }
            _ => {}
        }
    }
    (captions, rows)
}

fn row_of(row: &Rc<Node>, is_of_head: bool) -> Option<TableRow> {
    let is_cell = |node: &&Rc<Node>| matches!(tag_of(node), Some("td" | "th"));
    let children = row.children.borrow();
    let cells: Vec<Rc<Node>> = children.iter().filter(is_cell).cloned().collect();
    (tag_of(row) == Some("tr") && !cells.is_empty()).then_some(TableRow { is_of_head, cells })
}

fn is_inside_cell(node: &Rc<Node>) -> bool {
    let parent_of = |node: &Rc<Node>| {
        let parent = node.parent.take();
        node.parent.set(parent.clone());
        parent.and_then(|parent| parent.upgrade())
    };
    std::iter::successors(parent_of(node), parent_of).any(|above| matches!(tag_of(&above), Some("td" | "th")))
}
