//! Histories for the tests of the pure core, written as facts.

use longhaul_protocol::{
    At, AttemptEnded, AttemptId, AttemptStarted, BlobRef, Block, Body, CallId, Effect, EpochReason,
    EpochStarted, Hash, Input, InputId, InputTaken, Item, JoinMode, Order, OrderId, OrderKind, OrderTaken,
    Record, Role, SessionId, SessionRecord, StepStarted, StreamName, ToolFinished, ToolStarted, TurnStarted,
};

use crate::config::Wake;
use crate::session::decide::{Policy, TurnLimits};
use crate::session::state::State;

pub(crate) fn call_id(number: u128) -> CallId {
    CallId::from_bits(number)
}

pub(crate) fn attempt_id() -> AttemptId {
    AttemptId::from_bits(7)
}

pub(crate) fn record(seq: u64, fact: &SessionRecord) -> Record {
    let new = fact.encode();
    Record {
        stream: StreamName::session(SessionId::from_bits(1)),
        seq,
        at: At(0),
        kind: new.kind,
        key: None,
        body: Body::Here(new.body),
        prev: Hash::ZERO,
        hash: Hash::ZERO,
    }
}

/// The state after an epoch has begun and these facts have come.
pub(crate) fn after(facts: &[SessionRecord]) -> State {
    let blob = BlobRef::to(b"x", "text/plain");
    let epoch = SessionRecord::EpochStarted(EpochStarted::new(1, EpochReason::Created, blob.clone(), blob));
    let mut state = State::default();
    for (seq, fact) in (1..).zip(std::iter::once(&epoch).chain(facts)) {
        state.apply(&record(seq, fact)).unwrap();
    }
    state
}

pub(crate) fn policy() -> Policy {
    let hash = Hash::of(b"x");
    let limits = TurnLimits { steps: 3, ..TurnLimits::default() };
    let reads = vec!["look".to_owned()];
    Policy {
        system: hash,
        tools: hash,
        limits,
        parallel_tools: reads,
        context: crate::compaction::plan::ContextLimits::default(),
        is_out_of_time: false,
        forced_end: None,
        refusal: None,
        wake: Wake::Always,
        is_batching_task_ends: false,
    }
}

pub(crate) fn input(mode: JoinMode) -> SessionRecord {
    let (id, text) = (InputId::from_bits(1), "hello".to_owned());
    SessionRecord::InputTaken(InputTaken::of(Input::new(id, text, mode), 1))
}

pub(crate) fn cancel() -> SessionRecord {
    let order = Order { id: OrderId::from_bits(1), kind: OrderKind::Cancel };
    SessionRecord::OrderTaken(OrderTaken { inbox_through: 2, order })
}

pub(crate) fn turn() -> SessionRecord {
    SessionRecord::TurnStarted(TurnStarted::new(1))
}

pub(crate) fn step(step: u64) -> SessionRecord {
    SessionRecord::StepStarted(StepStarted::new(step))
}

pub(crate) fn attempt() -> SessionRecord {
    SessionRecord::AttemptStarted(AttemptStarted { attempt: attempt_id(), model: "m".to_owned() })
}

pub(crate) fn text() -> SessionRecord {
    let item = Item::Text { role: Role::Assistant, text: "so".to_owned() };
    SessionRecord::Block(Block { attempt: attempt_id(), index: 0, item })
}

pub(crate) fn thought() -> SessionRecord {
    let item = Item::Reasoning { text: "hm".to_owned(), signature: None };
    SessionRecord::Block(Block { attempt: attempt_id(), index: 0, item })
}

pub(crate) fn asks(number: u128, name: &str) -> SessionRecord {
    let (name, arguments) = (name.to_owned(), "{}".to_owned());
    let item = Item::ToolCall { call: call_id(number), wire_id: None, name, arguments, signature: None };
    SessionRecord::Block(Block { attempt: attempt_id(), index: 0, item })
}

pub(crate) fn answered(kept: u32) -> SessionRecord {
    let ended = AttemptEnded {
        attempt: attempt_id(),
        kept,
        stop: Some("stop".to_owned()),
        error: None,
        goes_on: false,
        too_long: None,
    };
    SessionRecord::AttemptEnded(ended)
}

pub(crate) fn broke(kept: u32) -> SessionRecord {
    let ended = AttemptEnded {
        attempt: attempt_id(),
        kept,
        stop: None,
        error: Some("cut".to_owned()),
        goes_on: false,
        too_long: None,
    };
    SessionRecord::AttemptEnded(ended)
}

pub(crate) fn starts(number: u128, name: &str, effect: Effect) -> SessionRecord {
    let (name, arguments) = (name.to_owned(), "{}".to_owned());
    SessionRecord::ToolStarted(ToolStarted {
        call: call_id(number),
        name,
        arguments,
        effect,
        write: None,
        writes: vec![],
        kept_in: None,
        remote_task: None,
        child: None,
        changes_nothing: false,
    })
}

pub(crate) fn finishes(number: u128, name: &str, content: &str) -> SessionRecord {
    SessionRecord::ToolFinished(ToolFinished::new(call_id(number), name, content))
}
