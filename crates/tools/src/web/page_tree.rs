//! The tree of a page, within bounds.
//!
//! Some pages make their parser do far more than they are long: formatting that is never closed is copied into every paragraph that
//! follows, with all its attributes, and with each element the parser looks through all that are open around it. So the tree has a size, and
//! the parser has a time.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use htmd::Node;
use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, parse_document};
use markup5ever_rcdom::RcDom;

/// Bytes of a tree, about: enough for an element in every 16 bytes of the longest page.
const MAX_TREE_BYTES: usize = 128 << 20;
/// What an element takes beside its attributes.
const ELEMENT_BYTES: usize = 256;
/// Attributes of an element. Further ones are left out.
const MAX_ATTRIBUTES: usize = 32;
/// Bytes that the parser gets before the bounds are looked at.
const PARSED_PART_BYTES: usize = 256;

/// A page that was parsed as far as its bounds go.
pub(super) struct ParsedPage {
    pub(super) document: Rc<Node>,
    /// Bytes at the end that were not parsed.
    pub(super) unparsed: usize,
}

/// Parses a page as far as this time and the size of the tree go.
pub(super) fn parse_page(html: &str, time: Duration) -> ParsedPage {
    let dom = BoundedDom { dom: RcDom::default(), bytes_left: Cell::new(MAX_TREE_BYTES) };
    let mut parser = parse_document(dom, ParseOpts::default());
    let (deadline, mut rest) = (Instant::now() + time, html);
    while !rest.is_empty() && Instant::now() < deadline && !parser.tokenizer.sink.sink.is_full() {
        let (part, after) = rest.split_at(rest.floor_char_boundary(PARSED_PART_BYTES));
        parser.process(part.into());
        rest = after;
    }
    ParsedPage { document: parser.finish(), unparsed: rest.len() }
}

/// A tree that takes no more nodes once it is full. Nodes that the parser makes after that stay outside of it, and are freed.
struct BoundedDom {
    dom: RcDom,
    bytes_left: Cell<usize>,
}

impl BoundedDom {
    fn is_full(&self) -> bool {
        self.bytes_left.get() == 0
    }

    fn count(&self, bytes: usize) {
        self.bytes_left.set(self.bytes_left.get().saturating_sub(bytes));
    }
}

impl TreeSink for BoundedDom {
    type Handle = Rc<Node>;
    type Output = Rc<Node>;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Rc<Node> {
        self.dom.document
    }

    /// They would be kept.
    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Rc<Node> {
        self.dom.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Rc<Node>) -> ExpandedName<'a> {
        self.dom.elem_name(target)
    }

    fn create_element(&self, name: QualName, mut attrs: Vec<Attribute>, flags: ElementFlags) -> Rc<Node> {
        attrs.truncate(MAX_ATTRIBUTES);
        let attribute_bytes: usize = attrs.iter().map(|attribute| attribute.value.len()).sum();
        self.count(ELEMENT_BYTES + attribute_bytes);
        self.dom.create_element(name, attrs, flags)
    }

    fn create_comment(&self, _: StrTendril) -> Rc<Node> {
        self.count(ELEMENT_BYTES);
        self.dom.create_comment(StrTendril::new())
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Rc<Node> {
        self.create_comment(StrTendril::new())
    }

    fn append(&self, parent: &Rc<Node>, child: NodeOrText<Rc<Node>>) {
        if !self.is_full() {
            self.dom.append(parent, child);
        }
    }

    fn append_based_on_parent_node(
        &self,
        element: &Rc<Node>,
        prev_element: &Rc<Node>,
        child: NodeOrText<Rc<Node>>,
    ) {
        if !self.is_full() {
            self.dom.append_based_on_parent_node(element, prev_element, child);
        }
    }

    fn append_doctype_to_document(&self, name: StrTendril, public_id: StrTendril, system_id: StrTendril) {
        self.dom.append_doctype_to_document(name, public_id, system_id);
    }

    fn get_template_contents(&self, target: &Rc<Node>) -> Rc<Node> {
        self.dom.get_template_contents(target)
    }

    fn same_node(&self, one: &Rc<Node>, other: &Rc<Node>) -> bool {
        self.dom.same_node(one, other)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.dom.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &Rc<Node>, new_node: NodeOrText<Rc<Node>>) {
        if !self.is_full() {
            self.dom.append_before_sibling(sibling, new_node);
        }
    }

    /// Of a second `<html>` or `<body>`, where nothing is read from.
    fn add_attrs_if_missing(&self, _: &Rc<Node>, _: Vec<Attribute>) {}

    fn remove_from_parent(&self, target: &Rc<Node>) {
        if !self.is_full() {
            self.dom.remove_from_parent(target);
        }
    }

    fn reparent_children(&self, node: &Rc<Node>, new_parent: &Rc<Node>) {
        if !self.is_full() {
            self.dom.reparent_children(node, new_parent);
        }
    }

    fn is_mathml_annotation_xml_integration_point(&self, target: &Rc<Node>) -> bool {
        self.dom.is_mathml_annotation_xml_integration_point(target)
    }
}
