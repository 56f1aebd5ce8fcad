use std::time::Duration;

use super::*;

fn said(body: &str) -> Option<ProviderError> {
    parse_error_body(429, body.as_bytes())
}

fn expected(codes: &[&str], message: &str, delay: Option<f64>) -> Option<ProviderError> {
    let codes = codes.iter().map(|&code| code.to_owned()).collect();
    let delay = delay.map(Duration::from_secs_f64);
    Some(ProviderError { status: Some(429), codes, message: message.to_owned(), delay, window: None })
}

#[test]
fn the_errors_of_every_kind_of_server_are_read() {
    let cases = [
        (
            r#"{"error":{"message":"Rate limit reached. Please try again in 1.5s. Visit us.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
            expected(
                &["tokens", "rate_limit_exceeded"],
                "Rate limit reached. Please try again in 1.5s. Visit us.",
                Some(1.5),
            ),
        ),
        (r#"{"error":"model not found"}"#, expected(&[], "model not found", None)),
        (
            r#"{"object":"error","message":"too long","type":"BadRequestError","code":400}"#,
            expected(&["BadRequestError", "400"], "too long", None),
        ),
        (r#"{"detail":"Not Found"}"#, expected(&[], "Not Found", None)),
        (
            r#"{"detail":[{"loc":["body"],"msg":"missing"}]}"#,
            expected(&[], r#"[{"loc":["body"],"msg":"missing"}]"#, None),
        ),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}"#,
            expected(&["overloaded_error"], "Overloaded", None),
        ),
        (
            r#"[{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[
                {"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED"},
                {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17s"}]}}]"#,
            expected(&["429", "RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED"], "Quota exceeded.", Some(17.0)),
        ),
        (
            r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"busy","provider_name":"P"}}}"#,
            expected(&["429"], "Provider returned error: busy", None),
        ),
        (r#"{"message":"slow down","retry_after":2.5}"#, expected(&[], "slow down", Some(2.5))),
        (r#"{"error":{"message":"slow down"},"retry_after":"3"}"#, expected(&[], "slow down", Some(3.0))),
        (r#"{"error":{"message":"m","retry_after_ms":250}}"#, expected(&[], "m", Some(0.25))),
    ];
    for (body, expected) in cases {
        assert_eq!(said(body), expected, "{body}");
    }
}

#[test]
fn what_is_no_error_of_a_model_server_says_nothing() {
    for body in ["", "<html>502</html>", "[]", "{}", "null", "3", "\"text\"", r#"{"choices":[]}"#] {
        assert_eq!(said(body), None, "{body}");
    }
}

#[test]
fn an_error_in_the_middle_of_a_stream_brings_its_own_status() {
    let error = serde_json::json!({"error": {"code": 502, "message": "bad gateway"}});

    let said = parse_error_value(&error).unwrap();

    assert_eq!((said.status, said.codes.as_slice()), (Some(502), ["502".to_owned()].as_slice()));
}
