//! Histories for the tests of this crate: made by hand, and at random.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use longhaul_protocol::{BlobRef, CallId, Hash, Image, Item, Place, Role};
use proptest::prelude::*;

pub(crate) fn call_id(number: usize) -> CallId {
    CallId::from_bits(number as u128)
}

pub(crate) fn user_item(text: &str) -> Item {
    Item::Text { role: Role::User, text: text.to_owned() }
}

pub(crate) fn answered(text: &str) -> Item {
    Item::Text { role: Role::Assistant, text: text.to_owned() }
}

pub(crate) fn noted(text: &str) -> Item {
    Item::Note { text: text.to_owned() }
}

pub(crate) fn call(number: usize, name: &str, arguments: &str) -> Item {
    let (call, name, arguments) = (call_id(number), name.to_owned(), arguments.to_owned());
    Item::ToolCall { call, wire_id: None, name, arguments, signature: None }
}

pub(crate) fn result(number: usize, content: &str) -> Item {
    Item::ToolResult { call: call_id(number), content: content.to_owned(), images: vec![], is_error: false }
}

pub(crate) fn picture() -> Item {
    let data = BlobRef { hash: Hash::of(b"picture"), bytes: 7, media: "image/png".to_owned() };
    Item::Image(Image { data })
}

pub(crate) fn shared(items: Vec<Item>) -> Vec<Arc<Item>> {
    items.into_iter().map(Arc::new).collect()
}

/// Items with their places.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    pub(crate) items: Vec<Arc<Item>>,
    pub(crate) places: Vec<Place>,
    pub(crate) preface: usize,
}

impl History {
    /// Adds an item of this turn and step.
    pub(crate) fn add(&mut self, turn: u64, step: u64, item: Item) -> &mut Self {
        let seq = self.items.len() as u64 + 10;
        self.items.push(Arc::new(item));
        self.places.push(Place::new(seq, turn, step));
        self
    }

    pub(crate) fn last_turn(&self) -> Option<u64> {
        self.places.last().map(|place| place.turn)
    }
}

/// What T5 asks of a context: each answer's calls are followed directly by their results, in order.
pub(crate) fn breaks_a_rule(items: &[Arc<Item>]) -> Option<String> {
    let mut waiting: VecDeque<CallId> = VecDeque::new();
    let mut settling = false;
    let mut asked = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        match &**item {
            Item::ToolCall { call, .. } => {
                if settling || !asked.insert(*call) {
                    return Some(format!("item {index}: a call between results, or twice"));
                }
                waiting.push_back(*call);
            }
            Item::ToolResult { call, content, .. } => {
                settling = true;
                if waiting.pop_front() != Some(*call) || content.is_empty() {
                    return Some(format!("item {index}: a result without its call, or without content"));
                }
            }
            Item::Text { text, .. } if text.is_empty() => return Some(format!("item {index} is empty")),
            _ if !waiting.is_empty() => {
                return Some(format!("item {index}: {} calls are open", waiting.len()));
            }
            _ => {}
        }
        settling = settling && !waiting.is_empty();
    }
    (!waiting.is_empty()).then(|| "calls are open at the end".to_owned())
}

/// Words of any language, and how often they come: mostly short texts, sometimes very long ones.
pub(crate) fn any_words() -> impl Strategy<Value = String> {
    let often = prop_oneof![6 => 0usize..40, 2 => 40usize..400, 1 => 400usize..6_000];
    let words = prop_oneof![
        4 => Just("word "),
        1 => Just("🦀"),
        1 => Just("ü\n"),
        1 => Just("<<user>>\n"),
        1 => Just("# Goal\n"),
        1 => Just("[runtime note] x\n"),
    ];
    (words, often).prop_map(|(words, often)| words.repeat(often))
}

/// Anything, in any order: what a damaged journal could give.
pub(crate) fn any_item() -> impl Strategy<Value = Item> {
    prop_oneof![
        any_words().prop_map(|text| user_item(&text)),
        any_words().prop_map(|text| answered(&text)),
        any_words().prop_map(|text| noted(&text)),
        any_words().prop_map(|text| Item::Reasoning { text, signature: None }),
        (0usize..6, any_words()).prop_map(|(number, text)| call(number, "exec", &text)),
        (0usize..6, any_words()).prop_map(|(number, text)| result(number, &text)),
        Just(picture()),
    ]
}

/// A history as the records give it: turns of steps, and in each step all calls with all their results.
pub(crate) fn any_history() -> impl Strategy<Value = History> {
    let step = (0usize..3, proptest::collection::vec(any_words(), 4));
    let turn = (any_words(), any::<bool>(), proptest::collection::vec(step, 0..5));
    (0usize..4, proptest::collection::vec(turn, 0..7)).prop_map(|(preface, turns)| {
        let mut history = History { preface, ..History::default() };
        (0..preface).for_each(|_| _ = history.add(0, 0, noted("of the preface")));
        let mut number = 0;
        for (turn, (request, has_picture, steps)) in (1..).zip(turns) {
            history.add(turn, 0, user_item(&request));
            if has_picture {
                history.add(turn, 0, picture());
            }
            for (step, (calls, texts)) in (1..).zip(steps) {
                history.add(turn, step, answered(&texts[0]));
                (0..calls).for_each(|at| _ = history.add(turn, step, call(number + at, "exec", &texts[1])));
                (0..calls)
                    .rev()
                    .for_each(|at| _ = history.add(turn, step, result(number + at, &texts[2 + at])));
                number += calls;
            }
        }
        history
    })
}

/// The same as anything at all: places that say nothing, or are missing.
pub(crate) fn any_odd_history() -> impl Strategy<Value = History> {
    let place = (0u64..4, 0u64..3).prop_map(|(turn, step)| Place::new(1, turn, step));
    let items = proptest::collection::vec(any_item().prop_map(Arc::new), 0..24);
    (items, proptest::collection::vec(place, 0..26), 0usize..30)
        .prop_map(|(items, places, preface)| History { items, places, preface })
}
