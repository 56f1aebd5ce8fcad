use super::*;

fn class(status: u16, codes: &[&str], message: &str) -> FailureClass {
    let codes = codes.iter().map(|code| (*code).to_owned()).collect();
    classify_error(&ProviderError {
        status: Some(status).filter(|status| *status > 0),
        codes,
        message: message.to_owned(),
        delay: None,
        window: None,
    })
}

/// M3
#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn statuses_and_codes_are_told_apart_by_what_can_be_done() {
    let table = [
        (429, &["rate_limit_error"][..], "slow down", FailureClass::Throttled),
        (429, &["insufficient_quota"], "You exceeded your current quota", FailureClass::Quota),
        (402, &[], "pay", FailureClass::Quota),
        (
            400,
            &["invalid_request_error"],
            "Your credit balance is too low to access the API",
            FailureClass::Quota,
        ),
        (503, &[], "", FailureClass::Overloaded),
        (529, &["overloaded_error"], "Overloaded", FailureClass::Overloaded),
        (500, &["api_error"], "the context window", FailureClass::Server),
        (502, &[], "bad gateway", FailureClass::Server),
        (504, &[], "", FailureClass::Timeout),
        (408, &[], "", FailureClass::Timeout),
        (409, &[], "", FailureClass::Server),
        (425, &[], "", FailureClass::Server),
        (401, &["invalid_api_key"], "", FailureClass::Key),
        (403, &[], "", FailureClass::Key),
        (404, &["model_not_found"], "The model `x` does not exist", FailureClass::NotFound),
        (400, &["context_length_exceeded"], "", FailureClass::TooLong),
        (
            400,
            &["exceed_context_size_error"],
            "the request exceeds the available context size",
            FailureClass::TooLong,
        ),
        (
            400,
            &["invalid_request_error"],
            "prompt is too long: 200001 tokens > 200000 maximum",
            FailureClass::TooLong,
        ),
        (
            400,
            &["INVALID_ARGUMENT"],
            "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            FailureClass::TooLong,
        ),
        (413, &["request_too_large"], "", FailureClass::TooLong),
        (400, &[], "registry/smollm does not support tools", FailureClass::NoTools),
        (404, &[], "No endpoints found that support tool use", FailureClass::NoTools),
        (400, &["content_filter"], "", FailureClass::Refused),
        (400, &["invalid_request_error"], "max_tokens: must be positive", FailureClass::Invalid),
        (422, &[], "", FailureClass::Invalid),
        (400, &["BadRequestError"], "System message must be at the beginning.", FailureClass::RoleOrder),
        (
            400,
            &[],
            "Conversation roles must alternate user/assistant/user/assistant/...",
            FailureClass::RoleOrder,
        ),
        (
            400,
            &["invalid_request_message_order"],
            "Unexpected role 'user' after role 'tool'",
            FailureClass::RoleOrder,
        ),
        (
            400,
            &[],
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
            FailureClass::RoleOrder,
        ),
        (
            400,
            &["invalid_request_error"],
            "messages: roles must alternate between \"user\" and \"assistant\"",
            FailureClass::RoleOrder,
        ),
        (
            500,
            &["server_error"],
            "Error: Jinja Exception: System message must be at the beginning.",
            FailureClass::RoleOrder,
        ),
        (500, &[], "System role not supported", FailureClass::RoleOrder),
        (422, &["generation"], "Template error: Conversation roles must alternate", FailureClass::RoleOrder),
        (400, &[], "messages[3].role: must be one of user, assistant", FailureClass::RoleOrder),
        (403, &[], "your role does not permit this", FailureClass::Key),
        (500, &[], "the role of this node changed", FailureClass::Server),
        (0, &["overloaded_error"], "Overloaded", FailureClass::Overloaded),
        (0, &["rate_limit_exceeded"], "", FailureClass::Throttled),
        (0, &["server_error"], "", FailureClass::Server),
        (0, &["invalid_request_error"], "no", FailureClass::Invalid),
        (0, &[], "something", FailureClass::Server),
    ];

    for (status, codes, message, expected) in table {
        assert_eq!(class(status, codes, message), expected, "{status} {codes:?} {message}");
    }
}
