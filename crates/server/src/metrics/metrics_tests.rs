use super::*;

/// H7: the text is what Prometheus reads, and a label can't break out of its quotes.
#[test]
fn figures_are_written_in_the_form_of_prometheus() {
    let metrics = Arc::new(Metrics::default());

    metrics.count_request("GET", "/api/sessions/{key}", 200, Duration::from_millis(3));
    metrics.count_request("GET", "/api/sessions/{key}", 200, Duration::from_millis(700));
    metrics.tables().models.entry("a\"b\\c\nd".to_owned()).or_default().calls = 2;
    let follower = metrics.open_follower();
    let text = metrics.to_text();
    drop(follower);

    for line in [
        "longhaul_http_requests_total{method=\"GET\",route=\"/api/sessions/{key}\",status=\"200\"} 2",
        "longhaul_http_request_duration_seconds_bucket{route=\"/api/sessions/{key}\",le=\"0.005\"} 1",
        "longhaul_http_request_duration_seconds_bucket{route=\"/api/sessions/{key}\",le=\"1\"} 2",
        "longhaul_http_request_duration_seconds_bucket{route=\"/api/sessions/{key}\",le=\"+Inf\"} 2",
        "longhaul_followers 1",
        "longhaul_model_calls_total{model=\"a\\\"b\\\\c\\nd\"} 2",
    ] {
        assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
    }
    assert!(metrics.to_text().contains("longhaul_followers 0"));
}
