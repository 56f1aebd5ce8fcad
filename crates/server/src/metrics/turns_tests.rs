use serde_json::json;

use super::*;

/// H7: whatever a provider counts, the figures go on.
#[test]
fn counts_that_no_provider_can_mean_do_not_end_the_figures() {
    let metrics = Arc::new(Metrics::default());
    let mut counter = TurnCounter { metrics: metrics.clone(), models: HashMap::new(), tasks: HashSet::new() };
    let usage = json!({
        "type": "usage", "at": "2026-11-17T00:00:00.000Z", "session": "a", "attempt": longhaul_protocol::AttemptId::generate(),
        "input": u64::MAX, "output": u64::MAX, "cached": u64::MAX,
    });
    let usage: Event = serde_json::from_value(usage).unwrap();

    counter.count(&usage, "test/model".to_owned());
    counter.count(&usage, "test/model".to_owned());

    let text = metrics.to_text();
    assert!(text.contains("longhaul_model_calls_total{model=\"test/model\"} 2"), "{text}");
    assert!(text.contains(&u64::MAX.to_string()), "{text}");
}
