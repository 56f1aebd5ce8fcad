use serde_json::json;

use super::*;

/// H7: whatever a provider counts, the figures go on.
#[test]
fn counts_that_no_provider_can_mean_do_not_end_the_figures() {
    let metrics = Arc::new(Metrics::default());
    let mut counter = TurnCounter { metrics: metrics.clone(), tasks: HashSet::new() };
    let usage = json!({
        "type": "usage", "at": "2026-11-17T00:00:00.000Z", "session": "a", "attempt": longhaul_protocol::AttemptId::generate(),
        "model": "test/model", "input": u64::MAX, "output": u64::MAX, "cached": u64::MAX,
    });
    let usage: Event = serde_json::from_value(usage).unwrap();

    counter.count(&usage);
    counter.count(&usage);

    let text = metrics.to_text();
    assert!(text.contains("longhaul_model_calls_total{model=\"test/model\"} 2"), "{text}");
    assert!(text.contains(&u64::MAX.to_string()), "{text}");
}

/// H7: a call counts for the model that was called, whatever the session's model was before or is now.
#[test]
fn a_call_counts_for_the_model_that_it_names() {
    let metrics = Arc::new(Metrics::default());
    let mut counter = TurnCounter { metrics: metrics.clone(), tasks: HashSet::new() };
    let event = |value: serde_json::Value| -> Event { serde_json::from_value(value).unwrap() };
    let at = "2026-11-17T00:00:00.000Z";
    let changed = json!({"type": "model_changed", "at": at, "session": "a", "from": "x/small", "to": "x/large", "reason": "chosen"});
    let summary =
        json!({"type": "usage", "at": at, "session": "a", "cause": "compaction", "model": "x/cheap"});

    counter.count(&event(changed));
    counter.count(&event(summary));

    let text = metrics.to_text();
    assert!(text.contains("longhaul_model_calls_total{model=\"x/cheap\"} 1"), "{text}");
    assert!(!text.contains("x/large"), "{text}");
}
