use longhaul_agent::session::{CompactionThresholds, ContextBreakdown, ContextBudget, State};
use longhaul_agent::{ContextReport, SessionStatus};
use longhaul_memory::MemoryCalls;
use longhaul_model::{ContextWindow, WindowSource};
use longhaul_protocol::{PermissionMode, SessionId};

use super::*;

fn status() -> StatusReport {
    let report = ContextReport {
        model: "custom/m".to_owned(),
        parts: ContextBreakdown { system: 500, turns: 9_500, ..ContextBreakdown::default() },
        incoming: 0,
        reported: Some(9_000),
        window: Some(ContextWindow { tokens: 40_000, source: WindowSource::Config }),
        room: Some(ContextBudget { window: 40_000, answer: 8_000, fixed: 500 }),
        checks: CompactionThresholds { before_turn: None, within_turn: None, idle: None },
        epoch: Some(1),
        compactions: 0,
    };
    let mut status = SessionStatus::default();
    status.key = "cli:garden".to_owned();
    status.id = Some("01JDFJM0000000000000000001".parse::<SessionId>().unwrap());
    status.state = State { turn_count: 3, ..State::default() };
    let (memory_scope, memory_is_on) = ("agent-longhaul".to_owned(), true);
    StatusReport {
        status,
        model: "custom/m".to_owned(),
        report,
        tasks: vec![],
        memory_scope,
        memory_is_on,
        page_calls: MemoryCalls::default(),
        instructions: vec![],
        limits: vec![],
        mode: PermissionMode::Auto,
    }
}

/// The cost of one call with this price, if it has one, and of calls without a price.
fn cost(price: Option<f64>, unpriced: u64) -> SessionCost {
    let mut cost = SessionCost::default();
    cost.add_price(price);
    cost.unpriced = unpriced;
    cost
}

fn about() -> SessionOverview {
    SessionOverview {
        records: 41,
        bytes: 12_345,
        saved: Some(At(0)),
        pinned: false,
        origin: None,
        cost: cost(Some(0.0125), 0),
    }
}

/// S3
#[test]
fn a_session_is_shown_with_what_it_holds_and_costs() {
    let text = session_lines(&status(), Some(&about())).join("\n");

    // The zone of the machine decides which day and hour the beginning of 1970 was.
    let saved = format!("{} ({})", ago(now(), At(0)), format_moment(At(0)));
    assert_eq!(
        text.replace(&saved, "LONG AGO"),
        "session       cli:garden\n\
         id            01JDFJM0000000000000000001\n\
         model         custom/m\n\
         turns         3 turns\n\
         used          10,000 tokens of 40,000 (from the config): 9,000 counted by the provider, the rest estimated\n\
         free          22,000 tokens, plus room for the answer\n\
         compactions   0 compactions\n\
         last save     LONG AGO; 41 entries, 12,345 bytes\n\
         cost          $0.0125"
    );
}

/// S3
#[test]
fn what_nobody_has_priced_is_said_and_a_session_that_is_not_stored_has_no_cost() {
    let costs = |price, unpriced| SessionOverview { cost: cost(price, unpriced), ..about() }.cost();

    assert_eq!(costs(None, 0), "nothing yet");
    assert_eq!(costs(Some(0.0), 0), "nothing yet");
    assert_eq!(costs(Some(0.0), 1), "unknown: no price for 1 call");
    assert!(costs(Some(0.5), 2).starts_with("$0.5000, without 2 calls"));
    let mut unused = status();
    unused.status.id = None;
    assert_eq!(session_lines(&unused, None).len(), 7);
}
